"""The Spark job that turns ledgers into files: Spark distributes, Arrow moves the data.

Each task reads its splits from the bookies, writes one Parquet file straight to the storage and
returns its path, size and statistics. A task that runs twice (a retry, speculation) writes two
files of different names, and only the one whose result reached the driver can be committed.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from offloader.killpoint import reached
from offloader.parquet import WrittenFile, write_file
from offloader.pending import States
from reader import errors
from reader.config import Config
from reader.decode import State
from reader.errors import PulsarLakeError, UnavailableError
from reader.model import Partition, Topic
from reader.read import read_splits
from reader.rows import RowFormat
from reader.splits import Split, pack_splits
from reader.storage import open_filesystem, storage_root, table_uri

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = [
    "Converted",
    "Job",
    "Progress",
    "convert",
    "convert_task",
    "own_error",
    "plan_tasks",
    "write_rows",
]

Progress = Callable[[int, int], None]
"""Called with (tasks done, tasks in all)."""

_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Job:
    """What every task needs to know; goes to the workers by pickle and is never printed."""

    config: Config
    topic: Topic
    rows: RowFormat
    statistics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """What one task made of its splits: a file, if there was any row, and the ``partition``'s
    chunked messages as it left them."""

    partition: Partition
    file: WrittenFile | None
    chunks: States


def plan_tasks(splits: Sequence[Split], target_bytes: int) -> list[list[Split]]:
    """One list of splits a task, and so a file: of one partition, about ``target_bytes``."""
    by_partition: dict[int, list[Split]] = {}
    for split in splits:
        by_partition.setdefault(split.partition.index, []).append(split)
    return [pack for of_one in by_partition.values() for pack in pack_splits(of_one, target_bytes)]


def convert(
    context: SparkContext,
    job: Job,
    tasks: Sequence[Sequence[Split]],
    *,
    progress: Progress = lambda done, total: None,
) -> tuple[Converted, ...]:
    """Run the tasks; what came of each, in their order.

    Raises the tasks' own error once Spark has given up retrying.
    """
    if not tasks:
        return ()
    group = f"pulsar-lake-{uuid.uuid4().hex}"
    context.setJobGroup(group, f"offload {job.topic}: {len(tasks)} tasks", interruptOnCancel=True)
    work = context.parallelize([tuple(task) for task in tasks], len(tasks)).map(
        lambda task: convert_task(job, task)
    )
    with _Watch(context, group, len(tasks), progress):
        try:
            written = work.collect()
        except Exception as error:
            if (found := own_error(error)) is not None:
                raise found from error
            raise
    reached("files-written")
    return tuple(written)


def convert_task(job: Job, splits: Sequence[Split]) -> Converted:
    """Write the rows of ``splits``, of one partition and ledgers ascending, as one file."""
    first = splits[0]
    chunks: dict[bytes, State] = {}
    file = write_rows(job, first.partition, first.ledger_id, _batches(job, splits, chunks))
    return Converted(first.partition, file, chunks)


def write_rows(
    job: Job, partition: Partition, ledger_id: int, batches: Iterable[tuple[int, pa.RecordBatch]]
) -> WrittenFile | None:
    """Write (ledger id, batch) pairs as a file of the topic's table; None without a row."""
    filesystem, root = open_filesystem(job.config.storage)
    storage = job.config.storage
    directory = root + table_uri(storage, job.topic).removeprefix(storage_root(storage))
    name = f"p{max(0, partition.index)}-{ledger_id}-{uuid.uuid4()}"
    return write_file(
        filesystem,
        directory,
        f"{name}.zstd.parquet",
        job.rows.columns,
        batches,
        job.statistics,
    )


def _batches(
    job: Job, splits: Sequence[Split], chunks: dict[bytes, State]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    reading = read_splits(
        job.config,
        splits,
        job.rows,
        fall_back=False,
        decrypt=job.config.encryption.store_plaintext,
        chunks=chunks,
    )
    for split, batch in reading:
        yield split.ledger_id, batch


class _Watch:
    """Reports the job's progress from a thread of its own, while the caller waits in the JVM."""

    def __init__(self, context: SparkContext, group: str, total: int, progress: Progress) -> None:
        self._tracker = context.statusTracker()
        self._group = group
        self._total = total
        self._progress = progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="offload-progress")

    def __enter__(self) -> None:
        self._progress(0, self._total)
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join(timeout=5)
        if error[0] is None:
            self._progress(self._total, self._total)

    def _watch(self) -> None:
        while not self._over.wait(_POLL_SECONDS):
            active, done = self._tasks()
            if active:
                reached("tasks-running")
            self._progress(done, self._total)

    def _tasks(self) -> tuple[int, int]:
        active = done = 0
        for job in self._tracker.getJobIdsForGroup(self._group):
            info: Any = self._tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                found: Any = self._tracker.getStageInfo(stage)
                if found is not None:
                    active += found.numActiveTasks
                    done += found.numCompletedTasks
        return active, done


_OWN = re.compile(r"reader\.errors\.(\w+): (.*)")


def own_error(error: Exception) -> PulsarLakeError | None:
    """The error that a task raised, out of the text that Spark made of it."""
    found = _OWN.findall(str(error))
    if not found:
        return None
    name, message = found[-1]
    kind = getattr(errors, name, UnavailableError)
    if not (isinstance(kind, type) and issubclass(kind, PulsarLakeError)):
        return None
    return kind(message.strip())
