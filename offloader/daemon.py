"""Rounds over all topics: one commit a topic and pass, until nothing is due; then a pause.

One topic's failure stops no other: it is said, kept for ``status`` and tried again next round.
A stop is heeded between commits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from offloader.discover import find_topics
from offloader.log import plain_text
from offloader.report import Report
from offloader.signals import Stop
from offloader.state import StateFile
from offloader.turn import TopicOffloader
from reader.admin import AdminClient
from reader.config import Config
from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.model import Topic

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["ONCE_WAITS", "Daemon", "spark_context"]

ONCE_WAITS = 30.0
"""``--once`` waits so many seconds for a commit's grace; longer ones are the next run's."""

_LOCAL = re.compile(r"local\[([^,\]]+)\]")


class Daemon:
    """Offloads ``names`` (topics and wildcards) until it is stopped, or once."""

    def __init__(
        self,
        config: Config,
        admin: AdminClient,
        names: Sequence[str],
        *,
        report: Report,
        stop: Stop,
        context: Callable[[], SparkContext],
    ) -> None:
        self._config = config
        self._admin = admin
        self._names = names
        self._report = report
        self._stop = stop
        self._state = StateFile(config)
        self._committed: list[Topic] = []
        self._topics = TopicOffloader(config, admin, context, say=report.say)

    def run(self, *, once: bool = False, now: bool = False) -> list[str]:
        """Run rounds; what failed in the last one, one line each.

        Raises ConfigurationError for what no round can put right.
        """
        while True:
            failures = self._round(now)
            if once:
                failures += self._settle()
                self._report.say(f"done: {len(self._committed)} commits, {len(failures)} failures")
                return failures
            self._committed.clear()
            if self._stop.wait(self._config.offload.interval.total_seconds()):
                return failures

    def _round(self, now: bool) -> list[str]:
        try:
            topics = find_topics(self._admin, self._names)
        except ConfigurationError:
            raise
        except PulsarLakeError as error:
            self._report.failed("finding topics", str(error))
            return [str(error)]
        for topic in topics:
            with suppress(PulsarLakeError):  # its turn will say so
                self._topics.take_hold(topic)
        failures = []
        while topics and not self._stop.set:
            left = []
            for topic in topics:
                if self._stop.set:
                    break
                failure, more = self._turn(topic, now)
                if failure:
                    failures.append(f"{topic}: {failure}")
                elif more:
                    left.append(topic)
            topics = left
        return failures

    def _turn(self, topic: Topic, now: bool) -> tuple[str | None, bool]:
        """(what went wrong, whether there is more to do)."""
        try:
            turn = self._topics.turn(
                topic,
                now=now,
                progress=lambda done, total: self._report.tasks(topic, done, total),
            )
        except Exception as error:  # of whatever kind: no topic's failure stops the others
            if type(error).__name__ == "Py4JNetworkError":
                raise UnavailableError(
                    "Spark has died", hint="start the offloader again; give Spark more memory"
                ) from error
            text = _one_line(error)
            self._report.failed(topic, text)
            self._state.failed(topic, text)
            return text, False
        self._state.succeeded(topic)
        if turn.committed:
            self._committed.append(topic)
            self._report.committed(topic, turn.committed)
        self._report.released(turn.released)
        return None, turn.more

    def _settle(self) -> list[str]:
        """Release what this run committed, if its grace is short."""
        failures = []
        deadline = time.monotonic() + ONCE_WAITS
        for topic in dict.fromkeys(self._committed):
            try:
                while True:
                    moves, wait = self._topics.release(topic)
                    self._report.released(moves)
                    if not wait or time.monotonic() + wait > deadline or self._stop.wait(wait):
                        break
            except PulsarLakeError as error:
                failures.append(f"{topic}: {error}")
                self._report.failed(topic, str(error))
        return failures


def _one_line(error: Exception) -> str:
    if isinstance(error, PulsarLakeError):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {plain_text(error)}"


def spark_context(config: Config, stop: Stop) -> Callable[[], SparkContext]:
    """What starts Spark on the first call and gives the same context on every call."""
    started: list[SparkContext] = []

    def start() -> SparkContext:
        from spark_ext.session import build_session  # Java starts only if something is due

        match = _LOCAL.fullmatch(config.spark.master)
        # Without a number of its own, a local master gives up at a task's first failure.
        master = f"local[{match[1]},4]" if match else config.spark.master
        spark = config.spark.model_copy(update={"master": master})
        return build_session(
            config.model_copy(update={"spark": spark}), app_name="pulsar-lake offload"
        ).sparkContext

    def context() -> SparkContext:
        if not started:
            # Not in the main thread: there, a new context takes Ctrl-C for itself.
            with ThreadPoolExecutor(1) as pool:
                started.append(pool.submit(start).result())
            stop.cancel = started[0].cancelAllJobs
        return started[0]

    return context
