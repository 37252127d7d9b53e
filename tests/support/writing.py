"""Rows written to a topic as a write of Spark's does it, without Spark: staged, decided, sent."""

import uuid
from collections.abc import Iterable

import pyarrow as pa

from reader.clients import Clients
from reader.model import Topic
from reader.sink import (
    NamedWrite,
    PartitionTask,
    RowWriter,
    SinkOptions,
    StagedFile,
    StagingWriter,
    require_deduplication,
    resolve_target,
    send_partition,
)


def stage(
    clients: Clients,
    write: NamedWrite,
    topic: str,
    batches: Iterable[pa.RecordBatch],
    **options: str,
) -> StagedFile:
    """What one task stages of these rows."""
    asked = SinkOptions.of({"topic": topic, **options})
    staging = StagingWriter(clients, write.directory)
    target = resolve_target(clients, Topic.parse(topic))
    writer = RowWriter(clients, asked, target, staging, lambda: None, 0)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return staging.finish(writer.rows)


def send_staged(
    clients: Clients, write: NamedWrite, version: int, staged: Iterable[StagedFile]
) -> None:
    """Decide a version, and send it."""
    decided = write.decide(version, list(staged), encrypted=False)
    if decided is None:
        return
    manifest, first = decided
    if manifest.sent or manifest.version > version:
        return
    for entries in manifest.partitions:
        send_partition(clients, PartitionTask.of(manifest, entries, fresh=first))
    write.sent(manifest)


def write_rows(
    clients: Clients, topic: str, batches: Iterable[pa.RecordBatch], **options: str
) -> None:
    """Rows of one task to a topic, each once."""
    require_deduplication(clients, Topic.parse(topic), enable=True)
    write = NamedWrite(clients, uuid.uuid4().hex)
    send_staged(clients, write, 0, [stage(clients, write, topic, batches, **options)])
