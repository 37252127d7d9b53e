"""Range reads of real bookies give the bytes of entry reads, also while a bookie dies.

The ledgers of the shared cluster are striped, and are read entry by entry. This ledger is not: each
bookie of its ensemble has all entries, as with Pulsar's default quorums. A bookie dies behind a
proxy, because all test processes share the bookies.
"""

import time
from collections.abc import Iterable
from contextlib import ExitStack

import pytest

from offloader.config import Config
from reader.bookkeeper import BookKeeperClient
from reader.bookkeeper.reads.read_messages import ReadKind
from reader.model import EntryBlock, LedgerMetadata, Partition
from reader.pulsar.admin import AdminClient
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.proxy import TcpProxy
from testbed.publish import publish

COUNT = 4_000
VALUES = [b"%d " % n * (4 if n % 100 else 4_000) for n in range(COUNT)]  # 8 to 20,000 bytes


@pytest.fixture(scope="module")
def ledger(
    cluster: Cluster, admin: Admin, lake_config: Config, lake_namespace: str
) -> LedgerMetadata:
    admin.set_quorums(lake_namespace, 2, 2, 2)
    topic = f"persistent://{lake_namespace}/both"
    publish(cluster.service_url, topic, VALUES)
    admin.seal(topic)
    with AdminClient(lake_config.pulsar) as client:
        found = client.ledgers(Partition.parse(topic)).ledgers[0].metadata
    assert found is not None and found.last_entry == COUNT - 1
    assert found.ensemble_size == found.write_quorum == 2
    return found


def entries(blocks: Iterable[EntryBlock]) -> list[tuple[int, bytes]]:
    return [
        (int(entry), block.arena[at : at + size].tobytes())
        for block in blocks
        for entry, at, size in zip(block.entry_ids, block.offsets, block.lengths, strict=True)
    ]


def kinds(client: BookKeeperClient) -> set[ReadKind]:
    """Return the kinds of the connections that are open."""
    return {kind for _, kind in client._connections._open}  # noqa: SLF001


def read_singly(ledger: LedgerMetadata) -> list[tuple[int, bytes]]:
    with BookKeeperClient() as client:
        client.health.advance(time.monotonic())
        for bookie in ledger.ensemble_at(0):
            client.health.avoid_range_reads(bookie)
        found = entries(client.read(ledger, 0, COUNT - 1))
        assert kinds(client) == {ReadKind.ENTRY}
    return found


def test_ranges_are_what_single_entries_are(ledger: LedgerMetadata) -> None:
    expected = read_singly(ledger)
    assert [entry for entry, _ in expected] == list(range(COUNT))
    # The payload is the end of an entry.
    assert all(body.endswith(value) for (_, body), value in zip(expected, VALUES, strict=True))
    for size in (1, 10_000, 4 << 20):
        with BookKeeperClient() as client:
            last = COUNT - 1 if size > 1 else 250
            blocks = list(client.read(ledger, 0, last, block_bytes=size))
            assert entries(blocks) == expected[: last + 1]
            assert entries(client.read(ledger, 1_234, 1_234)) == expected[1_234:1_235]
            assert kinds(client) == {ReadKind.RANGE}
    assert len(blocks) < 10


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_bookie_that_dies_in_the_middle(
    cluster: Cluster, ledger: LedgerMetadata, how: str
) -> None:
    """Killed: connections are cut and refused. Paused: it answers nothing."""
    with ExitStack() as stack:
        proxies = {
            bookie.address: stack.enter_context(TcpProxy(bookie.address))
            for bookie in cluster.bookies
        }
        addresses = {bookie: proxy.address for bookie, proxy in proxies.items()}
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=10))
        blocks = client.read(ledger, 0, COUNT - 1, block_bytes=20_000)
        found = [next(blocks) for _ in range(5)]
        victim = proxies[ledger.replicas(0)[0]]
        assert victim.connections
        victim.stop() if how == "kill" else victim.stall()
        given = entries([*found, *blocks])
    assert [entry for entry, _ in given] == list(range(COUNT))
    assert all(body.endswith(value) for (_, body), value in zip(given, VALUES, strict=True))
