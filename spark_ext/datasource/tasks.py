"""What Spark's Python workers run: a pack of splits, read one after the other.

The planner pickles them (``spark_ext.planner.scans``).
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from reader.clients import Clients, process_clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.plan import Predicate, Read, Snapshot, make_plan, plan_reads
from reader.sources import RowFormat, conform, read_rows
from spark_ext.session.errors import carried


@dataclass(frozen=True, slots=True)
class TaskFormat:
    """What all tasks of a scan share."""

    settings: ReadConfig
    rows: RowFormat

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
        return cls(config, RowFormat.of(config, snapshot, columns, predicates))


def plan_tasks(
    clients: Clients,
    snapshot: Snapshot,
    columns: Collection[str],
    predicates: Sequence[Predicate] = (),
    parallelism: int = 1,
) -> tuple[Read, ...]:
    """Return the reads of the snapshot's plan for these columns and predicates."""
    snapshot = replace(snapshot, table=None)  # reads travel
    plan = make_plan(
        clients, snapshot, columns, predicates, parallelism=parallelism, describe=False
    )
    return plan_reads(plan, parallelism)


def read_task(form: TaskFormat, read: Read) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's read."""
    return read_rows(process_clients(form.settings), read, form.rows)


def run_task(form: TaskFormat, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As Spark calls it: the one value of its one batch is the pickled task."""
    for batch in batches:
        for value in batch.column(0):
            read: Read = pickle.loads(value.as_py())
            with carried(**read.place):
                yield from read_task(form, read)


def run_stream_task(
    forms: Sequence[TaskFormat], schema: StructType, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """``run_task`` of the topic that a task is of; columns that it lacks are NULL."""
    columns = to_arrow_schema(schema, timezone="UTC")
    for batch in batches:
        for value in batch.column(0):
            number, read = pickle.loads(value.as_py())
            with carried(**read.place):
                for rows in read_task(forms[number], read):
                    yield rows if rows.schema.equals(columns) else conform(rows, columns)
