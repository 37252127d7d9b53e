"""Tasks of a write as Spark's Python workers run them: rows staged, and what is staged sent."""

from functools import partial

from reader.config import ReadConfig
from reader.sink import Manifest, PartitionTask
from spark_ext.datasource.sink_tasks import (
    MESSAGE,
    SENT,
    SendTask,
    WriteFormat,
    run_sending,
    run_writing,
)
from spark_ext.planner.protocol import PythonFunction, Sending
from spark_ext.planner.scans import pickled_function, pickled_scan


def writing(form: WriteFormat) -> PythonFunction:
    """Return what the tasks run that take rows."""
    return pickled_function(partial(run_writing, form), MESSAGE)


def sending(settings: ReadConfig, manifest: Manifest, fresh: bool, resume: str) -> Sending:
    """Return the tasks that send a manifest, one for each partition."""
    tasks = [
        SendTask(PartitionTask.of(manifest, entries, fresh=fresh), resume)
        for entries in manifest.partitions
    ]
    function = partial(run_sending, ReadConfig.load(settings))
    return Sending(pickled_scan(function, SENT, tasks), SENT.json())
