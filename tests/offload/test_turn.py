"""Turns on the real Pulsar: what goes into the table, and when the hold is moved."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.config import Config
from offloader.model import Committed
from offloader.schedule.discovery import find_topics
from offloader.service.last_errors import LastErrors
from offloader.service.status import topic_status
from reader.clients import Clients
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Topic
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import Message, json_schema, publish
from tests.offload.conftest import Turns, now_ms
from tests.support.additions import addition, open_table
from tests.support.running import check_nothing_lost, in_table, ledgers_of, sent_ids

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


def test_thresholds(cluster: Cluster, admin: Admin, turns: Turns, topic: Topic) -> None:
    offloader = turns(threshold_bytes=1 << 30, max_age=timedelta(hours=1))
    offloader.turn(topic)
    send(cluster, topic)
    admin.seal(topic.full_name)
    assert offloader.turn(topic).committed is None
    by_size = turns(threshold_bytes=100, max_age=timedelta(hours=1)).turn(topic).committed
    assert by_size
    assert "threshold 100" in by_size.reason
    send(cluster, topic)
    admin.seal(topic.full_name)
    offloader = turns(threshold_bytes=1 << 30, max_age=timedelta(seconds=1))
    by_age: list[Committed | None] = []

    def is_due() -> bool:
        by_age.append(offloader.turn(topic).committed)
        return by_age[-1] is not None

    wait_until("the age of the ledger, by the broker's clock", is_due)
    assert by_age[-1]
    assert "max_age" in by_age[-1].reason


def test_the_hold_waits_for_the_grace(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    ahead = 0
    offloader = turns(grace=timedelta(minutes=10), clock=lambda: now_ms() + ahead)
    offloader.turn(topic)
    sent = send(cluster, topic)
    admin.seal(topic.full_name)
    [ledger, _] = ledgers_of(admin, topic)[-1]
    turn = offloader.turn(topic, now=True)
    assert turn.committed
    assert turn.released == ()
    moves, wait = offloader.release(topic)
    assert moves == ()
    assert 500 < wait <= 600
    admin.trim(topic.full_name)
    assert ledger in ledgers_of(admin, topic)[-1]
    ahead = 600_001
    [move] = offloader.turn(topic, now=True).released
    assert (move.before.ledger, move.after.entry) == (ledger, 0)
    admin.trim(topic.full_name)
    wait_until("the trim", lambda: ledger not in ledgers_of(admin, topic)[-1])
    assert offloader.release(topic) == ((), 0.0), "nothing is waiting any more"
    assert check_nothing_lost(open_storage(config.storage), admin, topic, sent) == len(sent)


def test_a_terminated_topic_is_offloaded_to_its_end(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    offloader = turns()
    offloader.turn(topic)
    sent = send(cluster, topic)
    admin.seal(topic.full_name)
    sent += send(cluster, topic)
    admin.terminate(topic.full_name)
    turn = offloader.turn(topic, now=True)
    assert turn.committed
    assert turn.committed.rows == len(sent)
    assert check_nothing_lost(open_storage(config.storage), admin, topic, sent) == len(sent)
    for _ in range(2):
        turn = offloader.turn(topic, now=True)
        assert (turn.committed, turn.more, turn.observation.backlog.oldest) == (
            None,
            False,
            None,
        ), "and then rests"


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


def test_new_fields_become_columns(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    admin.set_schema_compatibility(f"{topic.tenant}/{topic.namespace}", "ALWAYS_COMPATIBLE")
    offloader = turns()
    offloader.turn(topic)
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    for step in range(2):
        schema = json_schema({"type": "record", "name": "Order", "fields": fields})
        value = {"id": 7} if step == 0 else {"id": 8, "note": "new"}
        publish(cluster.service_url, topic.full_name, [value], schema=schema)
        admin.seal(topic.full_name)
        assert offloader.turn(topic, now=True).committed
        fields = [*fields, {"name": "note", "type": ["null", "string"], "default": None}]
    table = open_table(open_storage(config.storage), topic)
    assert [name for name in table.schema.names if not name.startswith("__")] == ["id", "note"]
    assert [one.rows for one in table.ledgers()] == [1, 1]


def test_a_topic_that_was_made_again_goes_on(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    partition = Partition(topic, -1)
    turns().turn(topic)
    old = send(cluster, topic)
    admin.seal(topic.full_name)
    turns().turn(topic, now=True)
    before = open_table(open_storage(config.storage), topic).created_at(partition)
    admin.delete_topic(topic.full_name)
    admin.create_topic(topic.full_name)
    offloader = turns()
    offloader.turn(topic)
    new = send(cluster, topic)
    admin.seal(topic.full_name)
    assert offloader.turn(topic, now=True).committed
    table = open_table(open_storage(config.storage), topic)
    assert table.created_at(partition) not in (None, before)
    found = {row_id for row_id, _ in in_table(open_storage(config.storage), topic)}
    assert found == set(sent_ids(old)) | set(sent_ids(new)), "the old rows stay"


def test_a_table_of_a_restored_cluster_stops_this_topic(
    cluster: Cluster, admin: Admin, config: Config, turns: Turns, topic: Topic
) -> None:
    turns().turn(topic)
    send(cluster, topic)
    admin.seal(topic.full_name)
    # A table whose watermark lies above Pulsar's ledgers, filled from a managed ledger of old.
    restored = addition(open_storage(config.storage), topic, [1 << 40], partition=-1, cluster="")
    DeltaCommitter(open_storage(config.storage)).commit(None, restored)
    held = admin.internal_stats(topic.full_name)["cursors"]["pulsar-lake"]["markDeletePosition"]
    with pytest.raises(ConfigurationError, match="filled from another cluster or before a restore"):
        turns().turn(topic, now=True)
    after = admin.internal_stats(topic.full_name)["cursors"]["pulsar-lake"]["markDeletePosition"]
    assert after == held, "the hold stays where it is"


def test_a_deleted_hold_is_made_again(
    cluster: Cluster,
    admin: Admin,
    config: Config,
    pulsar: AdminClient,
    turns: Turns,
    topic: Topic,
) -> None:
    offloader = turns()
    offloader.turn(topic)
    admin.request("DELETE", f"/v2/persistent/{topic.local_name}/subscription/pulsar-lake")
    status = topic_status(
        Clients(config, admin=pulsar),
        config.offload.subscription,
        topic,
        clock_ms=0,
        failures={},
    )
    assert any("no subscription pulsar-lake" in text for text in status.errors)
    offloader.turn(topic)
    assert admin.subscriptions(topic.full_name) == ["pulsar-lake"]


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


def test_status(
    cluster: Cluster,
    admin: Admin,
    config: Config,
    pulsar: AdminClient,
    turns: Turns,
    topic: Topic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PULSAR_LAKE_STATE", str(tmp_path))
    turns().turn(topic)
    send(cluster, topic)
    admin.seal(topic.full_name)
    state = LastErrors(config.pulsar.admin_url, config.storage.uri)
    state.failed(topic, "it broke", 0.0)
    state.failed(topic, "it broke again", 1.0)

    def now() -> Any:
        clock_ms = now_ms() + 60_000
        return topic_status(
            Clients(config, admin=pulsar),
            config.offload.subscription,
            topic,
            clock_ms=clock_ms,
            failures=state.failures(),
        )

    before = now()
    assert (before.lag_ledgers, before.last_commit) == (1, None)
    assert before.lag_bytes > 50 * 30
    assert 59 < before.lag_seconds < 120
    assert before.errors == (
        "last turn (2 in a row): it broke again; next try 1970-01-01 00:00:01Z",
    )
    turns().turn(topic, now=True)
    state.succeeded(topic)
    after = now()
    assert (after.lag_ledgers, after.lag_bytes, after.lag_seconds) == (0, 0, 0.0)
    assert after.last_commit.rows == 50
    assert after.errors == ()
    [partition] = after.partitions
    assert partition.watermark == open_table(open_storage(config.storage), topic).watermark(
        Partition(topic, -1)
    )


def test_wildcards_find_what_is_there_now(
    admin: Admin, pulsar: AdminClient, namespace: str
) -> None:
    for name, partitions in (("orders", 2), ("other", 0), ("bills", 0)):
        admin.create_topic(f"{namespace}/{name}", partitions)
    names = [str(one) for one in find_topics(pulsar, [f"{namespace}/*"])]
    assert names == [f"{namespace}/{name}" for name in ("bills", "orders", "other")]
    names = [str(one) for one in find_topics(pulsar, [f"{namespace}/o*", f"{namespace}/orders"])]
    assert names == [f"{namespace}/orders", f"{namespace}/other"]
    with pytest.raises(NotFoundError):
        find_topics(pulsar, ["public/no-such-namespace/*"])


def test_an_unknown_topic(turns: Turns, namespace: str, config: Config) -> None:
    topic = Topic.parse(f"{namespace}/nothing")
    with pytest.raises(NotFoundError, match="does not exist"):
        turns().turn(topic, now=True)
    assert TopicTable.open(open_storage(config.storage), topic) is None
