"""The compacted view against a compacted reader, over rows in all tiers."""

import contextlib
import random
from typing import Any

import pulsar
import pytest

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import Message, publish, quiet_client
from tests.support.fixtures import Offload

SEED = 11


def _messages(draw: random.Random, count: int, start: int) -> list[Message]:
    return [
        Message(
            draw.choice([b"%d" % number] * 4 + [None, b""]),
            key=draw.choice(["", "a", "b", "c", "d", "e", "ü", None]),
        )
        for number in range(start, start + count)
    ]


def _read_compacted(url: str, partition: str) -> list[tuple[str, bytes]]:
    """What a compacted reader gets: (key, value)."""
    found = []
    with quiet_client(url) as client:
        reader = client.create_reader(partition, pulsar.MessageId.earliest, is_read_compacted=True)
        while reader.has_message_available():
            message = reader.read_next(60_000)
            # pulsar-client also gives what compaction took out of a batch: no key, no value.
            if message.partition_key() or message.data():
                found.append((message.partition_key(), message.data()))
        reader.close()
    return found


def compact(admin: Admin, partition: str) -> None:
    """Compact the partition, again on the topic loaded anew where nothing comes of it.

    A success is told before the broker hears where the compacted ledger is, and that word can get
    lost: apache/pulsar#21643 has it in Pulsar's own tests. And a broker that was still recovering
    the topic's transactions when messages came can take it for empty ("Skip compaction of the
    empty topic" in its log, with a success) until it loads it again.
    """

    def is_read() -> bool:
        return int(admin.internal_stats(partition)["compactedLedger"]["ledgerId"]) >= 0

    for _ in range(3):
        admin.compact(partition)
        with contextlib.suppress(TimeoutError):
            wait_until("what compaction made", is_read, timeout=60)
            return
        admin.unload(partition)
    pytest.fail(f"three compactions of {partition} made nothing that is read")


@pytest.mark.timeout(600)
def test_it_is_what_a_compacted_reader_sees(
    cluster: Cluster, admin: Admin, lake: PulsarLake, offload: Offload, lake_namespace: str
) -> None:
    topic = admin.create_topic(f"{lake_namespace}/prices", partitions=2)
    admin.wait_recovered(topic)
    draw = random.Random(SEED)

    def send(count: int, start: int, batch: int) -> None:
        messages = _messages(draw, count, start)
        publish(cluster.service_url, topic, messages, batch=batch, in_flight=100)

    send(60, 0, 0)
    admin.seal(topic)
    offload(topic)
    send(40, 100, 7)
    admin.seal(topic)
    send(7, 200, 0)

    def ours() -> dict[int, list[tuple[str, bytes]]]:
        rows = lake.table(topic, view="compacted").collect()
        found: dict[int, list[tuple[str, bytes]]] = {0: [], 1: []}
        order = sorted(rows, key=lambda r: (r["__ledgerId"], r["__entryId"], r["__batchIndex"]))
        for row in order:
            found[row["__partition"]].append((row["__key"], bytes(row["value"])))
        return found

    before = ours()
    assert all(before.values())
    local = topic.removeprefix("persistent://").rpartition("/")[2]
    sql = lake.spark.sql(
        f"SELECT __key FROM pulsar.`{lake_namespace}`.`{local}$compacted` WHERE __partition = 1"
    )
    assert sorted(row[0] for row in sql.collect()) == sorted(key for key, _ in before[1])
    for index, partition in enumerate(admin.partitions(topic)):
        compact(admin, partition)
        assert _read_compacted(cluster.service_url, partition) == before[index]
    admin.seal(topic)
    offload(topic)
    assert ours() == before
    total = lake.table(topic).count()
    assert total == 107


@pytest.mark.timeout(600)
def test_it_has_what_pulsar_has_compacted_and_deleted(
    cluster: Cluster, admin: Admin, lake: PulsarLake, offload: Offload, lake_namespace: str
) -> None:
    topic = admin.create_topic(f"{lake_namespace}/deleted")
    admin.wait_recovered(topic)
    keys = [f"k{number}" for number in range(50)]
    policy = {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    path = f"/v2/persistent/{topic.removeprefix('persistent://')}/retention"
    wait_until("the topic's policy", lambda: _is_done(admin, path, policy))
    for word in (b"old", b"new"):
        publish(cluster.service_url, topic, [Message(word, key=key) for key in keys], batch=7)
    compact(admin, topic)
    (first,) = admin.ledgers(topic)
    admin.seal(topic)
    publish(cluster.service_url, topic, [Message(b"later", key="k0"), Message(b"", key="k1")])

    def is_deleted() -> bool:
        admin.trim(topic)
        return first not in admin.ledgers(topic)

    wait_until("the ledger to be deleted", is_deleted)
    latest = dict(_read_compacted(cluster.service_url, topic))  # what follows comes after it
    wanted = sorted((key, value) for key, value in latest.items() if value)
    assert len(wanted) == 49

    def ours() -> list[tuple[str, bytes]]:
        rows = lake.table(topic, view="compacted").collect()
        assert not any(row["__error"] for row in rows)
        return sorted((row["__key"], bytes(row["value"])) for row in rows)

    assert ours() == wanted
    admin.seal(topic)
    offload(topic)
    assert ours() == wanted


def _is_done(admin: Admin, path: str, policy: dict[str, int]) -> bool:
    admin.request("POST", path, policy)
    return bool(admin.request("GET", path))


def test_messages_without_a_key_stay_if_the_broker_keeps_them(
    cluster: Cluster, admin: Admin, lake: PulsarLake, lake_namespace: str
) -> None:
    from spark_ext.planner.relations import compacted_text

    topic = admin.create_topic(f"{lake_namespace}/keyless")
    publish(
        cluster.service_url,
        topic,
        [Message(b"1", key="a"), Message(b"2"), Message(b"3", key="a"), Message(b"4")],
    )
    plain = lake.table(topic)
    plain.createOrReplaceTempView("keyless")
    columns: Any = lake.table(topic).limit(0).toArrow().schema
    for keeps, values in ((True, [b"2", b"3", b"4"]), (False, [b"3"])):
        text = compacted_text("SELECT * FROM keyless", columns, keeps)
        assert sorted(bytes(row["value"]) for row in lake.spark.sql(text).collect()) == values
    names = ["'key is not UTF-8' AS __error" if one == "__error" else one for one in columns.names]
    text = f"SELECT {', '.join(names)} FROM keyless"
    found = lake.spark.sql(compacted_text(text, columns, False)).collect()
    assert sorted(bytes(row["value"]) for row in found) == [b"2", b"3", b"4"], "they may have a key"
