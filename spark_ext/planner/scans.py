"""Tasks as Spark's Python workers run them: a pickled function, and what each task calls it with.

This is the form in which Spark runs a Python data source. Spark's own way there starts three Python
processes to look the source up, make it and plan it; the planner is warm and has the snapshot.
"""

import json
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from functools import partial

from pyspark.sql.types import StructType

from reader.clients import Clients
from reader.model import Tier
from reader.plan import CountRead, Read, Snapshot
from reader.stream import TopicBatch
from spark_ext.datasource.tasks import TaskFormat, plan_tasks, run_stream_task, run_task
from spark_ext.planner.predicates import predicates_of
from spark_ext.planner.protocol import HotRead, PythonFunction, TaskPlan


def hot_scan(clients: Clients, snapshot: Snapshot, read: HotRead, parallelism: int) -> TaskPlan:
    """Return the scan of a snapshot's hot rows."""
    schema = StructType.fromJson(json.loads(read.columns))
    wanted = predicates_of(read.filters)
    form = TaskFormat.of(clients.settings, snapshot, schema, wanted)
    reads = plan_tasks(clients, snapshot, schema.names, wanted, parallelism)
    rows = sum(read.rows for read in reads if isinstance(read, CountRead))
    tasks = [read for read in reads if not isinstance(read, CountRead)]
    return pickled_scan(partial(run_task, form), schema, tasks, rows)


def tier_scan(
    clients: Clients, batches: Sequence[TopicBatch], read: HotRead, parallelism: int
) -> TaskPlan:
    """Return the scan of what a micro-batch reads of one tier; of the table: ciphertext."""
    schema = StructType.fromJson(json.loads(read.columns))
    wanted, tier = predicates_of(read.filters), Tier(read.name)
    forms: list[TaskFormat] = []
    tasks: list[tuple[int, Read]] = []
    for one in batches:
        names = [name for name in schema.names if name in one.snapshot.columns.names]
        part = StructType([schema[name] for name in names])
        reads = one.hot_reads(clients, tier, names, wanted, parallelism)
        tasks += [(len(forms), read) for read in reads]
        forms.append(TaskFormat.of(clients.settings, one.snapshot, part, wanted))
    return pickled_scan(partial(run_stream_task, tuple(forms), schema), schema, tasks)


def pickled_scan(
    function: Callable[..., object], schema: StructType, tasks: Sequence[object], rows: int = 0
) -> TaskPlan:
    """Return a scan whose tasks call the function, which gives rows of the schema.

    rows: so many more rows need no reading
    """
    pickled = tuple(pickle.dumps(task) for task in tasks)
    return TaskPlan(pickled_function(function, schema), pickled, rows)


def pickled_function(function: Callable[..., object], schema: StructType) -> PythonFunction:
    """Return what Spark's Python workers run, and what it gives."""
    return PythonFunction(
        pickle.dumps((function, schema)),
        # What Spark starts on its workers: the path of this machine's may be another one there.
        os.environ.get("PYSPARK_PYTHON", sys.executable),
        "{}.{}".format(*sys.version_info),
    )
