"""Topics that are moved, grown, ended, deleted and made again, or have odd names."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from offloader.config import Config
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.storage import open_storage
from spark_ext import PulsarLake
from spark_ext.ddl import quoted
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.contract.rows import query_rows
from tests.support.fixtures import Offload

Publish = Callable[[str, list[bytes]], list[bytes]]

# Pulsar's ZooKeeper takes no topic `.` or `..`.
ODD = [
    "a b", "ünï", "日本", "a%2Fb", "a+b&c=d", "a'b", "a`b", 'a"b', "a{b}", "a$b", "a#b", "a?b",
    "a:b", "a;b", "a,b", "a@v1", "a*", "a\\b", "...", "~2E", "A", "x-partition-x", "a|b<c>",
]  # fmt: skip


@pytest.fixture
def send(cluster: Cluster) -> Publish:
    def run(topic: str, values: list[bytes]) -> list[bytes]:
        publish(cluster.service_url, f"persistent://{topic}", values, batch=10)
        return values

    return run


def numbered(first: int, count: int) -> list[bytes]:
    return [b"message %06d" % number for number in range(first, first + count)]


def rows_of(frame: Any) -> list[bytes]:
    return sorted(bytes(row["value"]) for row in frame.select("value").toArrow().to_pylist())


@contextmanager
def unloading(admin: Admin, topic: str) -> Iterator[list[int]]:
    """The topic is unloaded again and again; the next request makes a broker load it.

    Gives a list with a member for each time. Between two, its broker has recovered the topic's
    transactions for longer than who waits for that pauses (1 s): how long the recovery takes
    depends on the machine, and a topic that is never ready is not read.
    """
    over = threading.Event()
    times: list[int] = []

    def run() -> None:
        while not over.wait(1.5):
            admin.seal(topic)
            times.append(len(times))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("tiers", [None, "bookkeeper", "broker"])
def test_unloads_during_a_query(
    tiers: str | None, admin: Admin, lake: PulsarLake, namespace: str, send: Publish
) -> None:
    topic = f"{namespace}/moves"
    sent = send(topic, numbered(0, 3000))
    admin.seal(topic)
    sent += send(topic, numbered(3000, 500))
    frame = lake.table(topic, tiers=tiers)
    with unloading(admin, topic) as times:
        while len(times) < 3:
            assert rows_of(frame) == sent
        assert lake.table(topic, tiers=tiers).count() == len(sent)


def test_unloads_during_an_offload(
    admin: Admin, lake: PulsarLake, namespace: str, send: Publish, offload: Offload
) -> None:
    topic = f"{namespace}/moves"
    admin.create_topic(topic)
    sent: list[bytes] = []
    for step in range(2):
        # Not while it moves: a producer that is cut off sends its last batch again.
        sent += send(topic, numbered(step * 500, 500))
        with unloading(admin, topic):
            offload(topic)
            assert rows_of(lake.table(topic)) == sent
    offload(topic)
    assert rows_of(lake.table(topic)) == sent


def test_partitions_that_are_empty_and_added(
    admin: Admin, lake: PulsarLake, namespace: str, send: Publish, offload: Offload
) -> None:
    topic = f"{namespace}/grows"
    admin.create_topic(topic, 2)
    admin.wait_recovered(topic)
    assert lake.table(topic).count() == 0
    sent = send(f"{topic}-partition-1", numbered(0, 50))
    assert rows_of(lake.table(topic)) == sent
    admin.seal(topic)
    offload(topic)
    before = lake.table(topic)
    admin.grow_partitions(topic, 4)
    admin.wait_recovered(topic)
    assert rows_of(lake.table(topic)) == sent
    more = send(f"{topic}-partition-3", numbered(50, 50))
    found = lake.table(topic)
    assert rows_of(found) == sent + more
    assert {row[0] for row in found.select("__partition").distinct().collect()} == {1, 3}
    assert rows_of(before) == sent
    admin.seal(topic)
    offload(topic)
    assert rows_of(lake.table(topic)) == sent + more


def test_deleted_and_made_again(
    admin: Admin, lake: PulsarLake, namespace: str, send: Publish, offload: Offload
) -> None:
    """Old rows stay, new ones follow; what was never offloaded is gone with the topic."""
    topic = f"{namespace}/again"
    send(topic, numbered(0, 10))
    admin.delete_topic(topic)
    with pytest.raises(AnalysisException, match=r"cannot be found|does not exist"):
        lake.table(topic).count()
    old = send(topic, numbered(10, 20))
    admin.seal(topic)
    offload(topic)
    assert rows_of(lake.table(topic)) == old
    admin.delete_topic(topic)
    assert rows_of(lake.table(topic)) == old
    admin.create_topic(topic, 2)
    admin.wait_recovered(topic)
    assert rows_of(lake.table(topic)) == old, "also where it has partitions now"
    new = send(topic, numbered(30, 20))
    assert rows_of(lake.table(topic)) == old + new
    admin.seal(topic)
    offload(topic)
    assert rows_of(lake.table(topic)) == old + new


def test_a_terminated_topic(
    admin: Admin, lake: PulsarLake, namespace: str, send: Publish, offload: Offload
) -> None:
    topic = f"{namespace}/ends"
    sent = send(topic, numbered(0, 30))
    admin.seal(topic)
    sent += send(topic, numbered(30, 30))
    admin.terminate(topic)
    for tiers in (None, "bookkeeper", "broker"):
        assert rows_of(lake.table(topic, tiers=tiers)) == sent
    offload(topic)
    for tiers in (None, "parquet"):
        assert rows_of(lake.table(topic, tiers=tiers)) == sent


def test_odd_names(
    admin: Admin,
    lake: PulsarLake,
    lake_config: Config,
    namespace: str,
    send: Publish,
    offload: Offload,
) -> None:
    """Each is its own table inside of the storage's root; SQL finds it by its name."""
    sent: dict[str, list[bytes]] = {}
    for number, name in enumerate(ODD):
        topic = f"{namespace}/{name}"
        sent[Topic.parse(topic).full_name] = send(topic, numbered(number * 100, 5))
        if number % 8 == 0:
            admin.seal(topic)
            offload(topic)
        path = open_storage(lake_config.storage).table_uri(Topic.parse(topic))
        assert path.startswith(lake_config.storage.uri.rstrip("/") + "/public/")
    listed = {row[1] for row in lake.spark.sql(f"SHOW TABLES IN pulsar.`{namespace}`").collect()}
    assert listed == set(ODD)
    for name in ODD:
        full_name = Topic.parse(f"{namespace}/{name}").full_name
        rows = query_rows(lake_config, full_name).values()
        assert sorted(row["value"] for row in rows) == sent[full_name]
    tables = [quoted("pulsar", namespace, name) for name in ODD if set(name) & set(" `'\"{$@ü")]
    found = lake.spark.sql(" UNION ALL ".join(f"SELECT __topic, value FROM {t}" for t in tables))
    for row in found.toArrow().to_pylist():
        sent[row["__topic"]].remove(row["value"])
    assert sum(not values for values in sent.values()) == len(tables)


def test_names_that_differ_in_what_is_encoded(
    cluster: Cluster, lake: PulsarLake, namespace: str
) -> None:
    """Pulsar decodes the name in the path of a schema once more than elsewhere."""
    for number, name in enumerate(["a b", "a+b", "a%20b", "a%2Bb"]):
        field = {"name": f"f{number}", "type": "long"}
        schema = json_schema({"type": "record", "name": "R", "fields": [field]})
        publish(
            cluster.service_url,
            f"persistent://{namespace}/{name}",
            [{f"f{number}": number}],
            schema=schema,
        )
        (row,) = lake.table(f"{namespace}/{name}").collect()
        assert row[f"f{number}"] == number


def test_non_persistent_is_refused_clearly(lake: PulsarLake) -> None:
    with pytest.raises(ConfigurationError, match="Pulsar stores nothing of it"):
        lake.table("non-persistent://public/default/x")
