"""Who writes rows to a topic: our producer, and the clients that one would use without it.

The clients are given payloads that are encoded already; ours may begin with columns.
"""

from __future__ import annotations

import time
from typing import Any

import pulsar
import pyarrow as pa

from benchmarks.contenders.peers import JavaClient
from reader.clients import Clients
from reader.encode import EncodedEntry
from reader.model import Partition, Topic
from reader.pulsar.binary import Publisher
from reader.sink import RowWriter, SinkOptions, Target, resolve_target
from reader.sink.sending import outgoing

__all__ = ["BATCH", "JavaWriter", "own_producer", "python_producer"]

BATCH = 1000
"""Messages of a batch, of each of them."""
_BATCH_BYTES = 4 << 20
_PENDING = 20_000


def own_producer(clients: Clients, topic: str, batches: list[pa.RecordBatch]) -> int:
    """Columns to messages, each receipt waited for: how many."""
    options = SinkOptions.of(
        {"batchingMaxMessages": str(BATCH), "batchingMaxBytes": str(_BATCH_BYTES >> 1)}
    )
    target = resolve_target(clients, Topic.parse(topic))
    with clients.publisher() as publisher:
        sink = _OneProducer(publisher, target)
        writer = RowWriter(clients, options, target, sink, lambda: None, 0)
        for batch in batches:
            writer.write(batch)
        writer.finish()
        return sink.finish()


class _OneProducer:
    """An ``EntrySink`` of a topic without partitions."""

    def __init__(self, publisher: Publisher, target: Target) -> None:
        self._producer = publisher.producer(target.partition(0), schema=target.schema_message)
        self._sequence = 0

    def put(self, target: Target, partition: Partition, entry: EncodedEntry) -> None:
        made = outgoing(self._producer.name, self._sequence, entry, time.time)
        self._sequence += entry.ids
        self._producer.send(made)

    def finish(self) -> int:
        self._producer.flush()
        self._producer.close()
        return self._sequence


def python_producer(client: Any, topic: str, messages: list[tuple[bytes, str, int]]) -> int:
    """``send_async`` for each (payload, key, event time), each receipt waited for: how many."""
    stored = 0

    def taken(result: pulsar.Result, _: object) -> None:
        nonlocal stored
        stored += result == pulsar.Result.Ok

    producer = client.create_producer(
        topic,
        compression_type=pulsar.CompressionType.LZ4,
        batching_enabled=True,
        batching_max_messages=BATCH,
        batching_max_allowed_size_in_bytes=_BATCH_BYTES,
        block_if_queue_full=True,
        max_pending_messages=_PENDING,
    )
    for payload, key, at in messages:
        producer.send_async(payload, taken, partition_key=key, event_timestamp=at)
    producer.flush()
    producer.close()
    return stored


class JavaWriter(JavaClient):
    """It writes again what it has read of a topic."""

    def __init__(self, service_url: str) -> None:
        super().__init__(service_url, "TimedWriter.java", "-Xmx3g -XX:MaxDirectMemorySize=1g")

    def load(self, topic: str, count: int) -> int:
        """Keep so many messages of a topic: how many."""
        return int(self.ask(f"load {topic} {count}")[0])

    def write(self, topic: str) -> int:
        """Write what it keeps, each receipt waited for: how many."""
        return int(self.ask(f"write {topic} {BATCH}")[0])
