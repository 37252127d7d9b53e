"""Turns on the real Pulsar: what goes into the table, and when the hold is moved."""

import shutil
import uuid

import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Topic
from reader.plan.snapshot import take_snapshot
from reader.pulsar import PARTITION_KEY, TABLE_ID_KEY, TABLE_KEY, WATERMARK_KEY
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import Message, publish
from tests.offload.conftest import Turns
from tests.support.additions import open_table
from tests.support.running import check_nothing_lost, ledgers_of

pytestmark = pytest.mark.journey  # a second each, without Spark


@pytest.fixture
def topic(admin: Admin, namespace: str) -> Topic:
    """Without partitions, in a namespace where nothing is kept that no subscription holds."""
    admin.set_retention(namespace, 0, 0)
    name = Topic.parse(f"{namespace}/orders")
    admin.create_topic(name.full_name)
    return name


def send(cluster: Cluster, topic: Topic, count: int = 50) -> list[Message]:
    messages = [f"{uuid.uuid4()}-{n}".encode() for n in range(count)]
    return publish(cluster.service_url, topic.full_name, messages, batch=10, ids=True)


def test_every_message_once_and_the_open_ledger_never(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    offloader = turns()
    assert offloader.turn(topic, now=True).committed is None, "takes the hold"
    assert admin.subscriptions(topic.full_name) == ["pulsar-lake"]
    sent = send(cluster, topic)
    admin.seal(topic.full_name)
    sent += send(cluster, topic)
    admin.seal(topic.full_name)
    tail = send(cluster, topic)
    found = offloader.turn(topic, now=True).committed
    assert found
    assert (found.ledgers, found.rows) == (2, len(sent))
    assert check_nothing_lost(open_storage(config.storage), admin, topic, sent + tail) == len(sent)
    assert offloader.turn(topic, now=True).committed is None, "nothing new is sealed"
    # What is in the table is trimmed, the open ledger stays.
    admin.trim(topic.full_name)
    wait_until("the trim", lambda: len(ledgers_of(admin, topic)[-1]) == 1)
    admin.seal(topic.full_name)
    found = offloader.turn(topic, now=True).committed
    assert found
    assert found.rows == len(tail)
    assert check_nothing_lost(open_storage(config.storage), admin, topic, sent + tail) == len(
        sent + tail
    )


def test_a_table_that_is_gone_is_missed(
    cluster: Cluster, admin: Admin, pulsar: AdminClient, config: Config, turns: Turns, topic: Topic
) -> None:
    """Until an operator clears what the hold says of it, as docs/operations.md describes."""
    turns().turn(topic)
    send(cluster, topic)
    admin.seal(topic.full_name)
    assert turns().turn(topic, now=True).committed
    table, partition = open_table(open_storage(config.storage), topic), Partition(topic, -1)
    assert pulsar.hold_properties(partition, "pulsar-lake") == {
        TABLE_KEY: table.uri,
        TABLE_ID_KEY: table.id,
        WATERMARK_KEY: str(table.watermark(partition)),
        PARTITION_KEY: str(partition),
    }
    shutil.rmtree(table.uri)
    kept = send(cluster, topic)
    admin.seal(topic.full_name)
    admin.trim(topic.full_name)
    wait_until("the trim", lambda: len(ledgers_of(admin, topic)[-1]) == 2)
    with pytest.raises(ConfigurationError, match=r"there is no table at .* was moved for it"):
        turns().turn(topic, now=True)
    with pytest.raises(ConfigurationError, match="was moved for the table at"):
        take_snapshot(Clients(config, admin=pulsar), topic)
    pulsar.note_hold(partition, "pulsar-lake", {})
    found = turns().turn(topic, now=True).committed
    assert found
    assert found.rows == len(kept), "the hold stayed all the while"


def test_partitions_that_are_added_later(
    cluster: Cluster,
    admin: Admin,
    pulsar: AdminClient,
    config: Config,
    turns: Turns,
    namespace: str,
) -> None:
    topic = Topic.parse(f"{namespace}/grows")
    admin.create_topic(topic.full_name, 1)
    offloader = turns()
    offloader.turn(topic)
    sent = send(cluster, topic)
    admin.seal(topic.full_name)
    offloader.turn(topic, now=True)
    admin.grow_partitions(topic.full_name, 3)
    first, added = (pulsar.hold_properties(Partition(topic, one), "pulsar-lake") for one in (0, 2))
    assert first
    assert added == first, "Pulsar has copied the first partition's, and its watermark"
    offloader.turn(topic)
    sent += send(cluster, topic)
    admin.seal(topic.full_name)
    found = offloader.turn(topic, now=True).committed
    assert found
    assert check_nothing_lost(open_storage(config.storage), admin, topic, sent) == len(sent)
    table = open_table(open_storage(config.storage), topic)
    assert all(table.created_at(Partition(topic, index)) for index in range(3))


def test_what_the_broker_gives_is_said_in_the_commit(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    offloader = turns(source="broker")
    offloader.turn(topic)
    sent = send(cluster, topic)
    admin.seal(topic.full_name)
    assert offloader.turn(topic, now=True).committed
    table = open_table(open_storage(config.storage), topic)
    assert next(table.commits()).info["pulsarlake.source"] == "broker"
    assert [one.tier for one in table.ledgers()] == ["broker"]
    assert check_nothing_lost(open_storage(config.storage), admin, topic, sent) == len(sent)


def test_an_unknown_topic(turns: Turns, namespace: str, config: Config) -> None:
    topic = Topic.parse(f"{namespace}/nothing")
    with pytest.raises(NotFoundError, match="does not exist"):
        turns().turn(topic, now=True)
    assert TopicTable.open(open_storage(config.storage), topic) is None
