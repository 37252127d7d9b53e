"""Reads of real bookies, by the range and one by one, also while a bookie dies.

A bookie dies behind a proxy: all test processes share the bookies themselves.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack

import pytest

from reader.bookkeeper import BookKeeperClient
from reader.config import PulsarConfig
from reader.model import EntryBlock, LedgerMetadata, Partition
from reader.pulsar.admin import AdminClient
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.proxy import TcpProxy
from testbed.publish import publish

COUNT = 4_000


@pytest.fixture
def ledger(cluster: Cluster, admin: Admin, namespace: str) -> LedgerMetadata:
    """Entries of 20 to 20,000 bytes, each on both bookies of its ensemble."""
    admin.set_quorums(namespace, 2, 2, 2)
    topic = f"persistent://{namespace}/both"
    values = [b"%d " % n * (4 if n % 100 else 4_000) for n in range(COUNT)]
    publish(cluster.service_url, topic, values)
    admin.seal(topic)
    config = PulsarConfig(service_url=cluster.service_url, admin_url=cluster.admin_url)
    with AdminClient(config) as client:
        found = client.ledgers(Partition.parse(topic)).ledgers[0].metadata
    assert found is not None and found.last_entry == COUNT - 1
    assert found.ensemble_size == found.write_quorum == 2
    return found


@pytest.fixture
def striped(cluster: Cluster, admin: Admin, namespace: str) -> tuple[LedgerMetadata, list[bytes]]:
    """Entries of 20 to 20,000 bytes, each on two of three bookies; and what was sent.

    A broker goes without a bookie that was down for a while after that one is back, and ends the
    ledger early where a write to it fails.
    """
    admin.set_quorums(namespace, 3, 2, 2)
    values = [b"%d " % n * (4 if n % 100 else 4_000) for n in range(COUNT)]
    config = PulsarConfig(service_url=cluster.service_url, admin_url=cluster.admin_url)
    for number in range(30):
        topic = f"persistent://{namespace}/striped-{number}"
        publish(cluster.service_url, topic, values)
        admin.seal(topic)
        with AdminClient(config) as client:
            found = client.ledgers(Partition.parse(topic)).ledgers[0].metadata
        assert found is not None
        if (found.ensemble_size, found.write_quorum, found.last_entry) == (3, 2, COUNT - 1):
            return found, values
        time.sleep(2)
    raise AssertionError("no ledger has all entries on three bookies")


@pytest.fixture
def proxies(cluster: Cluster) -> Iterator[dict[str, TcpProxy]]:
    """A proxy in front of each bookie, by the bookie's id."""
    with ExitStack() as stack:
        yield {one.address: stack.enter_context(TcpProxy(one.address)) for one in cluster.bookies}


def _client(proxies: Mapping[str, TcpProxy]) -> BookKeeperClient:
    addresses = {bookie: proxy.address for bookie, proxy in proxies.items()}
    return BookKeeperClient(addresses=addresses, timeout=10)


def _die(bookie: TcpProxy, how: str) -> None:
    """Cut and refuse connections as a killed bookie does, or answer nothing as a paused one."""
    bookie.stop() if how == "kill" else bookie.stall()


def _entries(blocks: Iterable[EntryBlock]) -> list[tuple[int, bytes]]:
    return [
        (int(entry), block.arena[at : at + size].tobytes())
        for block in blocks
        for entry, at, size in zip(block.entry_ids, block.offsets, block.lengths, strict=True)
    ]


def _singly(ledger: LedgerMetadata, first: int, last: int) -> list[tuple[int, bytes]]:
    with BookKeeperClient() as client:
        for bookie in ledger.ensemble_at(first):
            client.health.avoid_range_reads(bookie)
        return _entries(client.read(ledger, first, last, block_bytes=1 << 20))


def test_batches_are_what_single_reads_are(ledger: LedgerMetadata) -> None:
    expected = _singly(ledger, 0, COUNT - 1)
    assert [entry for entry, _ in expected] == list(range(COUNT))
    with BookKeeperClient() as client:
        for size in (1, 10_000, 4 << 20):
            last = COUNT - 1 if size > 1 else 250
            blocks = list(client.read(ledger, 0, last, block_bytes=size))
            assert _entries(blocks) == expected[: last + 1]
        assert len(blocks) < 10  # that is, they were batches
        assert _entries(client.read(ledger, 1_234, 1_234)) == expected[1_234:1_235]


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_bookie_that_dies_in_the_middle(
    ledger: LedgerMetadata, proxies: dict[str, TcpProxy], how: str
) -> None:
    expected = _singly(ledger, 0, COUNT - 1)
    victim = proxies[ledger.replicas(0)[0]]
    with _client(proxies) as client:
        blocks = client.read(ledger, 0, COUNT - 1, block_bytes=20_000)
        found = [next(blocks) for _ in range(5)]
        assert victim.connections
        _die(victim, how)
        assert _entries([*found, *blocks]) == expected


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_bookie_of_a_striped_ledger_that_dies_in_the_middle(
    striped: tuple[LedgerMetadata, list[bytes]], proxies: dict[str, TcpProxy], how: str
) -> None:
    ledger, values = striped
    victim = proxies[ledger.replicas(0)[0]]
    with _client(proxies) as client:
        blocks = client.read(ledger, 0, COUNT - 1, block_bytes=20_000)
        found = [next(blocks) for _ in range(5)]
        assert victim.connections
        _die(victim, how)
        found += blocks
    entries = _entries(found)
    assert [entry for entry, _ in entries] == list(range(COUNT))
    # The payload is the end of an entry.
    assert all(body.endswith(value) for (_, body), value in zip(entries, values, strict=True))
