"""What a subscription requests of a scripted broker, and how many messages it permits."""

import time

import pytest
from google.protobuf.text_format import MessageToString

from tests.unit.pulsar.binary.fake_broker import FakeBroker, entry
from tests.unit.pulsar.binary.reads import ALL, ENTRIES, LEDGER, PARTITION, client_of, read


@pytest.mark.parametrize("first", [7, None])
def test_what_a_subscription_asks_for(first: int | None) -> None:
    """It is not durable, and creates no topic."""
    with FakeBroker(ENTRIES) as broker, client_of(broker.url) as client:
        if first is None:
            client.last_position(PARTITION)
        else:
            read(client, first, 9)
    [subscribe] = broker.subscribes
    start = "" if first is None else f"start_message_id {{ ledgerId: {LEDGER} entryId: {first} }} "
    name = subscribe.subscription
    assert name.startswith("pulsar-lake-")
    assert MessageToString(subscribe, as_one_line=True) == (
        f'topic: "{PARTITION.full_name}" subscription: "{name}" subType: Exclusive '
        f"consumer_id: {subscribe.consumer_id} request_id: {subscribe.request_id} "
        f'consumer_name: "{name}" durable: false {start}read_compacted: false '
        "initialPosition: Latest force_topic_creation: false"
    )


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
