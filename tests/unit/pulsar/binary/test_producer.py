"""A producer against a scripted broker: the window, receipts, refusals, and what a wait costs."""

import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from reader.errors import (
    ConfigurationError,
    CorruptError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
)
from reader.model import Position
from reader.pulsar.binary import OutgoingEntry, Producer, Publisher
from reader.wire import pulsar_pb2 as api
from testbed.admin import wait_until
from testbed.security import Authority
from tests.unit.pulsar.binary.fake_broker import FakeBroker, Session
from tests.unit.pulsar.binary.fake_topic import (
    LEDGER,
    FakeTopic,
    Sent,
    closing,
    receipt,
    send_error,
)
from tests.unit.pulsar.binary.reads import PARTITION, Passing, Time, idle, publisher_of


def entry(sequence: int, payload: bytes = b"payload", messages: int = 1) -> OutgoingEntry:
    metadata = api.MessageMetadata(
        producer_name="me", sequence_id=sequence, publish_time=1, num_messages_in_batch=messages
    ).SerializeToString()
    return OutgoingEntry(sequence, sequence + messages - 1, messages, metadata, payload)


def opened(publisher: Publisher, **more: Any) -> Producer:
    return publisher.producer(PARTITION, **({"name": "me"} | more))


@pytest.fixture
def producer(publisher: Publisher) -> Producer:
    return opened(publisher)


def send(producer: Producer, sequences: Iterable[int]) -> None:
    for sequence in sequences:
        producer.send(entry(sequence))
    producer.flush()


def test_what_is_sent_is_what_is_stored(producer: Producer, topic: FakeTopic) -> None:
    producer.send(entry(5, b"one"))
    producer.send(entry(6, memoryview(b"batch"), messages=3))  # type: ignore[arg-type]
    producer.send(entry(9, b""))
    assert producer.first_waiting == 5
    producer.flush()
    assert producer.first_waiting is None
    assert (producer.stored, len(producer.repeated)) == (3, 0)
    assert producer.last == Position(LEDGER, 2)
    producer.close()
    assert [(one.sequence, one.highest, one.messages) for one in topic.stored] == [
        (5, 5, 1),
        (6, 8, 3),
        (9, 9, 1),
    ]
    assert [one.payload for one in topic.stored] == [b"one", b"batch", b""]
    assert [one.metadata.sequence_id for one in topic.stored] == [5, 6, 9]
    assert all(one.whole for one in topic.stored)


def test_what_a_producer_says_of_itself(publisher: Publisher, topic: FakeTopic) -> None:
    topic.last["me"], topic.schema_version = 41, b"\x02"
    schema = api.Schema(schema_data=b"{}", type=4).SerializeToString() + b"\xea\x04\x05newer"
    producer = opened(publisher, schema=schema, encrypted=True)
    assert (producer.name, producer.last_sequence) == ("me", 41)
    assert producer.schema_version == b"\x02"
    made = opened(publisher, name=None)
    assert (made.name, made.last_sequence) == ("made-up-2", -1)
    named, unnamed = topic.opened
    assert (named.topic, named.producer_name) == (PARTITION.full_name, "me")
    assert (named.encrypted, named.user_provided_producer_name) == (True, True)
    assert named.schema == schema
    assert not unnamed.HasField("producer_name")
    assert not unnamed.HasField("schema")
    assert (unnamed.encrypted, unnamed.user_provided_producer_name) == (False, False)


@pytest.mark.parametrize("last", [-1, 0, (1 << 62) - 1])
def test_the_last_id_that_a_broker_remembers(
    publisher: Publisher, topic: FakeTopic, last: int
) -> None:
    topic.last["me"] = last
    assert opened(publisher).last_sequence == last


# -- receipts --------------------------------------------------------------------------------------


def test_receipts_out_of_order(producer: Producer, topic: FakeTopic) -> None:
    """Those of what was there already overtake others."""
    held: list[Sent] = []

    def backwards(session: Session, sent: Sent) -> bool:
        held.append(sent)
        if len(held) == 4:
            for number, one in enumerate(reversed(held)):
                at = (-1, -1) if number == 1 else (LEDGER, one.sequence)
                session.send(receipt(one, at))
        return False

    topic.before = backwards
    send(producer, range(4))
    assert (producer.stored, len(producer.repeated)) == (4, 1)
    assert producer.last == Position(LEDGER, 3)


def test_the_first_that_waits_is_the_lowest(producer: Producer, topic: FakeTopic) -> None:
    def all_but_the_second(session: Session, sent: Sent) -> bool:
        if sent.sequence != 1:
            topic.store(session, sent)
        if sent.sequence == 2:
            topic.broker.hang_up()
        return False

    topic.before = all_but_the_second
    for sequence in range(3):
        producer.send(entry(sequence))
    with pytest.raises(UnavailableError):
        producer.flush()
    assert producer.first_waiting == 1
    assert producer.stored == 2


def test_what_was_there_already_is_counted(publisher: Publisher, topic: FakeTopic) -> None:
    topic.last["me"] = 1
    producer = opened(publisher)
    send(producer, range(4))
    assert (producer.stored, len(producer.repeated)) == (4, 2)
    assert topic.ids() == [2, 3]


def test_receipts_that_nobody_waits_for_harm_nothing(producer: Producer, topic: FakeTopic) -> None:
    def twice(session: Session, sent: Sent) -> bool:
        other = Sent(99, "other", sent.sequence, sent.highest, 1, b"")
        for one, at in ((sent, (LEDGER, 0)), (sent, (-1, -1)), (other, (LEDGER, 9))):
            session.send(receipt(one, at))
        return False

    topic.before = twice
    for sequence in range(2):
        producer.send(entry(sequence))
        producer.flush()
    assert (producer.stored, len(producer.repeated)) == (2, 0)


# -- the window ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "most"), [(10, 1000), (4 << 20, 8)])
def test_no_more_is_under_way_than_the_window_has_room_for(
    broker: FakeBroker, topic: FakeTopic, size: int, most: int
) -> None:
    """1000 entries, or 32 MiB."""
    withheld: list[Sent] = []
    full = Event()

    def withhold(session: Session, sent: Sent) -> bool:
        withheld.append(sent)
        if len(withheld) >= most - 1:
            full.set()
        return False

    topic.before = withhold
    with publisher_of(broker.url) as publisher, ThreadPoolExecutor(1) as sender:
        producer = opened(publisher)
        entries = (entry(sequence, bytes(size)) for sequence in range(most + 5))
        sending = sender.submit(lambda: deque(map(producer.send, entries)))
        assert full.wait(60)
        assert wait([sending], timeout=0.5).not_done
        assert most - 1 <= len(withheld) <= most
        broker.hang_up()
        with pytest.raises(UnavailableError):
            sending.result(60)
        assert producer.first_waiting == 0


def test_one_entry_goes_out_whatever_its_size(producer: Producer, topic: FakeTopic) -> None:
    for sequence in range(20):
        producer.send(entry(sequence, bytes((5 << 20) - 100)))
    producer.flush()
    assert topic.ids() == list(range(20))


def test_an_entry_that_is_too_large_is_not_sent(broker: FakeBroker, topic: FakeTopic) -> None:
    with publisher_of(broker.url) as publisher:
        producer = opened(publisher)
        producer.send(entry(0))
        with pytest.raises(ConfigurationError, match=r"is more than .* takes") as caught:
            producer.send(entry(1, bytes(5 << 20)))
        assert caught.value.hint == "see the broker's maxMessageSize"
        producer.flush()
        assert producer.first_waiting is None
    assert topic.ids() == [0]


def test_what_waits_for_room_counts_as_unconfirmed(producer: Producer, topic: FakeTopic) -> None:
    """Else whoever sends what is unconfirmed again would leave it out."""

    receipts: list[api.CommandSendReceipt] = []

    def confirm_all_and_close(session: Session, sent: Sent) -> bool:
        topic.push(sent)
        receipts.append(receipt(sent, (LEDGER, sent.sequence)))
        if sent.sequence == 999:
            topic.drop(session, sent.producer)
            session.send(*receipts, closing(sent.producer))
        return False

    topic.before = confirm_all_and_close
    with pytest.raises(UnavailableError, match="has closed"):
        send(producer, range(1001))
    assert producer.first_waiting == 1000
    assert topic.ids() == list(range(1000))


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (2, UnavailableError, "has it, and has not stored it yet"),
        (9, UnavailableError, "does not serve"),  # ChecksumError
        (15, ConfigurationError, "is terminated"),
        (22, ConfigurationError, "refuses what is sent"),
        (7, UnavailableError, "backlog quota"),
        (8, UnavailableError, "backlog quota"),
        (3, ConfigurationError, "no permission"),
        (4, ConfigurationError, "no permission"),
        (11, NotFoundError, "does not exist"),
        (25, ConfigurationError, "an exclusive producer has"),
        (99, UnavailableError, "does not serve"),
    ],
)
def test_behind_a_refused_entry_nothing_is_stored(
    producer: Producer, topic: FakeTopic, code: int, kind: type[PulsarLakeError], text: str
) -> None:
    def refuse(session: Session, sent: Sent) -> bool:
        if sent.sequence == 3:
            send_error(session, sent, code, "why not")
            return False
        return True

    topic.before = refuse
    with pytest.raises(kind, match=text) as caught:
        send(producer, range(4))
    assert "why not" in str(caught.value)
    assert producer.connection.broken
    assert producer.first_waiting == 3
    with pytest.raises(UnavailableError):
        for sequence in range(4, 2000):
            producer.send(entry(sequence))
    topic.broker.sessions[-1].wait_closed()
    assert topic.ids() == [0, 1, 2]
    producer.close()
    assert api.CommandCloseProducer not in topic.broker.heard


def test_a_producer_that_the_broker_closes(broker: FakeBroker, topic: FakeTopic) -> None:
    """As a topic moves, or its backlog quota is exceeded: what follows gets no answer."""

    def close(session: Session, sent: Sent) -> bool:
        if sent.sequence == 2:
            topic.close_producer(session, sent, topic.broker.url)
            return False
        return True

    topic.before = close
    with publisher_of(broker.url) as publisher:
        producer = opened(publisher)
        with pytest.raises(UnavailableError, match="the broker has closed"):
            send(producer, range(5))
        assert producer.first_waiting == 2
        topic.before = lambda session, sent: True
        # The connection is still of use, and the next producer begins behind what is stored.
        again = opened(publisher)
        assert again.connection is producer.connection
        assert again.last_sequence == 1
        send(again, range(2, 5))
    assert topic.ids() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("other", [False, True])
def test_a_topic_that_migrates(broker: FakeBroker, topic: FakeTopic, other: bool) -> None:
    def migrate(session: Session, sent: Sent) -> bool:
        number = sent.producer + other
        session.send(api.CommandTopicMigrated(resource_id=number, resource_type="Producer"))
        return other

    topic.before = migrate
    with publisher_of(broker.url) as publisher:
        producer = opened(publisher)
        producer.send(entry(0))
        if other:
            producer.flush()  # another producer of this connection
            return
        with pytest.raises(UnavailableError, match="the broker has closed"):
            producer.flush()


def test_a_close_of_another_producer(producer: Producer, topic: FakeTopic) -> None:
    def close(session: Session, sent: Sent) -> bool:
        session.send(closing(sent.producer + 50))
        return True

    topic.before = close
    send(producer, range(1))


def test_an_answer_to_something_else(broker: FakeBroker, topic: FakeTopic) -> None:
    def success(session: Session, command: api.CommandProducer) -> None:
        session.send(api.CommandSuccess(request_id=command.request_id))

    broker.reactions[api.CommandProducer] = success
    with publisher_of(broker.url) as publisher, pytest.raises(CorruptError, match="not asked"):
        opened(publisher)


# -- waits -----------------------------------------------------------------------------------------


def test_a_silent_broker(broker: FakeBroker, topic: FakeTopic) -> None:
    topic.before = lambda session, sent: False
    broker.reactions[api.CommandPing] = lambda session, command: None
    clock = Passing(0.5, lambda: bool(topic.came))
    with publisher_of(broker.url, "4s", time=clock) as publisher:
        producer = opened(publisher)
        producer.send(entry(0))
        with pytest.raises(UnavailableError, match="not even the answer to a PING"):
            producer.flush()
        assert producer.connection.broken


def test_a_broker_that_lives_and_stores_nothing(
    broker: FakeBroker, topic: FakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic.before = lambda session, sent: False
    clock = Passing(0.04, idle(broker, monkeypatch))
    with publisher_of(broker.url, "600ms", time=clock) as publisher:
        producer = opened(publisher)
        producer.send(entry(0))
        with pytest.raises(UnavailableError, match="stores nothing of what is sent"):
            producer.flush()
        assert broker.heard.count(api.CommandPing) >= 4
        # The name is free: a broker has it as long as the connection that has it.
        broker.sessions[-1].wait_closed()
        topic.before = lambda session, sent: True
        again = opened(publisher)
        send(again, range(1))
    assert topic.ids() == [0]


def test_slow_receipts_are_no_failure(broker: FakeBroker, topic: FakeTopic) -> None:
    """As under a publish rate limit: each comes after a while, all of them after a long one."""
    clock = Time()

    def slow(session: Session, sent: Sent) -> bool:
        wait_until("the last is taken", lambda: made.stored == len(topic.stored), 60, 0.01)
        clock.now += 4
        return True

    topic.before = slow
    with publisher_of(broker.url, "10s", time=clock) as publisher:
        made = opened(publisher)
        send(made, range(11))
        assert (made.stored, clock.waited) == (11, 44)


def test_pings_are_answered_while_it_waits(producer: Producer, topic: FakeTopic) -> None:
    ponged = Event()

    def ping_first(session: Session, sent: Sent) -> bool:
        session.send(api.CommandPing())
        session.waiting = sent  # type: ignore[attr-defined]
        return False

    def pong(session: Session, command: api.CommandPong) -> None:
        ponged.set()
        topic.store(session, session.waiting)  # type: ignore[attr-defined]

    topic.before = ping_first
    topic.broker.reactions[api.CommandPong] = pong
    send(producer, range(1))
    assert ponged.is_set()


def test_a_broker_that_reads_nothing(broker: FakeBroker, topic: FakeTopic) -> None:
    stop = Event()
    topic.before = lambda session, sent: stop.wait(60)
    with publisher_of(broker.url, "2s", time=Time()) as publisher:
        producer = opened(publisher)
        with pytest.raises(UnavailableError):
            for sequence in range(8):
                producer.send(entry(sequence, bytes(4 << 20)))
            producer.flush()
        assert producer.connection.broken
    stop.set()


def test_a_name_is_given_up(publisher: Publisher, broker: FakeBroker, topic: FakeTopic) -> None:
    opened(publisher).close()
    opened(publisher).close(time.monotonic() + 30)
    again = opened(publisher)
    publisher.close()
    again.close()  # of a closed connection: nothing
    assert topic.broker.heard.count(api.CommandCloseProducer) == 2
    assert len(topic.broker.connects) == 2  # one for lookups, one for entries


def test_with_tls(tmp_path: Path) -> None:
    """Where frames go out in pieces of any size."""
    authority = Authority(tmp_path)
    with FakeBroker(tls=authority.sign("broker").server_context()) as broker:
        topic = FakeTopic(broker)

        def looked_up(session: Session, command: api.CommandLookupTopic) -> None:
            answer = api.CommandLookupTopicResponse(
                request_id=command.request_id, response="Connect"
            )
            answer.brokerServiceUrlTls = broker.url
            session.send(answer)

        broker.reactions[api.CommandLookupTopic] = looked_up
        with publisher_of(broker.url, tls_trust_certs_file=str(authority.certificate)) as publisher:
            producer = opened(publisher)
            sizes = [0, 1, 100, 17_000, (1 << 20) - 200, 1 << 20, 3_333_333, 5 << 19, 0, 7]
            payloads = [bytes([number]) * size for number, size in enumerate(sizes)]
            for number, payload in enumerate(payloads):
                producer.send(entry(number, payload))
            producer.flush()
        assert [one.payload for one in topic.stored] == payloads
        assert all(one.whole for one in topic.stored)


def test_a_last_id_that_is_not_said(publisher: Publisher, topic: FakeTopic) -> None:
    def short(session: Session, command: api.CommandProducer) -> None:
        session.send(api.CommandProducerSuccess(request_id=command.request_id, producer_name="me"))

    topic.broker.reactions[api.CommandProducer] = short
    assert opened(publisher).last_sequence == -1
