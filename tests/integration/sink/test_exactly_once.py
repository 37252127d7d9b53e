"""Staged rows on a real cluster: each of them once, in order, whatever the broker does meanwhile.

The cluster is this module's own: its broker is killed, and forgets producers after a minute.
"""

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from reader.scan import TopicReader
from reader.sink import Manifest
from testbed.admin import Admin, wait_until
from testbed.cluster import CompactCluster
from tests.integration.sink.named_writes import at_entries, decided, payloads, seen, send, stored

SETTINGS = {
    "brokerDeduplicationProducerInactivityTimeoutMinutes": 1,
    "brokerDeduplicationSnapshotIntervalSeconds": 5,
    "brokerDeduplicationSnapshotFrequencyInSeconds": 5,
    "backlogQuotaCheckIntervalInSeconds": 2,
    "maxMessageSize": 262_144,
}


@pytest.fixture(scope="module")
def quick_cluster() -> Iterator[CompactCluster]:
    with CompactCluster(bookies=2, max_entries_per_ledger=5_000, broker_config=SETTINGS) as started:
        yield started


@pytest.fixture(scope="module")
def rest(quick_cluster: CompactCluster) -> Iterator[Admin]:
    with Admin(quick_cluster.admin_url) as opened:
        yield opened


@pytest.fixture
def clients(quick_cluster: CompactCluster, tmp_path: Path) -> Iterator[Clients]:
    settings = {
        "pulsar": {
            "service_url": quick_cluster.service_url,
            "admin_url": quick_cluster.admin_url,
            "timeout": "20s",
        },
        "storage": {"uri": str(tmp_path / "lake")},
    }
    with Clients(ReadConfig.load(settings)) as opened:
        yield opened


# -- as it should be -------------------------------------------------------------------------------


def test_versions_of_a_write_to_partitions(
    quick_cluster: CompactCluster, rest: Admin, clients: Clients, topic_name: str
) -> None:
    rest.create_topic(topic_name, 3)
    everything: list[bytes] = []
    for version in range(3):
        values = [b"%d-%04d" % (version, number) for number in range(300)]
        keys = [f"k{number % 10}" for number in range(300)]
        write, manifest = decided(
            clients, topic_name, values, version=version, keys=keys, batchingMaxMessages="20"
        )
        assert send(clients, manifest, fresh=True) == 0
        assert send(clients, manifest, fresh=False) >= 300 // 20
        write.sent(manifest)
        everything += values
    with TopicReader(clients, Topic.parse(topic_name)) as opened:
        table = opened.scan(columns=["value", "__key", "__partition"]).read_all()
    assert sorted(table["value"].to_pylist()) == sorted(everything)
    by_key: dict[str, list[bytes]] = {}
    partitions: dict[str, set[int]] = {}
    names = ("value", "__key", "__partition")
    for value, key, partition in zip(*(table[n].to_pylist() for n in names), strict=True):
        by_key.setdefault(key, []).append(value)
        partitions.setdefault(key, set()).add(partition)
    assert all(values == sorted(values) for values in by_key.values())
    assert all(len(found) == 1 for found in partitions.values())
    assert len({min(found) for found in partitions.values()}) > 1


# -- a broker that goes ----------------------------------------------------------------------------


def test_a_broker_that_is_killed_and_one_that_is_restarted(
    quick_cluster: CompactCluster, rest: Admin, clients: Clients, topic_name: str
) -> None:
    rest.create_topic(topic_name)
    values = payloads(60_000, 400)
    _, manifest = decided(clients, topic_name, values, batchingMaxMessages="50", compression="none")
    entries = 60_000 // 50
    threads: list[threading.Thread] = []

    def again(stop: Callable[[], None]) -> None:
        stop()
        thread = threading.Thread(target=quick_cluster.start_broker)
        thread.start()
        threads.append(thread)

    slept: list[float] = []
    asked = resent = 0

    def now() -> float:
        """Kill the broker while it takes the first third, and restart it while it takes the rest:
        how much of what was sent before the kill is sent again is up to the kernel's buffers.
        """
        nonlocal asked, resent
        asked += 1
        resent += bool(slept)
        if asked == entries // 3:
            again(quick_cluster.kill_broker)
        elif resent == entries // 3:
            threads[0].join()
            again(quick_cluster.broker.terminate)
        return time.time()

    send(clients, manifest, fresh=True, now=now, slept=slept)
    for one in threads:
        one.join()
    assert len(threads) == 2
    assert len(slept) >= 2
    assert stored(clients, topic_name) == values
    assert seen(quick_cluster, topic_name, len(values)) == values
    assert send(clients, manifest, fresh=False) == entries
    assert stored(clients, topic_name) == values


def test_a_topic_that_is_unloaded_again_and_again(
    rest: Admin, clients: Clients, topic_name: str
) -> None:
    """Its broker closes the producer, and the connection stays."""
    rest.create_topic(topic_name)
    values = payloads(6_000, 100)
    _, manifest = decided(clients, topic_name, values, batchingMaxMessages="20")

    def unload() -> None:
        rest.unload(topic_name)

    now = at_entries(dict.fromkeys((50, 200), unload))
    send(clients, manifest, fresh=True, now=now)
    assert stored(clients, topic_name) == values


# -- a broker that forgets -------------------------------------------------------------------------


class CrashError(Exception):
    """Of the task that sends."""


def test_names_that_the_broker_has_forgotten(
    rest: Admin, clients: Clients, topic_name: str
) -> None:
    """One has sent everything, and one has died between two sends."""
    values = payloads(2_000, 2_000)
    manifests: dict[str, Manifest] = {}

    def crash() -> None:
        raise CrashError

    def known(topic: str) -> bool:
        cursor = rest.internal_stats(topic)["cursors"]["pulsar.dedup"]
        return manifests[topic].producer in cursor.get("properties", {})

    for topic in (f"{topic_name}-whole", f"{topic_name}-half"):
        rest.create_topic(topic)
        _, manifest = decided(clients, topic, values, batchingMaxMessages="10", compression="none")
        manifests[topic] = manifest
        if topic.endswith("whole"):
            send(clients, manifest, fresh=True)
        else:
            # What is sent goes out a MB at a time: of 200 entries some are stored, and some not.
            with pytest.raises(CrashError):
                send(clients, manifest, fresh=True, now=at_entries({150: crash}))
        found = wait_until("what was sent to be stored", partial(stored, clients, topic))
        assert (len(found) == 2_000) == topic.endswith("whole")
        # Before the next one is sent: the broker remembers a name for a minute.
        wait_until("the broker to know the name", partial(known, topic))

    wait_until("the broker to forget them", lambda: not any(map(known, manifests)), 240, 2)
    for topic, manifest in manifests.items():
        for _ in range(2):
            send(clients, manifest, fresh=False)
            assert stored(clients, topic) == values


# -- limits ----------------------------------------------------------------------------------------


def test_a_publish_rate_limit_is_waited_for(rest: Admin, clients: Clients, topic_name: str) -> None:
    rest.create_topic(topic_name)
    path = f"/v2/persistent/{topic_name.removeprefix('persistent://')}/publishRate"
    limit = {"publishThrottlingRateInMsg": 100, "publishThrottlingRateInByte": -1}
    rest.request("POST", path, json=limit)
    wait_until("the policy", lambda: rest.request("GET", path, params={"applied": "true"}))
    values = payloads(900)
    _, manifest = decided(clients, topic_name, values, batchingMaxMessages="10")
    began = time.monotonic()
    slept: list[float] = []
    assert send(clients, manifest, fresh=True, slept=slept) == 0
    assert time.monotonic() - began > 5
    assert slept == []
    assert stored(clients, topic_name) == values


def test_a_backlog_quota_is_told_and_waited_for(
    rest: Admin, clients: Clients, topic_name: str
) -> None:
    rest.create_topic(topic_name)
    rest.create_subscription(topic_name, "slow")
    path = f"/v2/persistent/{topic_name.removeprefix('persistent://')}/backlogQuota"

    def stats() -> Any:
        return rest.request("GET", path.replace("backlogQuota", "stats"))

    quota = {"limitSize": 1_000_000, "limitTime": -1, "policy": "producer_exception"}
    rest.request("POST", path, json=quota, params={"backlogQuotaType": "destination_storage"})
    values = payloads(6_000, 2_000)
    _, manifest = decided(clients, topic_name, values, batchingMaxMessages="10", compression="none")
    done = threading.Event()
    threads: list[threading.Thread] = []

    def catch_up() -> None:
        """The subscription, from some seconds later on."""
        while not done.wait(2):
            rest.skip_all(topic_name, "slow")

    def exceeded() -> bool:
        try:
            with clients.publisher() as publisher:
                publisher.producer(Partition.parse(topic_name), name="other", seconds=0.2).close()
        except UnavailableError as error:
            return "the backlog quota of" in error.message
        return False

    def wait() -> None:
        wait_until("the backlog quota to be exceeded", exceeded)
        # A check each 2 s closes open producers, too.
        wait_until("the producers to be closed", lambda: not stats()["publishers"])
        threads.append(threading.Thread(target=catch_up))
        threads[0].start()

    slept: list[float] = []
    try:
        send(clients, manifest, fresh=True, now=at_entries({300: wait}), slept=slept)
    finally:
        done.set()
        for one in threads:
            one.join()
    assert len(threads) == 1
    assert slept
    assert stored(clients, topic_name) == values


def test_a_broker_that_takes_less_than_a_batch(
    quick_cluster: CompactCluster, rest: Admin, clients: Clients, topic_name: str
) -> None:
    """Batches are below its ``maxMessageSize``, and larger messages are sent in chunks."""
    rest.create_topic(topic_name)
    values = [*payloads(1_000, 1_000), *payloads(3, 1_000_000), *payloads(1_000, 1_000)]
    _, manifest = decided(clients, topic_name, values, compression="none")
    assert send(clients, manifest, fresh=True) == 0
    assert send(clients, manifest, fresh=False) > 0
    assert stored(clients, topic_name) == values
    assert seen(quick_cluster, topic_name, len(values)) == values
