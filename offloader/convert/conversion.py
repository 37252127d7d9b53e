"""The Spark job that turns ledgers into files: Spark distributes, Arrow moves the data.

One job converts what the turns of several topics want (``Work``); small topics share its tasks,
too. A pack of splits is one Parquet file, written straight to the storage; its path, size and
statistics come back. A pack that runs twice (a retry, speculation) makes two files of different
names, and only the one whose result reached the driver can be committed.

A pack that fails is tried again where it is, and what it failed with is a value: it is its own
topic's failure, and the files of the others are good.
"""

from __future__ import annotations

import heapq
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from offloader import killpoint
from offloader.config import Config
from offloader.convert.incomplete_chunks import States
from offloader.model.files import WrittenFile
from offloader.model.turn import TaskCallback
from offloader.parquet.file_names import data_file
from offloader.parquet.writer import write_file
from reader import errors
from reader.decode import ChunkSequence
from reader.errors import (
    ConfigurationError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
    plain_text,
)
from reader.model import Partition, Split, Topic
from reader.plan.splitting import pack_splits
from reader.sources.fallback import read_splits
from reader.sources.rows import RowFormat
from reader.storage import open_storage

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = [
    "Converted",
    "Job",
    "Outcome",
    "Work",
    "convert",
    "own_error",
    "plan_packs",
    "write_rows",
]


_POLL_SECONDS = 0.25
_TRIES = 4
_ALONE_BYTES = 32 << 20
_PACK_COST = 1 << 20  # what a pack costs besides its bytes, in bytes


@dataclass(frozen=True, slots=True)
class Job:
    """What every task needs to know; goes to the workers by pickle and is never printed."""

    config: Config
    topic: Topic
    rows: RowFormat
    statistics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """What came of one pack: a file, if there was any row, and the ``partition``'s chunked
    messages as it left them."""

    partition: Partition
    file: WrittenFile | None
    chunks: States


Pack = tuple[Split, ...]
"""Splits of one partition, ledgers ascending: one file."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the turn of one topic wants converted.

    ``urgency``: the topic's share of its limit. ``suspect``: its last turn failed. ``begun`` is
    called when the job starts that it is part of.
    """

    job: Job
    packs: tuple[Pack, ...]
    urgency: float = 0.0
    suspect: bool = False
    begun: Callable[[], None] = lambda: None
    progress: TaskCallback = lambda done, total: None

    @property
    def bytes(self) -> int:
        return sum(split.bytes for pack in self.packs for split in pack)


Outcome = tuple[Converted, ...] | PulsarLakeError
"""What came of one work: its packs' results in their order, or why there are none."""


def plan_packs(splits: Sequence[Split], target_bytes: int) -> tuple[Pack, ...]:
    """The splits as packs of about ``target_bytes``, each of one partition."""
    by_partition: dict[int, list[Split]] = {}
    for split in splits:
        by_partition.setdefault(split.partition.index, []).append(split)
    packs = [pack for some in by_partition.values() for pack in pack_splits(some, target_bytes)]
    return tuple(tuple(pack) for pack in packs)


def convert(
    context: SparkContext,
    works: Sequence[Work],
    *,
    pool: str = "",
    reached: Callable[[killpoint.Step], None] = killpoint.reached,
) -> list[Outcome]:
    """Run the works as one Spark job; what came of each, in their order.

    ``pool``: Spark's scheduler pool, where jobs run side by side. Raises what the whole job failed
    with, the tasks' own error if there is one, once Spark has given up retrying.
    """
    for work in works:
        work.begun()
    tasks = _share_out(works, context.defaultParallelism)
    jobs = [work.job for work in works]
    group = f"pulsar-lake-{uuid.uuid4().hex}"
    named = ", ".join(str(job.topic) for job in jobs[:3]) + (", …" if len(jobs) > 3 else "")
    context.setJobGroup(group, f"offload {named}: {len(tasks)} tasks", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", pool or None)  # type: ignore[arg-type]
    run = context.parallelize(tasks, len(tasks)).map(
        lambda task: [(work, pack, try_pack(jobs[work], splits)) for work, pack, splits in task]
    )

    def progress(done: int, total: int) -> None:
        for work in works:
            work.progress(done, total)

    with _ProgressThread(context, group, len(tasks), progress, reached):
        try:
            done = run.collect()
        except Exception as error:
            if (found := own_error(error)) is not None:
                raise found from error
            raise
    reached("files-written")
    results = {(work, pack): result for task in done for work, pack, result in task}
    return [
        _outcome([results[number, pack] for pack in range(len(work.packs))])
        for number, work in enumerate(works)
    ]


def _outcome(results: Sequence[Converted | PulsarLakeError]) -> Outcome:
    good = [one for one in results if isinstance(one, Converted)]
    bad = [one for one in results if isinstance(one, PulsarLakeError)]
    return bad[0] if bad else tuple(good)


def _share_out(works: Sequence[Work], parallelism: int) -> list[list[tuple[int, int, Pack]]]:
    """Spark's tasks: (work, pack, splits). Large packs have one alone, small ones share."""
    packs = [
        (sum(split.bytes for split in pack), number, place, pack)
        for number, work in enumerate(works)
        for place, pack in enumerate(work.packs)
    ]
    # Few enough that starting them costs little, enough that all cores end together.
    bins: list[list[tuple[int, int, Pack]]] = [[] for _ in range(min(len(packs), 4 * parallelism))]
    filled = [(0, number) for number in range(len(bins))]
    tasks = []
    for size, number, place, pack in sorted(packs, key=lambda one: one[0], reverse=True):
        if size >= _ALONE_BYTES:
            tasks.append([(number, place, pack)])
            continue
        load, chosen = filled[0]
        bins[chosen].append((number, place, pack))
        heapq.heapreplace(filled, (load + size + _PACK_COST, chosen))
    return tasks + [one for one in bins if one]


def try_pack(job: Job, splits: Pack) -> Converted | PulsarLakeError:
    """``convert_pack``, or what it failed with the last time."""
    for left in reversed(range(_TRIES)):
        try:
            return convert_pack(job, splits)
        except (ConfigurationError, UnsupportedError) as error:
            return error
        except PulsarLakeError as error:
            if not left:
                return error
        except Exception as error:  # noqa: BLE001 - of whatever kind: the others' files are good
            if not left:
                return UnavailableError(f"{type(error).__name__}: {plain_text(error)}")
    raise AssertionError("unreachable")


def convert_pack(job: Job, splits: Pack) -> Converted:
    """Write the rows of ``splits`` as one file."""
    first = splits[0]
    chunks: dict[bytes, ChunkSequence] = {}
    file = write_rows(job, first.partition, first.ledger_id, _batches(job, splits, chunks))
    return Converted(first.partition, file, chunks)


def write_rows(
    job: Job, partition: Partition, ledger_id: int, batches: Iterable[tuple[int, pa.RecordBatch]]
) -> WrittenFile | None:
    """Write (ledger id, batch) pairs as a file of the topic's table; None without a row."""
    filesystem, directory = open_storage(job.config.storage).directory(job.topic)
    return write_file(
        filesystem,
        directory,
        data_file(partition.index, ledger_id),
        job.rows.columns,
        batches,
        job.statistics,
    )


def _batches(
    job: Job, splits: Sequence[Split], chunks: dict[bytes, ChunkSequence]
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


class _ProgressThread:
    """Reports the job's progress from a thread of its own, while the caller waits in the JVM."""

    def __init__(
        self,
        context: SparkContext,
        group: str,
        total: int,
        progress: TaskCallback,
        reached: Callable[[killpoint.Step], None],
    ) -> None:
        self._tracker = context.statusTracker()
        self._group = group
        self._total = total
        self._progress = progress
        self._reached = reached
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
                self._reached("tasks-running")
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
