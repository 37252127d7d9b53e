"""The published topics and their known contents."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import _pulsar
import pulsar
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data.encode import as_avro, as_json
from benchmarks.data.events import EVENT, READING, Kind
from benchmarks.data.layouts import STRIPED, TUNED, WHOLE, Layout
from benchmarks.measure import BrokenCaseError
from testbed.admin import Admin
from testbed.publish import avro_schema, json_schema

_SEED = 20_260_101
_BATCH = 270  # about 120 KB before LZ4, the client's default limit of a batch
_BATCH_BYTES = 4 << 20
_PENDING = 20_000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic without partitions.

    batch: messages to an entry, 0 for one; batch_bytes: an entry ends before it is larger, with
    the headers of its messages; ledgers: into how many it is cut, all of them sealed.
    keyed: messages have the user as key and `at` as event time.
    """

    name: str
    kind: Kind
    encoding: Literal["JSON", "AVRO"]
    rows: int
    quick_rows: int
    batch: int = _BATCH
    compression: str = "LZ4"
    ledgers: int = 1
    quick_ledgers: int = 1
    keyed: bool = True
    batch_bytes: int = _BATCH_BYTES
    layout: Layout = WHOLE

    def sample(self) -> pa.RecordBatch:
        """The first rows that are published."""
        return next(self.kind.batches(self.rows, _SEED))


JSON = TopicSpec("json", EVENT, "JSON", 1_500_000, 30_000, ledgers=20, quick_ledgers=4)
AVRO = TopicSpec("avro", EVENT, "AVRO", 1_500_000, 30_000, ledgers=20, quick_ledgers=4)
TUNED_JSON = replace(JSON, name="tuned-json", layout=TUNED)
TUNED_AVRO = replace(AVRO, name="tuned-avro", layout=TUNED)
UNBATCHED = TopicSpec(
    "unbatched",
    READING,
    "JSON",
    400_000,
    4_000,
    batch=0,
    compression="NONE",
    ledgers=8,
    quick_ledgers=2,
    keyed=False,
)
LONG = TopicSpec("long", EVENT, "JSON", 6_000_000, 30_000, ledgers=125, quick_ledgers=10)
"""What queries read: so long that their fixed costs (Spark's, mostly) are a small share, and that
one per cent of the rows lies in two or three ledgers, as in a topic of years."""

STRIPED_JSON = replace(
    JSON, name="striped-json", rows=750_000, ledgers=10, quick_ledgers=2, layout=STRIPED
)
STRIPED_UNBATCHED = replace(
    UNBATCHED, name="striped-unbatched", rows=100_000, ledgers=4, quick_ledgers=2, layout=STRIPED
)
STRIPED_BATCHES = replace(
    STRIPED_UNBATCHED, name="striped-batches", rows=140_000, batch=3, batch_bytes=343
)
"""Entries of two or three readings: the third fits or not, by the lengths of all three."""

SHARED = {
    spec.name: spec
    for spec in (
        JSON,
        AVRO,
        TUNED_JSON,
        TUNED_AVRO,
        UNBATCHED,
        LONG,
        STRIPED_JSON,
        STRIPED_UNBATCHED,
        STRIPED_BATCHES,
    )
}


@dataclass(frozen=True, slots=True)
class Published:
    """A topic as it was published.

    name: `tenant/namespace/topic`; payload_bytes: of all values as the schema wrote them;
    ledgers, entries: how many there are, all sealed;
    truth: the rows' columns without `session`, `trace`, `url` and `agent`.
    """

    spec: TopicSpec
    name: str
    rows: int
    payload_bytes: int
    truth: pa.Table
    ledgers: int
    entries: int

    @property
    def sum_of_ids(self) -> int:
        return self.rows * (self.rows - 1) // 2

    def total(self, column: str) -> int:
        return int(pc.sum(self.truth[column]).as_py())


_LONG_TEXTS = {"session", "trace", "url", "agent"}


def publish(client: Any, admin: Admin, topic: str, spec: TopicSpec, *, quick: bool) -> Published:
    """Make the topic, send everything in order, and seal its ledgers."""
    rows = spec.quick_rows if quick else spec.rows
    ledgers = spec.quick_ledgers if quick else spec.ledgers
    cuts = [rows * (number + 1) // ledgers for number in range(ledgers)]
    admin.create_topic(topic)
    kept: list[pa.RecordBatch] = []
    sent = size = 0
    with _producer(client, topic, spec) as producer:
        for batch in spec.kind.batches(rows, _SEED):
            payloads = _payloads(spec, batch)
            size += int(pc.sum(pc.binary_length(payloads)).as_py())
            names = [name for name in batch.schema.names if name not in _LONG_TEXTS]
            kept.append(batch.select(names))
            first = sent
            while first < sent + len(batch):
                stop = min(cuts[0], sent + len(batch))
                piece = slice(first - sent, stop - sent)
                _send(producer, payloads[piece], batch[piece] if spec.keyed else None)
                first = stop
                if stop == cuts[0]:
                    cuts.pop(0)
                    producer.flush()
                    admin.seal(topic)
            sent += len(batch)
    sealed = admin.internal_stats(topic)["ledgers"][:-1]  # the last one is open, and empty
    if len(sealed) != ledgers:
        raise BrokenCaseError(f"topic {topic} has {len(sealed)} ledgers instead of {ledgers}")
    entries = sum(int(one["entries"]) for one in sealed)
    return Published(spec, topic, rows, size, pa.Table.from_batches(kept), ledgers, entries)


@contextlib.contextmanager
def _producer(client: Any, topic: str, spec: TopicSpec) -> Iterator[Any]:
    make = json_schema if spec.encoding == "JSON" else avro_schema
    settings: dict[str, Any] = {
        "schema": make(spec.kind.schema),
        "compression_type": pulsar.CompressionType.__members__[spec.compression],
        "send_timeout_millis": 0,  # a topic that is sealed cannot be written to for a moment
        "block_if_queue_full": True,
        "max_pending_messages": _PENDING,
        "batching_enabled": spec.batch > 0,
    }
    if spec.batch:
        settings |= {
            "batching_max_messages": spec.batch,
            "batching_max_allowed_size_in_bytes": spec.batch_bytes,
            # Batches are cut by their count; the rest leaves with the flush at the end.
            "batching_max_publish_delay_ms": 60_000,
        }
    producer = client.create_producer(topic, **settings)
    try:
        yield producer
    finally:
        producer.close()


def _payloads(spec: TopicSpec, rows: pa.RecordBatch) -> pa.Array:
    return as_json(rows) if spec.encoding == "JSON" else as_avro(rows, spec.kind.schema)


def _send(producer: Any, payloads: pa.Array, keys: pa.RecordBatch | None) -> None:
    # Straight to the extension: the client's own `send_async` checks types for longer than it
    # sends. Each case checks that all arrived: it counts its rows.
    send, build = producer._producer.send_async, _pulsar.MessageBuilder
    if keys is None:
        for payload in payloads.to_pylist():
            builder = build()
            builder.content(payload)
            send(builder.build(), None)
        return
    users = keys["user"].cast(pa.string()).to_pylist()
    for payload, user, at in zip(payloads.to_pylist(), users, keys["at"].to_pylist(), strict=True):
        builder = build()
        builder.content(payload)
        builder.partition_key(user)
        builder.event_timestamp(at)
        send(builder.build(), None)
