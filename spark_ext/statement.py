"""One SQL statement that runs: its rows as Arrow batches, how far it is, and how to end it.

pyspark's own ways to a result keep all of it in memory (``toArrow``), or make a Python object of
each row and run one task at a time (``toLocalIterator``). Here a few partitions are one Spark job,
and more of them the smaller their results are: so a result of any size passes through, in its
order, and a search for a needle uses all cores.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_JOB_BYTES = 64 << 20
_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Progress:
    """Tasks of the jobs so far, and the rows that finished tasks have read."""

    tasks: int
    tasks_done: int
    rows: int


class Statement:
    """A statement of ``spark``'s. ``run`` and ``batches`` belong to one thread; the rest to any.

    Its Spark jobs are a job group of their own.
    """

    def __init__(self, spark: SparkSession, text: str) -> None:
        self.text = text
        self._spark = spark
        self._context = spark.sparkContext
        self._group = f"pulsar-lake-{uuid.uuid4().hex}"
        self.frame: DataFrame | None = None
        """The result, once it is analysed; what a command does is done then."""
        self._ahead = 0  # partitions of the result that are in no job yet
        self._over: dict[int, Progress] = {}  # what came of the jobs that have ended

    def run(self) -> pa.Schema:
        """Analyse it, and run it if it is a command. Raises what ``spark.sql`` raises."""
        from pyspark.sql.pandas.types import to_arrow_schema

        jvm, session = self._spark._jvm, self._spark._jsparkSession  # noqa: SLF001 - no other way
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)  # type: ignore[union-attr]
        self._context.setJobGroup(self._group, self.text, interruptOnCancel=True)
        # As where Spark collects a result itself: plans and tasks have the session's settings.
        for name, value in self._spark.conf.getAll.items():
            if name.startswith("spark.sql."):
                self._context.setLocalProperty(name, value)
        # A partition's result is in the JVM's memory as a whole: several times smaller so.
        self._context.setLocalProperty("spark.sql.execution.arrow.compression.codec", "zstd")
        self.frame = self._spark.sql(self.text)
        # As the JVM writes them in ``batches``.
        large = self._spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"
        return to_arrow_schema(self.frame.schema, timezone="UTC", prefers_large_types=large)

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows, in order; ``schema``: what ``run`` gave. Raises what Spark raises."""
        assert self.frame is not None
        rdd: Any = self.frame._jdf.toArrowBatchRdd().toJavaRDD()  # each batch as bytes
        total, begin, size = int(rdd.getNumPartitions()), 0, 2
        seen = 0
        while begin < total:
            end = min(begin + size, total)
            self._ahead = total - end
            try:
                for data in self._fetched(rdd, range(begin, end)):
                    seen += len(data)
                    yield pa.ipc.read_record_batch(pa.py_buffer(data), schema)
            except Exception as error:
                if end - begin == 1 or not _too_large(error):
                    raise
                size = max(1, size // _GROWTH)  # nothing came of this job
                continue
            begin = end
            fitting = _JOB_BYTES * begin // max(seen, 1)
            size = max(1, min(size * _GROWTH, fitting))

    def _fetched(self, rdd: Any, partitions: range) -> Iterator[bytes]:
        """What one job makes of some partitions; nothing before all of them are done."""
        from pyspark.serializers import FramedSerializer
        from pyspark.util import _load_from_socket

        class Bytes(FramedSerializer):
            def loads(self, data: bytes) -> bytes:
                return data

        jvm: Any = self._context._jvm
        numbers = jvm.java.util.ArrayList()
        for number in partitions:
            numbers.add(number)
        source = jvm.PythonRDD.runJob(self._context._jsc.sc(), rdd, numbers)
        with _load_from_socket(source, Bytes()) as stream:
            yield from stream

    def cancel(self) -> None:
        """End its jobs, and let it begin no others."""
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)

    def progress(self) -> Progress:
        """How far it is, by what Spark has heard of its tasks. Stages not begun are not in it."""
        context = self._context._jsc.sc()
        tracker, store = context.statusTracker(), context.statusStore()
        jobs = []
        for job in tracker.getJobIdsForGroup(self._group):
            known = self._over.get(job)
            if known is None:
                found = tracker.getJobInfo(job)
                if not found.isDefined():
                    continue
                info = found.get()
                known = _of_stages(tracker, store, info.stageIds())
                if info.status().name() != "RUNNING":
                    self._over[job] = known
            jobs.append(known)
        return Progress(
            sum(one.tasks for one in jobs) + self._ahead,
            sum(one.tasks_done for one in jobs),
            sum(one.rows for one in jobs),
        )


def _of_stages(tracker: Any, store: Any, numbers: Any) -> Progress:
    tasks = done = rows = 0
    for number in numbers:
        if not tracker.getStageInfo(number).isDefined():
            continue
        stage = store.lastStageAttempt(number)
        if stage.status().name() in ("PENDING", "SKIPPED"):
            continue
        tasks += stage.numTasks()
        done += stage.numCompleteTasks()
        rows += stage.inputRecords()
    return Progress(tasks, done, rows)


def _too_large(error: Exception) -> bool:
    """Whether the job's results were more than the driver takes (spark.driver.maxResultSize)."""
    return "spark.driver.maxResultSize" in str(error)
