"""What Spark's Python workers run: a pack of splits, read one after the other.

The planner pickles them (``spark_ext.planner.scans``).
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from reader.clients import Clients, process_clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Position, Split
from reader.plan import (
    TASK_BYTES,
    CompactedPart,
    Plan,
    Predicate,
    Snapshot,
    make_plan,
    pack_splits,
    publish_range,
)
from reader.sources import (
    ColdFiles,
    RowFormat,
    bare_rows,
    conform,
    read_ciphertext,
    read_cold,
    read_compacted,
    read_splits,
)
from reader.table import TopicTable
from spark_ext.session.errors import carried

__all__ = [
    "Task",
    "TaskFormat",
    "plan_tasks",
    "read_task",
    "run_stream_task",
    "run_task",
    "tasks_of",
]

# A task that reads less than this is mostly overhead.
_SMALL_TASK_BYTES = 8 << 20
_LAST_POSITION = Position((1 << 63) - 1, 0)


@dataclass(frozen=True, slots=True)
class Task:
    """What one task reads: hot splits, files of the table, ciphertext of its ``version``, or what
    Pulsar's compaction has kept.

    ``within``: only what lies from a position to another (inclusive) of the ciphertext's partition,
    ``given_up_to``: with the messages that were given up which begin up to there (None: with all).
    ``rows``: so many rows without a column that need no reading.
    """

    splits: tuple[Split, ...] = ()
    cold: ColdFiles | None = None
    ciphertext: Partition | None = None
    version: int = -1
    within: tuple[Position, Position] | None = None
    given_up_to: Position | None = None
    compacted: CompactedPart | None = None
    rows: int = 0

    @property
    def place(self) -> dict[str, object]:
        """What the task reads, for the context of its errors."""
        if self.splits:
            first, last = self.splits[0], self.splits[-1]
            return {
                "partition": first.partition.full_name,
                "ledgers": [first.ledger_id, last.ledger_id],
            }
        if self.ciphertext is not None:
            return {"partition": self.ciphertext.full_name, "version": self.version}
        if self.compacted is not None:
            return {"partition": self.compacted.partition.full_name}
        return {"files": len(self.cold.paths)} if self.cold is not None else {}


@dataclass(frozen=True, slots=True)
class TaskFormat:
    """What all tasks of a scan share."""

    settings: ReadConfig
    rows: RowFormat
    publish_range: tuple[int | None, int | None]

    @classmethod
    def of(
        cls,
        settings: ReadConfig,
        snapshot: Snapshot,
        schema: StructType,
        predicates: Sequence[Predicate] = (),
    ) -> TaskFormat:
        """Rows of exactly ``schema``. Raises ConfigurationError for a column that is not there."""
        unknown = [name for name in schema.names if name not in snapshot.columns.names]
        if unknown:
            raise ConfigurationError(
                f"topic {snapshot.topic} has no column {unknown[0]}",
                hint="columns: " + ", ".join(snapshot.columns.names),
            )
        columns = to_arrow_schema(schema, timezone="UTC")
        # Without what Spark's workers have no use for.
        config = ReadConfig.load(settings)
        rows = RowFormat.of(config, snapshot, columns)
        return cls(config, rows, publish_range(predicates))


def plan_tasks(
    clients: Clients,
    snapshot: Snapshot,
    columns: Collection[str],
    predicates: Sequence[Predicate] = (),
    parallelism: int = 1,
) -> list[Task]:
    """The tasks of the snapshot's plan for these columns and predicates."""
    plan = make_plan(
        clients, snapshot, columns, predicates, parallelism=parallelism, describe=False
    )
    directory = clients.storage.directory(plan.topic)[1] if plan.cold else ""
    return tasks_of(plan, parallelism, directory)


def tasks_of(plan: Plan, parallelism: int = 1, directory: str = "") -> list[Task]:
    """The tasks that read what is planned, the table's files first.

    ``directory``: the table's, in the storage's filesystem; only plans with files need it.
    """
    sealed = plan.snapshot.ciphertext
    tasks = [Task(cold=one) for one in _file_packs(plan, directory, sealed is not None)]
    total = sum(split.bytes for split in plan.splits)
    size = max(_SMALL_TASK_BYTES, min(TASK_BYTES, total // max(1, parallelism)))
    tasks += [Task(tuple(pack)) for pack in pack_splits(plan.splits, size)]
    if plan.counted:
        tasks.append(Task(rows=plan.counted))
    if sealed is not None:
        left_out = {one.partition: one for one in plan.snapshot.compacted if one.first < one.before}
        for one in sealed.partitions:
            for within in _around(left_out[one]) if one in left_out else (None,):
                tasks.append(Task(ciphertext=one, version=sealed.version, within=within))
    # First of all: Pulsar may replace a compacted ledger at any time.
    return [*(Task(compacted=one) for one in plan.snapshot.compacted), *tasks]


def _around(part: CompactedPart) -> Iterator[tuple[Position, Position]]:
    """Yield the ranges of a table's rows that a compacted view reads there."""
    if part.first:
        yield Position(0, 0), Position(part.first - 1, _LAST_POSITION.ledger)
    yield Position(part.before, 0), _LAST_POSITION


def _file_packs(plan: Plan, directory: str, no_ciphertext: bool) -> list[ColdFiles]:
    packs: list[list[str]] = []
    size = 0
    for one in plan.cold:
        if not one.read:
            continue
        if not packs or size + one.file.bytes > TASK_BYTES:
            packs.append([])
            size = 0
        packs[-1].append(f"{directory}/{one.file.path}")
        size += one.file.bytes
    return [ColdFiles(tuple(pack), no_ciphertext) for pack in packs]


def read_task(form: TaskFormat, task: Task) -> Iterator[pa.RecordBatch]:
    """The task's rows. Spark compares their schema with what it asked for, to the letter."""
    clients = process_clients(form.settings)
    columns = form.rows.columns
    hot = read_splits(clients, task.splits, form.rows, publish_range=form.publish_range)
    for batch in hot:
        yield _exact(batch, columns)
    if task.rows:
        yield bare_rows(task.rows)
    if task.cold is not None:
        yield from read_cold(clients.storage, task.cold, columns)
    if task.ciphertext is not None:
        yield from _decrypted(form, task, task.ciphertext)
    if task.compacted is not None:
        for batch in read_compacted(
            clients, task.compacted, form.rows, publish_range=form.publish_range
        ):
            yield _exact(batch, columns)


def _decrypted(form: TaskFormat, task: Task, partition: Partition) -> Iterator[pa.RecordBatch]:
    clients = process_clients(form.settings)
    table = TopicTable.open(clients.storage, partition.topic, task.version)
    if table is None:
        raise NotFoundError(
            f"the table of {partition.topic} was deleted since the query was planned"
        )
    for batch in read_ciphertext(
        table,
        partition,
        form.rows,
        clients.decryption(partition.topic),
        within=task.within,
        publish_range=form.publish_range,
        given_up_to=task.given_up_to,
    ):
        yield _exact(batch, form.rows.columns)


def run_task(form: TaskFormat, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As Spark calls it: the one value of its one batch is the pickled task."""
    for batch in batches:
        for value in batch.column(0):
            task: Task = pickle.loads(value.as_py())
            with carried(**task.place):
                yield from read_task(form, task)


def run_stream_task(
    forms: Sequence[TaskFormat], schema: StructType, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """``run_task`` of the topic that a task is of; columns that it lacks are NULL."""
    columns = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        for value in batch.column(0):
            number, task = pickle.loads(value.as_py())
            with carried(**task.place):
                for rows in read_task(forms[number], task):
                    yield rows if rows.schema.equals(columns) else conform(rows, columns)


def _exact(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(columns):
        return batch
    return batch.select(columns.names).cast(columns)
