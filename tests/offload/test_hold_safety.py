"""What may happen to the hold: settings that pass over it, moves by others, lost messages."""

import pytest
from pyspark.errors import AnalysisException

from offloader.config import Config
from offloader.service.status import topic_status
from reader.clients import Clients
from reader.model import Partition, Position, Topic
from reader.model.reasons import Pruned
from reader.plan.plan import make_plan
from reader.plan.snapshot import take_snapshot
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.offload.conftest import Turns

HOLD = "pulsar-lake"
LOST = "were deleted before they were offloaded"


@pytest.fixture
def topic(admin: Admin, namespace: str) -> Topic:
    name = Topic.parse(f"{namespace}/orders")
    admin.create_topic(name.full_name)
    return name


@pytest.fixture
def spark_lake(lake: PulsarLake, config: Config) -> PulsarLake:
    """Queries by the shared Spark session over the tables of ``config``."""
    return PulsarLake(config)


def send(cluster: Cluster, topic: Topic, *values: bytes) -> list[bytes]:
    publish(cluster.service_url, topic.full_name, values, batch=10)
    return sorted(values)


def values(lake: PulsarLake, topic: Topic) -> list[bytes]:
    rows = lake.table(str(topic)).select("value").collect()
    return sorted(bytes(row["value"]) for row in rows)


def lose_what_is_sealed(admin: Admin, topic: Topic) -> int:
    """Let Pulsar delete all sealed ledgers as if nobody held them; how many were deleted.

    It keeps everything before and after that: it trims every two minutes, also between a seal and
    the next hold.
    """
    namespace = f"{topic.tenant}/{topic.namespace}"
    before = admin.ledgers(topic.full_name)
    admin.set_retention(namespace, 0, 0)
    admin.delete_subscription(topic.full_name, HOLD)

    def trimmed() -> bool:
        admin.trim(topic.full_name)
        return len(admin.ledgers(topic.full_name)) == 1

    wait_until("trimmed", trimmed)
    admin.set_retention(namespace, -1, -1)
    return len(before) - 1


@pytest.mark.journey
def test_lost_messages_are_a_fact(
    cluster: Cluster,
    admin: Admin,
    pulsar: AdminClient,
    spark_lake: PulsarLake,
    config: Config,
    turns: Turns,
    told: list[str],
    topic: Topic,
) -> None:
    offloader = turns()
    offloader.turn(topic)
    kept = send(cluster, topic, b"a", b"b")
    admin.seal(topic.full_name)
    send(cluster, topic, b"lost")
    assert offloader.turn(topic, now=True).committed is not None
    admin.seal(topic.full_name)
    kept += send(cluster, topic, b"c")
    lose_what_is_sealed(admin, topic)

    def refused() -> str:
        with pytest.raises(AnalysisException, match=LOST) as caught:
            values(spark_lake, topic)
        return str(caught.value)

    gap = refused()
    assert "query.allow_data_loss" in gap
    query = config.query.model_copy(update={"allow_data_loss": True})
    tolerant = PulsarLake(config.model_copy(update={"query": query}))
    assert values(tolerant, topic) == kept, "before a commit says so"
    status = topic_status(
        Clients(config, admin=pulsar), config.offload.subscription, topic, clock_ms=0, failures={}
    )
    assert any(LOST in text for text in status.errors)

    admin.seal(topic.full_name)
    # Another process, which has seen none of it, finds it by the log alone.
    assert turns().turn(topic, now=True).committed is not None
    assert any(LOST in text for text in told)
    table = TopicTable.open(open_storage(config.storage), topic)
    assert table is not None and table.topic_numbers.data_loss is not None
    assert refused().split(" of ledger ")[1] == gap.split(" of ledger ")[1]
    assert values(tolerant, topic) == kept, "after it"
    clients = Clients(tolerant.config, admin=pulsar)
    plan = make_plan(Clients(tolerant.config), take_snapshot(clients, topic))
    found = [(one.segment.state, one.pruned and one.pruned.kind) for one in plan.segments]
    filled = [one for one in found if one[1] is not Pruned.EMPTY]
    assert filled == [("offloaded", None), ("lost", Pruned.LOST), ("offloaded", None)]
    status = topic_status(
        Clients(config, admin=pulsar), config.offload.subscription, topic, clock_ms=0, failures={}
    )
    assert sum(LOST in text for text in status.errors) == 1


@pytest.mark.journey
def test_what_was_seen_is_missed_before_the_first_commit(
    cluster: Cluster,
    admin: Admin,
    pulsar: AdminClient,
    config: Config,
    turns: Turns,
    told: list[str],
    topic: Topic,
) -> None:
    """And a hold that was moved ahead before the loss is moved back."""
    offloader = turns()
    offloader.turn(topic)
    send(cluster, topic, b"lost")
    admin.seal(topic.full_name)
    first = admin.ledgers(topic.full_name)[0]
    admin.skip_all(topic.full_name, HOLD)
    assert pulsar.ledgers(Partition(topic, -1)).cursors[HOLD] > Position(first, 0)
    offloader.turn(topic)
    assert pulsar.ledgers(Partition(topic, -1)).cursors[HOLD] == Position(first, 0)
    assert [text for text in told if "moved back" in text]
    assert not [text for text in told if LOST in text]
    send(cluster, topic, b"kept")
    assert lose_what_is_sealed(admin, topic) == 1
    offloader.turn(topic)
    assert [text for text in told if LOST in text]
    admin.seal(topic.full_name)
    told.clear()
    assert offloader.turn(topic, now=True).committed is not None
    offloader.turn(topic)
    assert not [text for text in told if "moved back" in text], "its own moves are its own"
    table = TopicTable.open(open_storage(config.storage), topic)
    assert table is not None
    assert table.topic_numbers.data_loss is not None, "it is not forgotten until a commit says so"
