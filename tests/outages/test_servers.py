"""The servers themselves: they die and come back, and no message is lost."""

import socket
from typing import Any

import pulsar
import pytest

from testbed.admin import Admin, ensembles, wait_until
from testbed.cluster import ProcessCluster
from testbed.publish import publish


def test_a_killed_bookie_and_a_killed_broker_lose_nothing(
    servers: ProcessCluster, servers_admin: Admin, servers_client: Any, topic_name: str
) -> None:
    values = [b"%d" % number for number in range(3_000)]
    servers_admin.create_topic(topic_name)

    def on_all() -> bool:
        """A broker goes without a bookie that was down for a while after that one is back."""
        servers_admin.seal(topic_name)
        [empty] = servers_admin.internal_stats(topic_name)["ledgers"]
        return set(ensembles(empty["metadata"])[0]) == {b.address for b in servers.bookies}

    wait_until("a ledger on all bookies", on_all, 120, 2)
    publish(servers_client, topic_name, values[:1_000])
    [first] = servers_admin.internal_stats(topic_name)["ledgers"]
    assert set(ensembles(first["metadata"])[0]) == {b.address for b in servers.bookies}

    victim = servers.bookies[0]
    victim.kill()
    publish(servers_client, topic_name, values[1_000:2_000])
    servers_admin.seal(topic_name)
    *written, _ = servers_admin.internal_stats(topic_name)["ledgers"]
    last = ensembles(written[-1]["metadata"])
    assert victim.address not in last[max(last)]
    servers.wait_bookies()
    victim.start()
    servers.wait_bookies()

    servers.kill_broker()
    servers.start_broker()
    publish(servers_client, topic_name, values[2_000:])
    assert read_all(servers_client, topic_name, 3_000) == values


def test_a_paused_bookie_answers_nothing_until_it_is_resumed(servers: ProcessCluster) -> None:
    bookie = servers.bookies[1]
    bookie.pause()
    try:
        with socket.create_connection(("127.0.0.1", bookie.port), timeout=1) as peer:
            peer.sendall(b"\0\0\0\1x")
            with pytest.raises(TimeoutError):
                peer.recv(1)
    finally:
        bookie.resume()
    servers.wait_bookies()


def read_all(client: Any, topic: str, count: int) -> list[bytes]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    try:
        return [reader.read_next(timeout_millis=60_000).data() for _ in range(count)]
    finally:
        reader.close()
