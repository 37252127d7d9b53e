"""Rows written to a topic as a write of Spark's does it, without Spark: staged, decided, sent."""

import uuid
from collections.abc import Iterable

import pyarrow as pa

from reader import sink
from reader.clients import Clients
from reader.model import Topic


def stage(
    clients: Clients,
    write: sink.NamedWrite,
    topic: str,
    batches: Iterable[pa.RecordBatch],
    **options: str,
) -> sink.StagedFile:
    """What one task stages of these rows."""
    asked = sink.SinkOptions.of({"topic": topic, **options})
    staging = sink.StagingWriter(clients, write.directory)
    target = sink.resolve_target(clients, Topic.parse(topic))
    writer = sink.RowWriter(clients, asked, target, staging, None, 0)
    for batch in batches:
        writer.write(batch)
    writer.finish()
    return staging.finish(writer.rows)


def send_staged(
    clients: Clients, write: sink.NamedWrite, version: int, staged: Iterable[sink.StagedFile]
) -> None:
    """Decide a version, and send it."""
    decided = write.decide(version, list(staged), encrypted=False)
    if decided is None:
        return
    manifest, first = decided
    if manifest.sent or manifest.version > version:
        return
    for entries in manifest.partitions:
        sink.send_partition(clients, sink.PartitionTask.of(manifest, entries, fresh=first))
    write.sent(manifest)


def write_rows(
    clients: Clients, topic: str, batches: Iterable[pa.RecordBatch], **options: str
) -> None:
    """Rows of one task to a topic, each once."""
    sink.require_deduplication(clients, Topic.parse(topic), enable=True)
    write = sink.NamedWrite(clients, uuid.uuid4().hex)
    send_staged(clients, write, 0, [stage(clients, write, topic, batches, **options)])
