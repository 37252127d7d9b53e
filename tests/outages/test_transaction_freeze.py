"""Why the sink has no transactions: what one killed writer does to a topic of Pulsar 4.2.

Each test shows one way that a protocol with transactions fails (decision 31). They are about the
broker alone: one that fails says that Pulsar has changed, and that the decision may be looked at
again.
"""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pulsar
import pytest

from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import quiet_client
from tests.support.transactions.broker_wire import BrokerWire, RefusedError, Transaction
from tests.support.transactions.killed_writer import killed_writer

PLAIN = [b"plain 0", b"plain 1"]
ROWS = [b"row 0", b"row 1", b"row 2"]
FOR_EVER = 600_000
"""Ms until a transaction is aborted: longer than a test."""


@dataclass
class Topic:
    """One topic, a connection that is a sink's driver, and what readers see."""

    cluster: Cluster
    admin: Admin
    name: str
    wire: BrokerWire
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def write(
        self, values: Sequence[bytes], transaction: Transaction | None = None, name: str = ""
    ) -> list[tuple[int, int] | None]:
        """By a producer of its own; where they were stored."""
        number = next(self.numbers)
        name = name or f"writer-{number}"
        transactional = transaction is not None
        self.wire.producer(self.name, name, number=number, transactional=transactional)
        for sequence_id, value in enumerate(values):
            self.wire.send(sequence_id, value, name=name, number=number, transaction=transaction)
        found = self.wire.outcomes(len(values), number)
        self.wire.close_producer(number)
        return [one.position for one in found]

    def begin(self, milliseconds: int = FOR_EVER) -> Transaction:
        """A transaction that the topic is registered in."""
        transaction = self.wire.begin(milliseconds)
        self.wire.register(transaction, self.name)
        return transaction

    def write_in_one(self, values: Sequence[bytes]) -> Transaction:
        transaction = self.begin()
        self.write(values, transaction)
        self.wire.commit(transaction)
        return transaction

    def visible(self, least: int = 0) -> list[bytes]:
        """What a new reader gets from the beginning on; it waits for ``least`` of it."""
        found: list[bytes] = []
        with quiet_client(self.cluster.service_url) as client:
            reader = client.create_reader(self.name, pulsar.MessageId.earliest)
            while True:
                try:
                    found.append(reader.read_next(20_000 if len(found) < least else 1_000).data())
                except pulsar.Timeout:
                    return found

    def shows(self, values: Sequence[bytes], seconds: float = 60) -> None:
        wait_until(f"{values}", lambda: self.visible() == list(values), seconds)

    def buffer(self) -> dict[str, Any]:
        path = f"/v3/transactions/transactionBufferStats/{self.name.removeprefix('persistent://')}"
        stats: dict[str, Any] = self.admin.request("GET", path)
        return stats

    def wait_open(self, count: int) -> None:
        """Until so many transactions are open to the broker."""
        wait_until("transactions", lambda: self.buffer()["ongoingTxnSize"] == count)

    def wait_ended(self, transaction: Transaction) -> None:
        """Until its coordinator has forgotten it, aborted once its time was over."""
        path = "/v3/transactions/transactionMetadata/{}/{}".format(*transaction)

        def ended() -> bool:
            try:
                self.admin.request("GET", path)
            except httpx.HTTPStatusError as error:
                return error.response.status_code == 404
            return False

        wait_until("its end", ended)

    def is_frozen(self, shown: Sequence[bytes]) -> None:
        """No reader gets what anybody writes now; a reload of the topic does not help."""
        self.write(PLAIN)
        assert self.visible(len(shown)) == list(shown)
        assert self.buffer()["ongoingTxnSize"] == 1
        self.admin.seal(self.name)  # unloads it
        wait_until("the topic", lambda: self.buffer()["state"] == "Ready")
        assert self.visible(len(shown)) == list(shown)
        assert self.buffer()["ongoingTxnSize"] == 1


Make = Callable[[], Topic]


@pytest.fixture
def make(servers: Cluster, servers_admin: Admin, topic_name: str) -> Iterator[Make]:
    """Make topics on the cluster of this folder: no other test there has transactions."""
    names = (f"{topic_name}-{number}" for number in itertools.count())
    with BrokerWire(servers.service_url) as wire:
        yield lambda: Topic(servers, servers_admin, servers_admin.create_topic(next(names)), wire)


def test_a_killed_attempt_freezes_the_topic_and_then_the_committed_rows_are_gone(
    make: Make,
) -> None:
    """A task is killed; its second attempt writes everything, all receipts are there, and the
    driver commits. Then the network delivers what the first attempt had sent.
    """
    topic = make()
    transaction = topic.begin()
    with killed_writer(topic.cluster.service_url, topic.name, transaction) as network:
        assert None not in topic.write(ROWS, transaction)
        topic.wire.commit(transaction)
        topic.shows(ROWS)
        network.resume()
        topic.wait_open(1)
    topic.is_frozen(ROWS)
    # What ends it is the next transaction, of anybody, under the same coordinator: Pulsar takes
    # the open one for a leftover, and aborts it, with all that was committed in it.
    topic.write_in_one([b"next"])
    topic.shows([*PLAIN, b"next"])


def test_late_bytes_freeze_a_topic_that_never_had_a_transaction(make: Make) -> None:
    """Nothing was committed, there is one writer, one attempt and one transaction. The topic does
    not remember an abort before it has taken its first message of a transaction.
    """
    topic = make()
    transaction = topic.begin(milliseconds=3_000)
    with killed_writer(topic.cluster.service_url, topic.name, transaction) as network:
        topic.wait_ended(transaction)
        with pytest.raises(RefusedError, match="not found"):
            topic.wire.commit(transaction)
        network.resume()
        topic.wait_open(1)
    topic.is_frozen([])


def test_late_bytes_of_an_aborted_transaction_are_harmless_where_it_is_known(make: Make) -> None:
    """One transaction for each attempt would do, if that were always so."""
    topic = make()
    topic.write_in_one(ROWS)
    transaction = topic.begin()
    with killed_writer(topic.cluster.service_url, topic.name, transaction) as network:
        topic.write([b"first attempt"], transaction)
        topic.wire.abort(transaction)
        network.resume()
        time.sleep(1)
    topic.write(PLAIN)
    topic.shows([*ROWS, *PLAIN])


def test_a_fence_keeps_out_who_is_connected_and_nobody_who_comes_later(make: Make) -> None:
    """A paused task that connects after the commit: access modes of Pulsar's producers do not
    stop it, unless the topic is closed to every other application for good.
    """
    topic = make()
    transaction = topic.begin()
    url = topic.cluster.service_url
    with BrokerWire(url) as paused, BrokerWire(url) as driver:
        paused.producer(topic.name, "paused", transactional=True)
        topic.write(ROWS, transaction)
        driver.producer(topic.name, "driver", mode=3)
        with pytest.raises(RefusedError, match="existing exclusive producer"):
            topic.write([b"of another application"])
        topic.wire.commit(transaction)
        paused.send(1, b"late", name="paused", transaction=transaction)
        assert not paused.outcomes(1)
        assert paused.over
    topic.shows(ROWS)
    wait_until("the end of the fence", lambda: _connects(topic))
    topic.write([b"late"], transaction)
    topic.wait_open(1)
    topic.is_frozen(ROWS)


def _connects(topic: Topic) -> bool:
    try:
        topic.write([])
    except RefusedError:
        return False
    return True


def test_a_dead_driver_hides_what_everybody_writes(make: Make) -> None:
    topic = make()
    with BrokerWire(topic.cluster.service_url) as dies:
        transaction = dies.begin(30_000)
        dies.register(transaction, topic.name)
        dies.producer(topic.name, "dies", transactional=True)
        dies.send(1, b"row", name="dies", transaction=transaction)
        assert dies.outcomes(1)[0].position
    topic.write(PLAIN)
    assert topic.visible() == []
    topic.shows(PLAIN, 120)  # after its time


def test_who_commits_again_does_not_learn_what_has_become_of_it(make: Make) -> None:
    topic = make()
    committed = topic.write_in_one(ROWS)
    expired = topic.begin(3_000)
    topic.wait_ended(expired)
    for one in (committed, expired):
        with pytest.raises(RefusedError, match="not found"):
            topic.wire.commit(one)


def test_deduplication_loses_what_is_sent_again_in_a_second_transaction(make: Make) -> None:
    topic = make()
    path = topic.name.replace("://", "/")
    topic.admin.request("POST", f"/v2/{path}/deduplicationEnabled", json=True)

    def status() -> Any:
        return topic.admin.request("GET", f"/v2/{path}/stats")["deduplicationStatus"]

    wait_until("deduplication", lambda: status() == "Enabled")
    first = topic.begin()
    topic.write(ROWS, first, "same")
    topic.wire.abort(first)
    second = topic.begin()
    assert topic.write(ROWS, second, "same") == [(-1, -1)] * 3
    topic.wire.commit(second)
    topic.write(PLAIN)
    topic.shows(PLAIN)
