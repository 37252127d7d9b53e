"""What Spark's Python workers run: a pack of splits, read one after the other.

``pickled_plan`` is what the catalog's hot table gets: a function and what each task calls it with,
in the form in which Spark runs a Python data source. Spark's own way there starts three Python
processes to look the source up, make it and plan it; the planner is warm and has the snapshot.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from reader.clients import Clients, process_clients
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.model import Tier
from reader.plan import CountRead, Predicate, Read, Snapshot, make_plan, plan_reads
from reader.sources import RowFormat, conform, read_rows
from reader.stream import TopicBatch
from spark_ext.predicates import parse_predicates
from spark_ext.session.errors import carried

__all__ = [
    "TaskFormat",
    "pickled",
    "pickled_plan",
    "pickled_scan",
    "plan_tasks",
    "read_task",
    "run_task",
]


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


def pickled_plan(
    clients: Clients, snapshot: Snapshot, columns: str, predicates: str, parallelism: int
) -> dict[str, Any]:
    """A scan of the snapshot's hot rows: {function, partitions, python, version}.

    Of rows that need no reading there is their number instead of a pickle.
    Pickles are base64. They hold the configuration, so they go to the JVM and its workers only:
    never into options, which Spark shows.
    """
    schema = StructType.fromJson(json.loads(columns))
    wanted = parse_predicates(predicates)
    form = TaskFormat.of(clients.settings, snapshot, schema, wanted)
    reads = plan_tasks(clients, snapshot, schema.names, wanted, parallelism)
    tasks = [read.rows if isinstance(read, CountRead) else _pickled(read) for read in reads]
    return _scan(partial(run_task, form), schema, tasks)


def pickled_tasks(
    clients: Clients,
    batches: Sequence[TopicBatch],
    tier: Tier,
    columns: str,
    predicates: str,
    parallelism: int,
) -> dict[str, Any]:
    """``pickled_plan`` of what a stream's batch reads of one tier; of the table: ciphertext."""
    schema = StructType.fromJson(json.loads(columns))
    wanted = parse_predicates(predicates)
    forms: list[TaskFormat] = []
    tasks: list[tuple[int, Read]] = []
    for one in batches:
        names = [name for name in schema.names if name in one.snapshot.columns.names]
        part = StructType([schema[name] for name in names])
        reads = one.hot_reads(clients, tier, names, wanted, parallelism)
        tasks += [(len(forms), read) for read in reads]
        forms.append(TaskFormat.of(clients.settings, one.snapshot, part, wanted))
    function = partial(run_stream_task, tuple(forms), schema)
    return _scan(function, schema, [_pickled(task) for task in tasks])


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


def pickled(function: Callable[..., object], schema: StructType) -> dict[str, Any]:
    """{function, python, version}: what Spark's Python workers run, and what it gives."""
    return {
        "function": _pickled((function, schema)),
        # What Spark starts on its workers: the path of this machine's may be another one there.
        "python": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "version": "{}.{}".format(*sys.version_info),
    }


def pickled_scan(
    function: Callable[..., object], schema: StructType, tasks: Sequence[object]
) -> dict[str, Any]:
    """``pickled`` with the tasks that it is called with, one each."""
    return _scan(function, schema, [_pickled(task) for task in tasks])


def _scan(
    function: Callable[..., object], schema: StructType, partitions: list[int | str]
) -> dict[str, Any]:
    return pickled(function, schema) | {"partitions": partitions}


def _pickled(value: object) -> str:
    return base64.b64encode(pickle.dumps(value)).decode()
