"""The hold knows the table that it was moved for."""

from __future__ import annotations

import shutil
import uuid
from datetime import timedelta

import pytest

from offloader.config import Config
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic
from reader.plan.snapshot import take_snapshot
from reader.pulsar import PARTITION_KEY, TABLE_ID_KEY, TABLE_KEY, WATERMARK_KEY
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.offload.conftest import Turns, make_offloader

HOLD = "pulsar-lake"

pytestmark = pytest.mark.journey  # a second each, without Spark


@pytest.fixture
def topic(cluster: Cluster, admin: Admin, namespace: str) -> Topic:
    name = Topic.parse(f"{namespace}/orders")
    admin.create_topic(name.full_name)
    seal(cluster, admin, name, b"first")
    return name


def values_in(config: Config, topic: Topic) -> list[bytes]:
    table = TopicTable.open(open_storage(config.storage), topic)
    assert table is not None
    return [bytes(value) for value in table.dataset().to_table(["value"])["value"].to_pylist()]


def seal(cluster: Cluster, admin: Admin, topic: Topic, value: bytes) -> None:
    publish(cluster.service_url, topic.full_name, [value])
    admin.seal(topic.full_name)


def test_a_table_that_is_gone_is_missed(
    cluster: Cluster,
    admin: Admin,
    pulsar: AdminClient,
    config: Config,
    turns: Turns,
    topic: Topic,
) -> None:
    assert turns().turn(topic, now=True).committed is not None
    admin.set_retention(f"{topic.tenant}/{topic.namespace}", 0, 0)
    uri = open_storage(config.storage).table_uri(topic)
    partition = Partition(topic, -1)
    table = TopicTable.open(open_storage(config.storage), topic)
    assert table is not None
    noted = {
        TABLE_KEY: uri,
        TABLE_ID_KEY: table.id,
        WATERMARK_KEY: str(table.watermark(partition)),
        PARTITION_KEY: str(partition),
    }
    assert pulsar.hold_properties(partition, HOLD) == noted
    shutil.rmtree(uri)
    seal(cluster, admin, topic, b"second")

    def only_the_second() -> bool:
        admin.trim(topic.full_name)
        return len(admin.ledgers(topic.full_name)) == 2

    wait_until("the first is deleted", only_the_second)
    with pytest.raises(ConfigurationError, match=r"there is no table at .* was moved for it"):
        turns().turn(topic, now=True)
    with pytest.raises(ConfigurationError, match="was moved for the table at"):
        take_snapshot(Clients(config, admin=pulsar), topic)  # not the second one's rows alone
    # As docs/operations.md says: the hold stays all the while, so what it holds is not deleted.
    pulsar.note_hold(partition, HOLD, {})
    assert turns().turn(topic, now=True).committed is not None
    assert sorted(values_in(config, topic)) == [b"second"]


def test_another_table_needs_another_hold(
    cluster: Cluster,
    admin: Admin,
    pulsar: AdminClient,
    config: Config,
    turns: Turns,
    topic: Topic,
) -> None:
    uri = f"{config.storage.uri}/{uuid.uuid4()}"
    storage = config.storage.model_copy(update={"uri": uri})
    other = config.model_copy(update={"storage": storage})
    first = turns()
    second = make_offloader(other, pulsar)
    assert first.turn(topic, now=True).committed is not None
    with pytest.raises(ConfigurationError, match="is moved for the table at"):
        second.turn(topic, now=True)

    third = make_offloader(other, pulsar, subscription="second")
    seal(cluster, admin, topic, b"second")
    assert third.turn(topic, now=True).committed is not None
    assert first.turn(topic, now=True).committed is not None


def test_two_tables_that_both_begin(
    pulsar: AdminClient, config: Config, turns: Turns, topic: Topic
) -> None:
    """Both have committed before either has moved the hold: the second to move it is refused."""
    uri = f"{config.storage.uri}/{uuid.uuid4()}"
    storage = config.storage.model_copy(update={"uri": uri})
    offload = config.offload.model_copy(update={"grace": timedelta(days=1)})
    patient = config.model_copy(update={"storage": storage, "offload": offload})
    second = make_offloader(patient, pulsar)
    assert second.turn(topic, now=True).committed is not None
    assert turns().turn(topic, now=True).released
    eager = make_offloader(config.model_copy(update={"storage": storage}), pulsar)
    partition = Partition(topic, -1)
    first = pulsar.ledgers(partition).ledgers[0].ledger_id
    pulsar.move_hold(partition, HOLD, Position(first, 0))
    with pytest.raises(ConfigurationError, match="is moved for the table at"):
        eager.release(topic)


def test_another_table_of_the_same_name(
    pulsar: AdminClient, config: Config, turns: Turns, topic: Topic
) -> None:
    """Two stores with the same URI, both of which have committed before either moved the hold."""
    partition = Partition(topic, -1)
    uri = open_storage(config.storage).table_uri(topic)
    offloader = turns(grace=timedelta(days=1))
    assert offloader.turn(topic, now=True).committed is not None
    pulsar.note_hold(partition, HOLD, {TABLE_KEY: uri, TABLE_ID_KEY: "another"})
    with pytest.raises(ConfigurationError, match="another table of the same name"):
        turns().release(topic)


def test_the_hold_of_another_table_is_not_moved_back(
    pulsar: AdminClient, config: Config, turns: Turns, topic: Topic
) -> None:
    assert turns().turn(topic, now=True).released
    partition = Partition(topic, -1)
    at = pulsar.ledgers(partition).cursors.get(HOLD)
    storage = config.storage.model_copy(update={"uri": f"{config.storage.uri}/{uuid.uuid4()}"})
    other = config.model_copy(update={"storage": storage})
    second = make_offloader(other, pulsar)
    with pytest.raises(ConfigurationError, match="is moved for the table at"):
        second.observe(topic)
    assert pulsar.ledgers(partition).cursors.get(HOLD) == at
