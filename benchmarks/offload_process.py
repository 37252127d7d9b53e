"""The offloader in a process of its own, with the Spark that its command starts.

The process reads requests, a line of JSON each, and answers so: ``{"turn": topic}`` is one turn,
``{"once": names}`` one of each topic, as ``offload --once --now``. ``settings`` are those of a
store; what is kept between its turns, the daemon keeps as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from reader.closing import Closing
from testbed.usage import command_name, descendants, process_seconds

if TYPE_CHECKING:
    from pyspark import SparkContext

    from offloader.config import Config


@dataclass(frozen=True, slots=True)
class OffloadCpu:
    """CPU seconds: of the offloader's own process, Spark's JVM, its Python workers."""

    own: float
    jvm: float
    workers: float

    @property
    def all(self) -> float:
        return self.own + self.jvm + self.workers

    def __sub__(self, other: OffloadCpu) -> OffloadCpu:
        return OffloadCpu(self.own - other.own, self.jvm - other.jvm, self.workers - other.workers)


class OffloadProcess(Closing):
    """The process, started by the first request; its log is appended to ``log``."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._child: subprocess.Popen[str] | None = None

    def close(self) -> None:
        """It ends with its input."""
        if self._child is not None:
            self._child.communicate(timeout=60)

    def turn(self, settings: dict[str, Any], topic: str) -> dict[str, Any]:
        """One turn; what it committed."""
        return self._ask({"settings": settings, "turn": topic})

    def once(self, settings: dict[str, Any], *names: str) -> dict[str, Any]:
        """``jobs``: of Spark; raises where a topic fails."""
        return self._ask({"settings": settings, "once": names})

    def cpu(self) -> OffloadCpu:
        """So far."""
        if self._child is None:
            return OffloadCpu(0.0, 0.0, 0.0)
        root = self._child.pid
        below = descendants(root)
        java = [pid for pid in below if command_name(pid).startswith("java")]
        workers = [pid for pid in below if pid not in java]
        # What a JVM waited for counts with it: Spark's scripts, which end before the first turn.
        return OffloadCpu(process_seconds(root), process_seconds(*java), process_seconds(*workers))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.offload_process", str(self._log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        print(json.dumps(request), file=self._child.stdin, flush=True)
        line = self._child.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"failed": "the offloader died"}
        if "failed" in answer:
            raise RuntimeError(answer["failed"])
        return answer


class _Offloader:
    """In the child: what is kept for one store."""

    def __init__(self, config: Config, log: Any) -> None:
        from offloader.convert import spark_jobs
        from offloader.turn.topic_offloader import TopicOffloader
        from reader.clients import Clients

        self._config = config
        self._log = log
        self._clients = Clients(config)
        self._turns = TopicOffloader(self._clients, config.offload, spark_jobs(_context))

    @classmethod
    @cache
    def of(cls, settings: str, log: Any) -> Self:
        from offloader.config import load_config

        return cls(load_config(json.loads(settings)), log)

    def turn(self, topic: str) -> dict[str, Any]:
        from reader.model import Topic

        done = self._turns.turn(Topic.parse(topic), now=True).committed
        return {} if done is None else {"rows": done.rows, "ledgers": done.ledgers}

    def once(self, names: list[str]) -> dict[str, Any]:
        from offloader.service.console import Console
        from offloader.service.daemon import Daemon
        from offloader.service.signals import Stop

        with Console(self._log) as console:
            daemon = Daemon(
                self._config,
                self._clients,
                names,
                console=console,
                stop=Stop(),
                context=_context,
                now=True,
            )
            failures = daemon.run_once()
        return {"failed": failures[0]} if failures else {"jobs": daemon.jobs}


@cache
def _context() -> SparkContext:
    from offloader.config import load_config
    from offloader.convert import SparkStarter

    return SparkStarter(load_config({}))()


def _main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    with Path(sys.argv[1]).open("a") as log:
        os.dup2(log.fileno(), 1)  # Spark and Arrow may print
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                offloader = _Offloader.of(json.dumps(asked["settings"]), log)
                answer = (
                    offloader.once(asked["once"])
                    if "once" in asked
                    else offloader.turn(asked["turn"])
                )
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                answer = {"failed": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    _main()
