"""The number of messages that the reader permits a scripted broker to send."""

from __future__ import annotations

import time

from tests.unit.pulsar.binary.fake_broker import FakeBroker, entry
from tests.unit.pulsar.binary.reads import ALL, ENTRIES, LEDGER, PARTITION, client_of, read


def test_batches_take_as_many_permits_as_they_have_messages() -> None:
    batched = {at: entry(b"x", 500) for at in ENTRIES}
    with FakeBroker(batched) as broker, client_of(broker.url) as client:
        broker.counts = dict.fromkeys(batched, 500)
        found = [int(n) for b in client.read(PARTITION, LEDGER, 0, 299) for n in b.entry_ids]
        assert found == ALL


def test_the_entry_before_a_range_takes_no_permits_of_it() -> None:
    sent: list[tuple[int, int]] = []
    with FakeBroker(ENTRIES) as broker, client_of(broker.url) as client:
        broker.before_message = lambda session, consumer, at: sent.append(at)
        assert read(client, 50, 50) == [50]
        assert broker.subscriptions == [(LEDGER, 50)]
    assert sent[0] == (LEDGER, 50)


def test_a_broker_that_counts_more_messages_than_we_do_gets_permits_again() -> None:
    with FakeBroker(ENTRIES) as broker, client_of(broker.url) as client:
        broker.counts = dict.fromkeys(ENTRIES, 50_000)
        began = time.monotonic()
        assert read(client, 0, 1) == ALL[:2]
        assert time.monotonic() - began > 0.5
