"""What is staged for a partition, sent: each entry once, in order, whatever happens on the way."""

from dataclasses import replace

import pytest

from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.sink import refusal_path
from reader.storage.objects import Objects
from tests.unit.decode.entries import PARTITION
from tests.unit.pulsar.binary.fake_broker import Session
from tests.unit.pulsar.binary.fake_topic import Sent, receipt, send_error
from tests.unit.sink.worlds import NOISE, World, batches

IDS = [0, 3, 6, 9, 12, 15, 18, 21]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("first", [0, 1000])
def test_the_first_time(world: World, first: int, large: bool) -> None:
    manifest = world.manifest(batches(8, large=large), first=first)
    assert len(manifest.files) == large
    found = world.send(manifest, fresh=True)
    assert (found.partition, found.ids, found.repeated) == (PARTITION.full_name, 24, 0)
    assert world.topic.ids() == [first + one for one in IDS]
    tail = NOISE if large else b""
    assert world.payloads() == [b"%d-%d" % (n, row) + tail for n in range(8) for row in range(3)]
    assert [row["__sequenceId"] for row in world.rows()] == list(range(first, first + 24))
    assert {row["__producerName"] for row in world.rows()} == {"me"}
    assert {row["__publishTime"] for row in world.rows()} == {1_700_000_005_000_000}
    assert world.reads == 0
    assert [one.schema for one in world.topic.opened] == [b"schema"]
    assert all(one.whole for one in world.topic.stored)


def test_once_more(world: World) -> None:
    """By a driver that does not know whether it was sent."""
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    found = world.send(manifest, fresh=False)
    assert (found.ids, found.repeated) == (24, 8)
    assert world.topic.ids() == IDS
    assert world.reads == 1, "whether all of it is there was looked at"


def test_a_part_was_sent_before(world: World) -> None:
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[5:]
    world.topic.last["me"] = 14
    found = world.send(manifest, fresh=False)
    assert found.repeated == 5
    assert world.topic.ids() == IDS


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("before", [-1, 99])
def test_what_the_storage_has_forgotten(world: World, fresh: bool, before: int) -> None:
    """It was set back: a later version had been sent, of which no manifest is left."""
    manifest = world.manifest(batches(8), first=1000)
    [entries] = manifest.partitions
    manifest = replace(manifest, partitions=[replace(entries, before=before)])
    world.topic.last["me"] = 100
    for _ in range(2):
        with pytest.raises(PulsarLakeError, match="messages of me that no manifest knows"):
            world.send(manifest, fresh=fresh)
    assert world.topic.ids() == []
    world.topic.last["me"] = before
    world.send(manifest, fresh=fresh)
    assert world.topic.ids() == [1000 + one for one in IDS]


def test_a_broker_that_remembers_an_earlier_version_alone(world: World) -> None:
    """What it says at connect is less than what was sent before this version."""
    manifest = world.manifest(batches(8), first=1000)
    [entries] = manifest.partitions
    manifest = replace(manifest, partitions=[replace(entries, before=99)])
    world.topic.last["me"] = 99
    world.send(manifest, fresh=True)
    world.topic.last["me"] = 50
    world.send(manifest, fresh=False)
    assert world.topic.ids() == [1000 + one for one in IDS]


@pytest.mark.parametrize("fresh", [True, False])
def test_a_topic_with_other_schemas(world: World, fresh: bool) -> None:
    """It was made again meanwhile: the entries name a version of schemas that are gone."""
    manifest = world.manifest(batches(8))
    world.topic.schema_version = b"\x00" * 8
    with pytest.raises(ConfigurationError, match="are not those for which its rows were encoded"):
        world.send(manifest, fresh=fresh)
    assert world.topic.ids() == []


def test_nothing_was_sent_before(world: World) -> None:
    found = world.send(world.manifest(batches(8)), fresh=False)
    assert found.repeated == 0
    assert world.topic.ids() == IDS


# -- duplicates where none are expected ------------------------------------------------------------


def test_a_repeated_entry_in_a_first_attempt_is_a_lost_row(world: World) -> None:
    world.topic.last["me"] = 5
    with pytest.raises(PulsarLakeError, match=r"took new messages .* for repeated") as caught:
        world.send(world.manifest(batches(8)), fresh=True)
    assert caught.value.hint == "does anybody else send as me?"
    assert not isinstance(caught.value, UnavailableError), "it is of no use to try again"


def test_an_entry_that_was_refused_while_one_behind_it_was_stored(world: World) -> None:
    """It gets a good-looking receipt, and is nowhere."""

    world.topic.refuse(6, 9, "checksum")
    with pytest.raises(PulsarLakeError, match=r"message 6 of me is missing in"):
        world.send(world.manifest(batches(8)), fresh=True)


@pytest.mark.parametrize(("code", "what"), [(9, "is missing in"), (22, "refuses what is sent")])
def test_an_entry_that_was_refused_before_those_behind_it_were_consumed(
    world: World, code: int, what: str
) -> None:
    """A later attempt cannot read them any more: the broker's receipts are not believed."""

    world.topic.refuse(6, code, "no")
    manifest = world.manifest(batches(8))
    with pytest.raises(PulsarLakeError, match=what):
        world.send(manifest, fresh=True)
    world.topic.unload()
    world.topic.trim()
    with pytest.raises(PulsarLakeError, match=r"nobody can tell whether message 0 of me was in"):
        world.send(manifest, fresh=False)


def test_a_refusal_that_cannot_be_noted_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The storage is away: nothing more is sent until it is noted."""

    put, failures = Objects.put, [1, 2]

    def away(objects: Objects, path: str, data: bytes) -> None:
        if failures:
            failures.pop()
            raise UnavailableError("the storage does not answer")
        put(objects, path, data)

    manifest = world.manifest(batches(8))
    world.topic.refuse(6, 9, "checksum")
    monkeypatch.setattr(Objects, "put", away)
    with pytest.raises(PulsarLakeError, match=r"message 6 of me is missing in"):
        world.send(manifest, fresh=True)
    assert (world.directory / refusal_path(manifest.path)).exists()
    assert len(world.topic.opened) == 2


@pytest.mark.parametrize("fresh", [True, False])
def test_repeated_ones_before_a_lost_connection(world: World, fresh: bool) -> None:
    """They have receipts, and are nowhere."""
    world.topic.last["me"] = 8

    def hang_up(session: Session, sent: Sent) -> bool:
        if sent.sequence == 9 and len(world.topic.opened) == 1:
            world.topic.close_producer(session, sent)
            return False
        return True

    world.topic.before = hang_up
    wrong = "took new messages .* for repeated" if fresh else "message 0 of me is missing"
    with pytest.raises(PulsarLakeError, match=wrong):
        world.send(world.manifest(batches(8)), fresh=fresh)


@pytest.mark.parametrize("missing", [0, 4, 7])
def test_a_missing_entry_is_found(world: World, missing: int) -> None:
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[missing]
    with pytest.raises(PulsarLakeError, match=f"message {3 * missing} of me is missing in"):
        world.send(manifest, fresh=False)


@pytest.mark.parametrize("doubled", [0, 4, 7])
def test_a_doubled_entry_is_found(world: World, doubled: int) -> None:
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    world.topic.stored.append(world.topic.stored[doubled])
    with pytest.raises(PulsarLakeError, match=f"message {3 * doubled} of me is there 2 times in"):
        world.send(manifest, fresh=False)


# -- losses on the way -----------------------------------------------------------------------------


@pytest.mark.parametrize("at", IDS)
@pytest.mark.parametrize("stored", [False, True])
def test_a_lost_connection(world: World, at: int, stored: bool) -> None:
    """``stored``: and nobody hears of it."""
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
    found = world.send(world.manifest(batches(8)), fresh=True)
    assert world.topic.ids() == IDS
    assert found.ids == 24
    assert world.slept == [0.5] or world.slept == [1.0]
    assert len(world.topic.opened) == 2


def test_it_goes_on_behind_what_has_a_receipt(world: World) -> None:
    def close_once(session: Session, sent: Sent) -> bool:
        world.topic.store(session, sent)
        if sent.sequence == 12 and len(world.topic.opened) == 1:
            world.topic.close_producer(session, sent)
        return False

    world.topic.before = close_once
    world.send(world.manifest(batches(8)), fresh=True)
    assert world.topic.ids() == IDS
    came = [one.sequence for one in world.topic.came]
    assert all(came.count(one) == 1 for one in IDS[:5])


def test_what_a_broker_is_not_sure_of_is_sent_again(world: World) -> None:
    def not_yet(session: Session, sent: Sent) -> bool:
        if sent.sequence == 9 and len(world.topic.opened) == 1:
            world.topic.push(sent)
            send_error(session, sent, 2, "cannot determine whether it is a duplicate")
            return False
        return True

    world.topic.before = not_yet
    world.send(world.manifest(batches(8)), fresh=True)
    assert world.topic.ids() == IDS


def test_a_connection_that_is_lost_again_and_again(world: World) -> None:
    def one_at_a_time(session: Session, sent: Sent) -> bool:
        if sent.sequence not in world.topic.ids():
            world.topic.push(sent)
            session.send(receipt(sent, (7, 1)))
            world.topic.close_producer(session, sent)
            return False
        return True

    world.topic.before = one_at_a_time
    world.send(world.manifest(batches(8)), fresh=True)
    assert world.topic.ids() == IDS
    assert max(world.slept) <= 1.0, "each attempt got on"


def test_a_broker_that_never_takes_anything(world: World) -> None:
    def hang_up(session: Session, sent: Sent) -> bool:
        world.broker.hang_up()
        return False

    world.topic.before = hang_up
    with pytest.raises(UnavailableError):
        world.send(world.manifest(batches(2)), fresh=True)
    assert world.slept == [1.0, 2.0, 4.0, 8.0]


def test_what_is_refused_for_good_ends_at_once(world: World) -> None:
    def refuse(session: Session, sent: Sent) -> bool:
        send_error(session, sent, 22, "Exceed maximum message size")
        return False

    world.topic.before = refuse
    with pytest.raises(ConfigurationError, match="refuses what is sent"):
        world.send(world.manifest(batches(2)), fresh=True)
    assert world.slept == []


def test_what_was_staged_is_gone(world: World) -> None:
    manifest = world.manifest(batches(8, large=True))
    world.clients.storage.objects().delete(manifest.files)
    with pytest.raises(UnavailableError, match="what was staged is gone"):
        world.send(manifest, fresh=True)
    assert world.topic.stored == []
