"""Chunked messages of which the offloader has only the beginning at a commit."""

import datetime as dt
import time

import pytest

from offloader.config import Config
from reader.model import Partition, Position, Topic
from reader.model.columns import FIRST_CHUNK
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from tests.contract.against_java import STRAY, Contract, check, offload_in_thread
from tests.contract.corpus.topics.chunks import Chunked
from tests.contract.java import body, bytes_of, java_rows
from tests.contract.rows import query_rows, rows_of

SOURCES = pytest.mark.parametrize("source", ["bookkeeper", "broker"])


def configured(contract: Contract, source: str) -> Config:
    """The offloader's settings for either source."""
    return contract.config if source == "bookkeeper" else contract.through_broker


@SOURCES
def test_giving_up_a_message(contract: Contract, topic_name: str, source: str) -> None:
    """What was incomplete at an earlier commit is one rescued row once it has waited enough."""
    topic, admin, settings = Topic.parse(topic_name), contract.admin, configured(contract, source)
    message = Chunked(contract.oracle, topic_name, "a", body(5_000), 3)
    other = Chunked(contract.oracle, topic_name, "b", body(5_000), 2)

    def offload(hours: int) -> TopicTable:
        offload = settings.offload.model_copy(update={"chunk_timeout": dt.timedelta(hours=hours)})
        config = settings.model_copy(update={"offload": offload})
        admin.seal(topic_name)
        offload_in_thread(config, topic_name)
        table = TopicTable.open(open_storage(config.storage), topic)
        assert table is not None
        return table

    _, first_ledger, first_entry, _ = message.send(0)
    other.send(0)
    end = message.send(1)
    assert offload(1).numbers(Partition(topic, -1)).lookback == Position(first_ledger, first_entry)
    assert rows_of(settings, topic_name, "parquet") == {}
    whole = other.send(1)
    assert offload(0).numbers(Partition(topic, -1)).lookback is None
    rows = rows_of(settings, topic_name, "parquet")
    assert sorted(rows) == sorted([end, whole])
    assert rows[whole]["value"] == other.body
    assert rows[end]["__error"] == "chunked message that was never completed"
    assert rows[end]["__kind"] == "incomplete"
    assert [rows[end][name] for name in FIRST_CHUNK] == [first_ledger, first_entry]
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
    assert table.numbers(partition).lookback == begin
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
    assert table.numbers(partition).lookback is None
    assert held() > begin
