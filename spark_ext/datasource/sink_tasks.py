"""What Spark's Python workers run of a write: rows staged or sent, and what is staged sent.

Both have the form in which Spark runs a Python data source (``spark_ext.datasource.tasks``). The
shim gives rows to the one, and partitions of the manifest to the other.
"""

import pickle
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from reader.clients import process_clients
from reader.config import ReadConfig
from reader.encode import Encryption
from reader.errors import PulsarLakeError
from reader.sink import (
    Delivery,
    DirectSender,
    EntrySink,
    PartitionTask,
    RowWriter,
    SinkOptions,
    StagedFile,
    StagingWriter,
    Target,
    send_partition,
)
from spark_ext.session.errors import carried

MESSAGE = StructType([StructField("message", BinaryType())])
SENT = StructType([StructField("partition", StringType()), StructField("messages", LongType())])


@dataclass(frozen=True, slots=True)
class WriteFormat:
    """What all tasks of a write share. ``target``: None: each row's ``__topic`` says.

    ``directory``: where they stage. ``public_keys``: PEM by name, for which entries are sealed.
    """

    settings: ReadConfig
    options: SinkOptions
    target: Target | None
    directory: str
    public_keys: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class SendTask:
    """``resume``: options by which a batch that failed goes on; "": a stream does by itself."""

    task: PartitionTask
    resume: str


def write_rows(
    form: WriteFormat,
    batches: Iterator[pa.RecordBatch],
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> StagedFile:
    """Rows of one task, staged; or sent, where at least once is enough (nothing is staged then).

    ``now``, ``sleep``: as ``DirectSender`` takes them.
    """
    clients = process_clients(form.settings)
    turn = random.randrange(1 << 20)  # else the first partition would get all of small writes
    # One for all partitions: a data key is sealed for each public key.
    encryption = Encryption(form.public_keys) if form.public_keys else None

    def written(sink: EntrySink) -> int:
        writer = RowWriter(clients, form.options, form.target, sink, encryption, turn)
        for batch in batches:
            writer.write(batch)
        writer.finish()
        return writer.rows

    if form.options.delivery is Delivery.AT_LEAST_ONCE:
        encrypted = encryption is not None
        with DirectSender(clients, encrypted=encrypted, now=now, sleep=sleep) as sender:
            with _hinted("rows before it may have been sent"):
                rows = written(sender)
            sender.finish()
        return StagedFile("", b"", {}, rows, {})
    staging = StagingWriter(clients, form.directory)
    with _hinted("nothing of this write was sent"):
        return staging.finish(written(staging))


def run_writing(form: WriteFormat, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """As Spark calls it: rows in, one commit message out."""
    with carried():
        staged = write_rows(form, batches)
    yield pa.record_batch([pa.array([pickle.dumps(staged)], pa.binary())], names=MESSAGE.names)


def send_task(
    settings: ReadConfig,
    task: SendTask,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[str, int]:
    """(partition, messages of it that are stored). ``now``, ``sleep``: as ``send_partition``."""
    resume = (
        f"some rows may have been sent: with the options {task.resume} the write goes on where it "
        "stopped"
    )
    with _hinted(resume if task.resume else ""):
        fresh = task.task.fresh and not is_retry()
        sent = send_partition(
            process_clients(settings), replace(task.task, fresh=fresh), now=now, sleep=sleep
        )
    return sent.partition, sent.ids


def run_sending(
    settings: ReadConfig, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """As Spark calls it: the one value of its one batch is the pickled task."""
    for batch in batches:
        for value in batch.column(0):
            task: SendTask = pickle.loads(value.as_py())
            with carried(partition=task.task.entries.partition):
                partition, messages = send_task(settings, task)
            yield pa.record_batch([[partition], [messages]], names=SENT.names)


@contextmanager
def _hinted(more: str) -> Iterator[None]:
    """An error of ours gets one more hint."""
    try:
        yield
    except PulsarLakeError as error:
        error.hint = "; ".join(filter(None, (error.hint, more))) or None
        raise


def is_retry() -> bool:
    """Return whether this is not the first attempt of the running task."""
    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0
