"""What the broker's client gives, against the bookies: the same bytes, entry by entry."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from offloader.config import Config
from reader.bookkeeper import BookKeeperClient
from reader.errors import NotFoundError
from reader.model import Partition, Position
from reader.pulsar import AdminClient
from reader.pulsar.binary import BrokerClient
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.oracle import Oracle
from testbed.publish import json_schema, publish

Entries = dict[tuple[int, int], bytes]


@pytest.fixture
def broker(lake_config: Config) -> Iterator[BrokerClient]:
    with BrokerClient(lake_config.pulsar) as opened:
        yield opened


@pytest.fixture
def rest(lake_config: Config) -> Iterator[AdminClient]:
    with AdminClient(lake_config.pulsar) as opened:
        yield opened


def of_bookies(rest: AdminClient, partition: Partition) -> Entries:
    """All entries of the partition."""
    found: Entries = {}
    listed = rest.ledgers(partition)
    with BookKeeperClient() as client:
        for ledger in listed.ledgers:
            of_end = ledger.ledger_id == listed.last_confirmed.ledger
            last = listed.last_confirmed.entry if of_end else ledger.entries - 1
            if ledger.metadata is None or last < 0:
                continue
            for block in client.read(ledger.metadata, 0, last):
                for number, at, size in zip(
                    block.entry_ids, block.offsets, block.lengths, strict=True
                ):
                    data = block.arena[at : at + size].tobytes()
                    found[block.ledger_id, int(number)] = data
    return found


def of_broker(
    broker: BrokerClient,
    partition: Partition,
    wanted: Entries,
    *,
    block_bytes: int = 4 << 20,
    between: Callable[[int], None] = lambda seen: None,
) -> Entries:
    """What the broker gives of those ledgers. ``between``: after each block, with what came."""
    found: Entries = {}
    for ledger in sorted({ledger for ledger, _ in wanted}):
        last = max(number for one, number in wanted if one == ledger)
        for block in broker.read(partition, ledger, 0, last, block_bytes=block_bytes):
            ids = [(block.ledger_id, int(number)) for number in block.entry_ids]
            assert not found.keys() & set(ids)
            for key, at, size in zip(ids, block.offsets, block.lengths, strict=True):
                found[key] = block.arena[at : at + size].tobytes()
            between(len(found))
    assert list(found) == sorted(found)
    return found


def test_partitions_and_schemas(
    cluster: Cluster, admin: Admin, rest: AdminClient, broker: BrokerClient, topic_name: str
) -> None:
    schema = json_schema(
        {"type": "record", "name": "One", "fields": [{"name": "a", "type": "int"}]}
    )
    admin.create_topic(topic_name, 3)
    publish(cluster.service_url, topic_name, ({"a": n} for n in range(300)), schema=schema)
    known = rest.schemas(Partition.parse(topic_name).topic)
    for number in range(3):
        partition = Partition.parse(f"{topic_name}-partition-{number}")
        stored = of_bookies(rest, partition)
        assert of_broker(broker, partition, stored) == stored
        # The broker's protocol does not say when a version was registered.
        for version, listed in ((None, known[-1]), ((0).to_bytes(8, "big"), known[0])):
            assert broker.schema(partition, version) == replace(listed, timestamp=0)
        assert broker.schema(partition, (77).to_bytes(8, "big")) is None


def test_a_topic_that_does_not_exist(broker: BrokerClient, admin: Admin, topic_name: str) -> None:
    partition = Partition.parse(topic_name)
    with pytest.raises(NotFoundError):
        list(broker.read(partition, 1, 0, 5))
    with pytest.raises(NotFoundError):
        broker.last_position(partition)
    assert broker.schema(Partition.parse(f"{topic_name}-2"), None) is None


# -- what the broker hides, and where it ends ------------------------------------------------------


def test_transactions_and_where_they_end(
    admin: Admin, oracle: Oracle, rest: AdminClient, broker: BrokerClient, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    partition = Partition.parse(topic_name)
    with pytest.raises(StopIteration):
        next(broker.read(partition, 1 << 40, 0, 5))

    def write(count: int, transaction: str | None = None) -> list[tuple[int, int]]:
        sent = oracle.write(topic_name, [{"value": b"x"}] * count, transaction=transaction)
        return [(ledger, entry) for ledger, entry, _, _ in sent]

    def check(visible: list[tuple[int, int]]) -> None:
        stored = of_bookies(rest, partition)
        seen = of_broker(broker, partition, stored)
        assert seen == {at: stored[at] for at in visible}
        assert broker.last_position(partition) == Position(*visible[-1])
        broker.release()
        admin.unload(topic_name)
        # At once: it may not have looked for transactions yet.
        assert of_broker(broker, partition, stored) == seen

    plain, aborted, late = write(3), oracle.begin(), oracle.begin()
    check(plain)
    write(2, aborted)
    oracle.abort(aborted)
    check(plain)  # it ends in what is hidden
    open_ = write(2, late)
    behind = write(2)
    check(plain)  # behind what is open
    oracle.commit(late)
    check(plain + open_ + behind)  # it ends in a marker
    # Terminated while its last ledger is empty, a topic shows aborted entries once it is loaded
    # again, to every consumer (Pulsar 4.2).
    end = write(1)
    admin.terminate(topic_name)
    check(plain + open_ + behind + end)


def test_a_topic_that_was_terminated_while_its_last_ledger_was_empty(
    cluster: Cluster, admin: Admin, rest: AdminClient, broker: BrokerClient, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    partition = Partition.parse(topic_name)
    for _ in range(2):
        publish(cluster.service_url, topic_name, (b"%d" % n for n in range(500)))
        admin.seal(topic_name)
    admin.terminate(topic_name)
    admin.unload(topic_name)
    stored = of_bookies(rest, partition)
    assert broker.last_position(partition).entry == -1  # the broker does not know
    assert of_broker(broker, partition, stored) == stored


def test_topics_without_any_message(
    admin: Admin, oracle: Oracle, broker: BrokerClient, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    partition = Partition.parse(topic_name)
    for _ in range(2):
        assert broker.last_position(partition).entry == -1
        for ledger in admin.ledgers(topic_name):
            assert list(broker.read(partition, ledger, 0, 5)) == []
        aborted = oracle.begin()
        oracle.write(topic_name, [{"value": b"x"}], transaction=aborted)
        oracle.abort(aborted)


# -- moves -----------------------------------------------------------------------------------------


def test_an_unload_in_the_middle(
    cluster: Cluster, admin: Admin, rest: AdminClient, broker: BrokerClient, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    partition = Partition.parse(topic_name)
    publish(cluster.service_url, topic_name, (b"%d" % n * 100 for n in range(12_000)))
    stored = of_bookies(rest, partition)
    moves = iter([len(stored) // 3, len(stored) // 2, 10 * len(stored)])
    at = next(moves)

    def unload(seen: int) -> None:
        nonlocal at
        if seen >= at:
            admin.unload(topic_name)
            at = next(moves)

    found = of_broker(broker, partition, stored, block_bytes=64 << 10, between=unload)
    assert found == stored
