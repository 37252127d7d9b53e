"""A streaming program as users write one, in a process of its own, to be killed and started again.

    python -m tests.support.stream_program JOB.json

Queries over the same topics: ``rows`` writes each micro-batch as a Parquet folder of its number,
and ``state`` counts and sums the numbers of the messages, and writes what has changed. Both sinks
are idempotent: a micro-batch that is run again replaces its folder. ``copy`` writes to a topic:
``number``, ``origin`` (topic and partition that it came from) and a key; or to several, in turn.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.process import Process
from testbed.usage import descendants

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from spark_ext import PulsarLake

REMAINDERS = 7
"""The state's keys: a number's remainder by it, of each topic and partition."""

PLANNER = "spark_ext.planner.process"
TASKS = "spark_ext.datasource.python_daemon"
"""Modules of the program's Python processes, those of its tasks with what forks them."""

RENAMED = {"__topic": "topic", "__partition": "partition"}
"""Columns of a stream, as ``write_rows`` has them."""

_AFTER_AN_ERROR = 1.0


@dataclass(frozen=True, slots=True)
class Job:
    """``number``: SQL for a message's number. ``place``: a URI of Spark's, below which checkpoints
    and sinks lie. ``queries``: those that run. ``target``: the table that ``copy`` writes to, with
    the options ``writing``. ``options``: of the streams, by query.
    ``now``: end when all that there is has been read; else never, with a micro-batch ``every`` so
    many seconds. ``restarts``: start a query again that has failed; else end. ``routed``: the
    topics that ``copy`` writes to by their name in each row, instead of ``target``."""

    config: str
    topics: Sequence[str]
    number: str
    place: str
    queries: Sequence[str] = ("rows", "state")
    target: str = ""
    routed: Sequence[str] = ()
    writing: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    now: bool = True
    every: float = 0.0
    restarts: bool = False

    def checkpoint(self, query: str) -> str:
        return f"{self.place}/{query}-checkpoint"

    def sink(self, query: str) -> str:
        return f"{self.place}/{query}"


class StreamProgram:
    """One life of the program, from ``StreamProgram(…)`` to ``kill``, or its own end.

    ``attempts``: how often a task is tried, as on a cluster.
    """

    def __init__(
        self, directory: Path, job: Job, *, log: str = "stream.log", attempts: int = 4
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "job.json"
        path.write_text(json.dumps(asdict(job)))
        self._log = directory / log
        self._begins = self._log.stat().st_size if self._log.exists() else 0
        command = [sys.executable, "-m", __name__, str(path)]
        settings = {"PULSAR_LAKE__SPARK__MASTER": f"local[2,{attempts}]"}
        self._process = Process("stream program", command, self._log, settings)
        self._process.spawn()

    @property
    def running(self) -> bool:
        return self._process.alive

    @property
    def pids(self) -> list[int]:
        """The program's and of all that it has started; empty once it has ended."""
        pid = self._process.pid
        return [] if pid is None else [pid, *descendants(pid)]

    def pids_of(self, module: str) -> list[int]:
        """Return the program's processes that run a Python module."""
        pid = self._process.pid
        return [] if pid is None else pids_of(pid, module)

    def kill_some(self, module: str) -> bool:
        """Kill the program's processes that run a Python module; see the function."""
        pid = self._process.pid
        return pid is not None and kill_some(pid, module)

    def kill(self) -> None:
        """SIGKILL for all of it: Spark's JVM has no time to end in order."""
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.kill()

    def code(self, timeout: float = 120) -> int:
        """The exit code, once it is over; -9 for one that was killed."""
        return self._process.wait(timeout)

    @property
    def log(self) -> str:
        """What this life has said."""
        return self._log.read_bytes()[self._begins :].decode(errors="replace")

    def events(self, kind: str) -> list[dict[str, Any]]:
        """``started`` and ``batch`` of a query; ``error``: where it is ``ours``, its class."""
        whole, _, _ = self.log.rpartition("\n")  # the last may be on its way
        lines = (line for line in whole.splitlines() if line.startswith('{"event": '))
        found: list[dict[str, Any]] = list(map(json.loads, lines))
        return [one for one in found if one["event"] == kind]


def pids_of(root: int, module: str) -> list[int]:
    """Return the processes below a process that run a Python module.

    Spark's JVM has the module's name in a setting, and is not one of them.
    """
    found = []
    for pid in descendants(root):
        with suppress(OSError):
            if module in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                found.append(pid)
    return found


def kill_some(root: int, module: str) -> bool:
    """Send SIGKILL to the processes below a process that run a Python module.

    Return False if there are none. Of ``TASKS`` only those are killed that were forked for a task:
    a program whose forking daemon is killed again before it is ready has no task that could fail.
    """
    found = pids_of(root, module)
    if module == TASKS:
        found = [forked for pid in found for forked in descendants(pid)]
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


# --- what runs in the process ---


class _Query:
    """One of the two, started again after an error where the job says so."""

    def __init__(
        self, name: str, lake: PulsarLake, job: Job, write: Callable[[DataFrame, str], None] | None
    ) -> None:
        self._name = name
        self._lake = lake
        self._job = job
        self._write = write
        self._running: StreamingQuery | None = None
        self._at = 0.0

    def goes_on(self) -> bool:
        """Starts it if it does not run. Raises what it failed of, unless that is not the end."""
        try:
            if self._running is None:
                if time.monotonic() >= self._at:
                    self._running = self._start()
                    _tell("started", query=self._name)
            elif not self._running.isActive:
                # Raises what it failed of; ``exception()`` would not say which error of ours.
                self._running.awaitTermination()
                return False
        except Exception as error:
            from spark_ext import error_of

            ours = error_of(error)
            kind, message = (None, "") if ours is None else (type(ours).__name__, str(ours))
            _tell("error", query=self._name, ours=kind, message=message, text=str(error)[:4000])
            if not self._job.restarts:
                raise
            self._running, self._at = None, time.monotonic() + _AFTER_AN_ERROR
        return True

    def _start(self) -> StreamingQuery:
        job = self._job
        read = self._lake.spark.readStream.format("pulsar")
        options = {"startingPosition": "earliest", **job.options.get(self._name, {})}
        stream = read.options(topics=",".join(job.topics), **options).load()
        frame = stream.withColumnsRenamed(RENAMED)
        frame = frame.selectExpr("*", f"{job.number} AS number")

        def write(batch: DataFrame, number: int) -> None:
            assert self._write is not None
            self._write(batch, f"{job.sink(self._name)}/{number}")
            _tell("batch", query=self._name, batch=number)

        if self._name == "copy":
            frame = frame.selectExpr(
                "number",
                "concat(topic, ':', partition) AS origin",
                f"CAST(number % {REMAINDERS} AS STRING) AS __key",
            )
            if job.routed:
                listed = ", ".join(f"'{topic}'" for topic in job.routed)
                place = f"CAST(number % {len(job.routed)} AS INT) + 1"
                frame = frame.selectExpr("*", f"element_at(array({listed}), {place}) AS __topic")
        if self._name == "state":
            keys = frame.groupBy("topic", "partition", (frame.number % REMAINDERS).alias("key"))
            frame = keys.agg({"number": "sum", "*": "count"}).toDF(
                "topic", "partition", "key", "total", "messages"
            )
        writer = frame.writeStream.queryName(self._name).outputMode(
            "update" if self._name == "state" else "append"
        )
        writer = (
            writer.trigger(availableNow=True)
            if job.now
            else writer.trigger(processingTime=f"{int(job.every * 1000)} milliseconds")
        )
        writer = writer.option("checkpointLocation", job.checkpoint(self._name))
        if self._name == "copy" and job.routed:
            return writer.options(**job.writing).format("pulsar").start()
        if self._name == "copy":
            return writer.options(**job.writing).toTable(job.target)
        return writer.foreachBatch(write).start()


def write_rows(batch: DataFrame, folder: str) -> None:
    """Write a micro-batch of ``rows``. ``task`` and ``row`` are the order in which rows came."""
    rows = batch.selectExpr(
        "topic",
        "partition",
        "__ledgerId AS ledger",
        "__entryId AS entry",
        "__batchIndex AS place",
        "number",
        "__error AS error",
        "spark_partition_id() AS task",
        "monotonically_increasing_id() AS row",
    )
    rows.write.mode("overwrite").parquet(folder)


def _write_state(batch: DataFrame, folder: str) -> None:
    batch.coalesce(1).write.mode("overwrite").parquet(folder)


def _tell(event: str, **more: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


def main(path: str) -> None:
    from spark_ext import PulsarLake

    job = Job(**json.loads(Path(path).read_text()))
    with PulsarLake(job.config) as lake:
        # Else Spark takes what a kill has left of its first offsets for another query's.
        lake.spark.conf.set("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
        lake.spark.conf.set("spark.sql.shuffle.partitions", "2")
        writes = {"rows": write_rows, "state": _write_state}
        queries = [_Query(name, lake, job, writes.get(name)) for name in job.queries]
        while queries:
            queries = [one for one in queries if one.goes_on()]
            time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1])
