"""Entries that are sent at once: each at least once, in order, over lost connections."""

import pytest

from reader.encode import EncodedEntry
from reader.errors import ConfigurationError, UnavailableError
from reader.sink import DirectSender
from reader.wire.pulsar_pb2 import CommandSendReceipt
from tests.unit.decode.entries import PARTITION
from tests.unit.pulsar.binary.fake_broker import Session
from tests.unit.pulsar.binary.fake_topic import LEDGER, Sent, closing, receipt, send_error
from tests.unit.sink.worlds import TARGET, World, batches

IDS = [0, 3, 6, 9, 12, 15, 18, 21]


def sender(world: World) -> DirectSender:
    return DirectSender(world.clients, encrypted=False, sleep=world.slept.append)


def send(world: World, entries: list[EncodedEntry]) -> None:
    with sender(world) as made:
        for one in entries:
            made.put(TARGET, PARTITION, one)
        made.finish()


def test_what_is_put_is_sent(world: World) -> None:
    send(world, batches(8))
    assert world.topic.ids() == IDS
    [opened] = world.topic.opened
    assert opened.producer_name.startswith("pulsar-lake-")
    assert opened.schema == b"schema"
    assert world.directory.exists() is False, "nothing is staged"


def test_a_topic_with_other_schemas(world: World) -> None:
    world.topic.schema_version = b"\x00" * 8
    with pytest.raises(ConfigurationError, match="are not those for which its rows were encoded"):
        send(world, batches(8))
    assert world.topic.ids() == []


def test_two_tasks_have_names_of_their_own(world: World) -> None:
    send(world, batches(1))
    send(world, batches(1))
    assert world.topic.ids() == [0, 0]


@pytest.mark.parametrize("at", IDS)
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("deduplication", [False, True])
def test_a_lost_connection(world: World, at: int, stored: bool, deduplication: bool) -> None:
    world.topic.deduplication = deduplication
    once = [at]

    def hang_up(session: Session, sent: Sent) -> bool:
        if once and sent.sequence == at:
            once.clear()
            if stored:
                world.topic.push(sent)
            world.broker.hang_up()
            return False
        return True

    world.topic.before = hang_up
    send(world, batches(8))
    assert sorted(set(world.topic.ids())) == IDS
    if deduplication or not stored:
        assert [row["payload"] for row in world.rows() if row["__batchIndex"] == 0] == [
            b"%d-0" % number for number in range(8)
        ]


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> int:
    """Most entries that may be under way: fewer than a sender has otherwise."""
    monkeypatch.setattr("reader.pulsar.binary.producer.WINDOW_ENTRIES", 20)
    return 20


def test_a_producer_that_is_closed_while_an_entry_waits_for_room(world: World, window: int) -> None:
    """All that was sent is confirmed, and what waited is not."""
    receipts: list[CommandSendReceipt] = []

    def confirm_all_and_close(session: Session, sent: Sent) -> bool:
        if len(world.topic.opened) > 1:
            return True
        world.topic.push(sent)
        receipts.append(receipt(sent, (LEDGER, sent.sequence)))
        if sent.sequence == window - 1:
            world.topic.drop(session, sent.producer)
            session.send(*receipts, closing(sent.producer))
        return False

    world.topic.before = confirm_all_and_close
    send(world, batches(window + 3, size=1))
    assert world.topic.ids() == list(range(window + 3))


def test_a_producer_that_is_closed_while_all_is_sent_again(world: World, window: int) -> None:
    """What the new producer was not given yet is not confirmed by an empty window."""

    def hang_up_then_confirm_and_close(session: Session, sent: Sent) -> bool:
        if len(world.topic.opened) == 1:
            if sent.sequence == window - 1:
                world.broker.hang_up()
            return False
        if len(world.topic.opened) == 2:
            if sent.sequence == 0:
                world.topic.push(sent)
                world.topic.drop(session, sent.producer)
                session.send(receipt(sent, (LEDGER, 0)), closing(sent.producer))
            return False
        return True

    world.topic.before = hang_up_then_confirm_and_close
    send(world, batches(window + 3, size=1))
    assert world.topic.ids() == list(range(window + 3))


def test_a_connection_that_is_lost_again_and_again(world: World) -> None:
    def one_at_a_time(session: Session, sent: Sent) -> bool:
        if sent.sequence not in world.topic.ids():
            world.topic.push(sent)
            session.send(receipt(sent, (LEDGER, 1)))
            world.topic.close_producer(session, sent)
            return False
        return True

    world.topic.before = one_at_a_time
    send(world, batches(8))
    assert world.topic.ids() == IDS


def test_a_broker_that_never_takes_anything(world: World) -> None:
    def hang_up(session: Session, sent: Sent) -> bool:
        world.broker.hang_up()
        return False

    world.topic.before = hang_up
    with pytest.raises(UnavailableError):
        send(world, batches(2))
    assert world.topic.stored == []
    assert len(world.slept) == 4


def test_what_is_refused_for_good_ends_at_once(world: World) -> None:
    def refuse(session: Session, sent: Sent) -> bool:
        send_error(session, sent, 22, "Exceed maximum message size")
        return False

    world.topic.before = refuse
    with pytest.raises(ConfigurationError, match="refuses what is sent"):
        send(world, batches(2))
    assert world.slept == []


@pytest.mark.parametrize("code", [2, 9])
@pytest.mark.parametrize("deduplication", [False, True])
def test_an_entry_that_is_refused_while_one_behind_it_is_stored(
    world: World, code: int, deduplication: bool
) -> None:
    """A broker with deduplication takes it for a repeated one of that name, and drops it."""
    world.topic.deduplication = deduplication

    world.topic.refuse(6, code, "checksum")
    send(world, batches(8))
    assert {row["payload"] for row in world.rows()} == {
        b"%d-%d" % (number, row) for number in range(8) for row in range(3)
    }


def test_a_broker_that_is_gone_at_the_end(world: World) -> None:
    """All is stored: that the name cannot be given up is no failure."""
    made = sender(world)
    for one in batches(2):
        made.put(TARGET, PARTITION, one)
    made.finish()
    world.broker.close()
    made.close()
    made.close()
    assert world.topic.ids() == [0, 3]
