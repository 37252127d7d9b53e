"""Chunked messages against the Java client."""

from __future__ import annotations

import datetime as dt
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.model import Partition, Position, Topic
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.oracle import Oracle
from tests.contract.against_java import (
    STRAY,
    Contract,
    body,
    bytes_of,
    check,
    java_rows,
    offload_in_thread,
    query_rows,
)
from tests.contract.test_sources import Key, rows_of


@dataclass
class Chunked:
    """A message to be sent chunk by chunk."""

    oracle: Oracle
    topic: str
    name: str
    body: bytes
    chunks: int
    compression: str = "NONE"
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        none = self.compression == "NONE"
        self.packed = self.body if none else self.oracle.compress(self.body, self.compression)
        self.size = math.ceil(len(self.packed) / self.chunks)

    def send(self, *numbers: int) -> Key:
        """Where the last of them is."""
        for number in numbers:
            ledger, entry, partition, batch = self.oracle.raw_chunk(
                self.topic,
                f"producer of {self.name}",
                f"uuid of {self.name}",
                number,
                self.chunks,
                len(self.packed),
                self.packed[number * self.size : (number + 1) * self.size],
                sequence_id=7,
                compression=self.compression,
                uncompressed_size=len(self.body),
                **self.options,
            )
        return partition, ledger, entry, batch


def test_interleaved_chunks(contract: Contract, topic_name: str) -> None:
    def message(name: str, compression: str) -> Chunked:
        return Chunked(contract.oracle, topic_name, name, body(9_000), 4, compression)

    a, b, c = message("a", "LZ4"), message("b", "ZSTD"), message("c", "NONE")
    a.send(0)
    b.send(0)
    c.send(0)
    contract.oracle.write(topic_name, [{"value": b"between"}])
    b.send(1, 2)
    a.send(1)
    contract.admin.seal(topic_name)
    c.send(1, 2)
    a.send(2)
    contract.admin.seal(topic_name)
    ends = [c.send(3), a.send(3)]
    contract.admin.seal(topic_name)
    ends.append(b.send(3))
    java = contract.holds(topic_name)
    assert [bytes_of(java[end]["data"]) for end in ends] == [c.body, a.body, b.body]
    assert len(java) == 4


A_LEDGER_EACH = pytest.mark.parametrize(
    "sealed",
    [
        pytest.param(True, id="a ledger each"),
        pytest.param(False, id="one ledger", marks=pytest.mark.long),
    ],
)


@pytest.mark.parametrize(
    "compression",
    [
        "NONE",
        "ZSTD",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("LZ4", "ZLIB", "SNAPPY")),
    ],
)
def test_chunking_producer(contract: Contract, topic_name: str, compression: str) -> None:
    messages = [
        {"value": body(size), "key": f"k{size}", "properties": {"n": str(size)}, "event_time": 5}
        for size in (10, 3_000, 20_000, 100_000)
    ]
    contract.oracle.write(topic_name, messages[:2], chunk_size=2_000, compression=compression)
    contract.admin.seal(topic_name)
    contract.oracle.write(topic_name, messages[2:], chunk_size=2_000, compression=compression)
    assert len(contract.holds(topic_name)) == 4


@A_LEDGER_EACH
@pytest.mark.parametrize(
    ("sent", "rows"),
    [
        pytest.param((0, 0, 1, 2), 1, marks=pytest.mark.long),
        ((0, 1, 0, 1, 2), 1),
        pytest.param((0, 1, 1, 2), 1, marks=pytest.mark.long),
        ((0, 1, 2, 2), 1),
        ((0, 1, 2, 0, 1, 2), 2),
        ((0, 1), 0),
        pytest.param((0,), 0, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_resent_and_incomplete_chunks(
    contract: Contract, topic_name: str, sent: Sequence[int], rows: int, sealed: bool
) -> None:
    contract.oracle.write(topic_name, [{"value": b"before"}])
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3, "LZ4")
    for number in sent:
        message.send(number)
        if sealed:
            contract.admin.seal(topic_name)
    contract.oracle.write(topic_name, [{"value": b"after"}])
    assert len(contract.holds(topic_name)) == 2 + rows


@pytest.mark.parametrize(
    "sent",
    [
        (0, 2),
        (0, 1, 2, 2),
        pytest.param((0,), marks=pytest.mark.long),
        pytest.param((0, 1), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_chunks_at_the_very_end(contract: Contract, topic_name: str, sent: Sequence[int]) -> None:
    """The last entry is there, and gives no message."""
    contract.oracle.write(topic_name, [{"value": b"before"}])
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    end = message.send(*sent)
    contract.holds(topic_name, strays=[end] if sent == (0, 2) else [])


def test_last_chunk_alone_in_the_open_ledger(contract: Contract, topic_name: str) -> None:
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 2)
    message.send(0)
    contract.admin.seal(topic_name)
    end = message.send(1)
    assert list(contract.holds(topic_name)) == [end]


@A_LEDGER_EACH
@pytest.mark.parametrize(
    ("sent", "strays"),
    [((0, 2), [1]), ((1, 2), [0, 1]), ((2,), [0]), ((0, 2, 0, 1, 2), [1])],
    ids=str,
)
def test_missing_chunks(
    contract: Contract,
    topic_name: str,
    sent: Sequence[int],
    strays: Sequence[int],
    sealed: bool,
) -> None:
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    ids = []
    for number in sent:
        ids.append(message.send(number))
        if sealed:
            contract.admin.seal(topic_name)
    contract.oracle.write(topic_name, [{"value": b"after"}])
    contract.holds(topic_name, strays=[ids[n] for n in strays])


SOURCES = pytest.mark.parametrize("source", ["bookkeeper", "broker"])


def configured(contract: Contract, source: str) -> Config:
    """The offloader's settings for either source."""
    return contract.config if source == "bookkeeper" else contract.through_broker


@SOURCES
def test_giving_up_a_message(
    contract: Contract, topic_name: str, lake: PulsarLake, source: str
) -> None:
    """What was incomplete at an earlier commit is one rescued row once it has waited enough."""
    topic, admin, settings = Topic.parse(topic_name), contract.admin, configured(contract, source)
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    other = Chunked(contract.oracle, topic_name, "b", body(5_000), 2)

    def offload(hours: int) -> TopicTable:
        offload = settings.offload.model_copy(update={"chunk_timeout": dt.timedelta(hours=hours)})
        config = settings.model_copy(update={"offload": offload})
        admin.seal(topic_name)
        with AdminClient(config.pulsar) as client:
            TopicOffloader(
                Clients(config, admin=client), config.offload, lambda: lake.spark.sparkContext
            ).turn(topic, now=True)
        table = TopicTable.open(open_storage(config.storage), topic)
        assert table is not None
        return table

    _, first_ledger, first_entry, _ = message.send(0)
    other.send(0)
    end = message.send(1)
    assert offload(1).lookback(Partition(topic, -1)) == Position(first_ledger, first_entry)
    assert rows_of(settings, topic_name, "parquet") == {}
    whole = other.send(1)
    assert offload(0).lookback(Partition(topic, -1)) is None
    rows = rows_of(settings, topic_name, "parquet")
    assert sorted(rows) == sorted([end, whole])
    assert rows[whole]["value"] == other.body
    error = "chunked message that was never completed: its first chunk is entry "
    assert rows[end]["__error"] == f"{error}{first_ledger}:{first_entry}"
    assert rows[end]["__rescued"].endswith(message.body[: 2 * message.size])
    assert rows[end]["value"] is None
    late = message.send(2)
    query = query_rows(settings, topic_name)
    assert query[late]["__error"] == STRAY
    with AdminClient(settings.pulsar) as client:
        asked = time.time_ns() // 1_000_000
        listing = client.ledgers(Partition(topic, -1))
        assert listing.listed_at is not None, "the brokers' clock is this machine's"
        assert asked <= listing.listed_at <= time.time_ns() // 1_000_000
        cursors = listing.cursors
        hold = cursors.get(settings.offload.subscription)
    assert hold is not None
    assert hold > Position(first_ledger, first_entry)


@SOURCES
def test_offload_boundary_inside_a_message(contract: Contract, namespace: str, source: str) -> None:
    admin, topic = contract.admin, f"persistent://{namespace}/t"
    config = configured(contract, source)
    admin.set_retention(namespace, 0, 0)
    admin.create_topic(topic)
    parsed = Topic.parse(topic)
    with AdminClient(config.pulsar) as client:
        [partition] = client.partitions(parsed)

    def held() -> Position:
        """The mark-delete position of the hold."""
        cursor = admin.internal_stats(topic)["cursors"][config.offload.subscription]
        ledger, entry = cursor["markDeletePosition"].split(":")
        return Position(int(ledger), int(entry))

    admin.create_subscription(topic, config.offload.subscription)  # nothing goes before offloading
    contract.oracle.write(topic, [{"value": b"first"}])
    admin.seal(topic)
    contract.oracle.write(topic, [{"value": b"second"}])
    message = Chunked(contract.oracle, topic, "a", body(6_000), 3, "LZ4", {"key": "k"})
    _, ledger, entry, _ = message.send(0)
    begin = Position(ledger, entry)
    message.send(1)
    contract.oracle.write(topic, [{"value": b"third"}])
    java = java_rows(contract.oracle, topic)
    admin.seal(topic)
    offload_in_thread(config, topic)
    check(rows_of(config, topic, "parquet"), java, topic)
    assert len(java) == 3
    table = TopicTable.open(open_storage(config.storage), parsed)
    assert table is not None
    assert table.lookback(partition) == begin
    assert held() < begin

    admin.trim(topic)
    assert held() < begin
    assert ledger in admin.ledgers(topic)
    end = message.send(2)
    java |= java_rows(contract.oracle, topic)
    assert bytes_of(java[end]["data"]) == message.body
    check(query_rows(config, topic), java, topic)
    check(rows_of(config, topic, "parquet"), {k: java[k] for k in java if k != end}, topic)

    admin.seal(topic)
    check(query_rows(config, topic), java, topic)
    offload_in_thread(config, topic)
    check(rows_of(config, topic, "parquet"), java, topic)
    check(query_rows(config, topic), java, topic)
    table = TopicTable.open(open_storage(config.storage), parsed)
    assert table is not None
    assert table.lookback(partition) is None
    assert held() > begin
