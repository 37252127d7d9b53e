"""What was sent is found again where brokers have forgotten it, wherever clocks stand."""

from dataclasses import replace
from typing import Any

import pytest

from reader.encode import EncodedEntry, Encryption, EntryFormat
from reader.errors import PulsarLakeError, UnavailableError
from reader.model import Position
from reader.pulsar import LogEnd
from reader.pulsar.binary import Publisher
from reader.sink.arrived import Arrived
from tests.unit.encode.messages.encoding import Row, encode, public_rsa
from tests.unit.pulsar.binary.fake_broker import Session
from tests.unit.pulsar.binary.fake_topic import Sent
from tests.unit.sink.worlds import World, batches

IDS = [0, 3, 6, 9, 12, 15, 18, 21]


# -- a broker that has forgotten -------------------------------------------------------------------


@pytest.mark.parametrize("stored", range(9))
def test_a_broker_that_has_forgotten_the_name(world: World, stored: int) -> None:
    """It says -1: then what is there is read, and what is not is sent."""
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[stored:]
    world.topic.forget()
    world.send(manifest, fresh=False)
    assert world.topic.ids() == IDS
    assert world.twice() == []
    assert world.reads >= 1


@pytest.mark.parametrize("stored", range(5))
def test_encrypted_entries_of_a_name_that_was_forgotten(world: World, stored: int) -> None:
    """Of an encrypted batch no more than one row is shown: it has the first id of all."""
    encryption = Encryption({"k": public_rsa()})
    entries: list[EncodedEntry] = []
    for number in range(4):
        entries += encode([Row(b"%d" % number)] * 3, encryption=encryption)
    manifest = world.manifest(entries)
    world.send(manifest, fresh=True)
    del world.topic.stored[stored:]
    world.topic.forget()
    world.send(manifest, fresh=False)
    assert world.topic.ids() == IDS[:4]


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("stored", range(8))
def test_chunks_of_a_name_that_was_forgotten(world: World, stored: int, sealed: bool) -> None:
    """A message of which only some chunks are there begins anew: readers see it once."""
    form = EntryFormat(batch_bytes=4 << 10, entry_bytes=8 << 10)
    encryption = Encryption({"k": public_rsa()}) if sealed else None
    payload = b"".join(b"%d " % n for n in range(5_000))
    rows = [Row(b"before"), Row(payload), Row(b"behind"), Row(b"last")]
    entries = encode(rows, form, encryption)
    assert sum(one.chunk > 0 for one in entries) > 2
    manifest = world.manifest(entries)
    world.send(manifest, fresh=True)
    del world.topic.stored[stored:]
    world.topic.forget()
    world.send(manifest, fresh=False)
    if not sealed:
        assert [one for one in world.payloads() if one is not None] == [row.value for row in rows]
    assert world.topic.ids().count(len(entries) - 1) == 1


def test_forgotten_again_and_again(world: World) -> None:
    manifest = world.manifest(batches(8))
    for _ in range(4):
        world.topic.forget()
        world.send(manifest, fresh=False)
        assert world.topic.ids() == IDS


def test_a_broker_that_is_not_there_at_first(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can have been sent: so nothing is looked for, which a transaction might hide."""
    world.hidden = True
    real, failures = Publisher.producer, [1, 2]

    def fails(*arguments: Any, **options: Any) -> Any:
        if failures:
            failures.pop()
            raise UnavailableError("no broker serves it")
        return real(*arguments, **options)

    monkeypatch.setattr(Publisher, "producer", fails)
    world.send(world.manifest(batches(8)), fresh=True)
    assert world.topic.ids() == IDS
    assert world.reads == 0


def test_what_others_have_sent_does_not_count(world: World) -> None:
    manifest = world.manifest(batches(3))
    for number in (0, 100):
        other = world.topic.stored
        world.send(world.manifest(batches(1), first=number), fresh=True)
        for one in other:
            object.__setattr__(one, "entry", one.entry.replace(b"\x02me", b"\x02us"))
    world.topic.forget()
    world.send(manifest, fresh=False)
    assert world.topic.ids()[-3:] == IDS[:3]


@pytest.mark.parametrize("kept", range(1, 8))
@pytest.mark.parametrize("later", [0, 1])
def test_what_was_sent_is_deleted_meanwhile(world: World, kept: int, later: int) -> None:
    """Consumed, and trimmed from the beginning: the end shows how far it came."""
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[8 - later :]
    del world.topic.stored[: 8 - kept - later]
    world.topic.forget()
    world.topic.ledger += 1  # those deleted were in another, which is not listed any more
    if kept + later > 8 or not world.topic.stored:
        return
    world.send(manifest, fresh=False)
    came = [one.sequence for one in world.topic.came]
    assert came == IDS + IDS[8 - later :]


@pytest.mark.parametrize("first", [0, 10])
def test_all_that_was_sent_may_have_been_deleted(world: World, first: int) -> None:
    manifest = world.manifest(batches(8), first=first)
    world.send(manifest, fresh=True)
    world.topic.unload()
    world.topic.trim()
    world.topic.forget()
    manifest = world.later(manifest, 1)
    with pytest.raises(PulsarLakeError, match="nobody can tell what of me has arrived") as caught:
        world.send(manifest, fresh=False)
    assert caught.value.hint is not None
    assert "delivery = at-least-once" in caught.value.hint
    assert world.topic.stored == []


@pytest.mark.parametrize("first", [0, 10])
def test_deleted_but_the_broker_remembers(world: World, first: int) -> None:
    """It says that it has had all of it, and nobody can look: consumers have."""
    manifest = world.manifest(batches(8), first=first)
    world.send(manifest, fresh=True)
    world.topic.unload()
    world.topic.trim()
    assert world.send(manifest, fresh=False).repeated == 8
    assert world.topic.stored == []


@pytest.mark.parametrize("first", [0, 10])
def test_missing_where_nothing_can_have_been_deleted(world: World, first: int) -> None:
    """The broker says that it has had all of it; the ledger where it would be is listed."""
    manifest = world.manifest(batches(8), first=first)
    world.topic.last["me"] = first + 23
    with pytest.raises(PulsarLakeError, match=f"message {first} of me is missing"):
        world.send(manifest, fresh=False)


# -- a daily write: the broker has forgotten the name, and older messages were deleted -------------


@pytest.mark.parametrize("unloaded", [False, True])
@pytest.mark.parametrize("first", [0, 1000])
def test_a_connection_lost_before_anything_is_stored(
    world: World, first: int, unloaded: bool
) -> None:
    """``unloaded``: so the ledger that was open is not listed any more, as nothing was in it."""
    manifest = world.manifest(batches(3), first=first)
    once = [1]

    def hang_up(session: Session, sent: Sent) -> bool:
        if not once:
            return True
        once.clear()
        if unloaded:
            world.topic.unload()
        world.broker.hang_up()
        return False

    world.topic.before = hang_up
    world.send(manifest, fresh=True)
    assert world.topic.ids() == [first + one for one in IDS[:3]]


@pytest.mark.parametrize("hours", [0.9, 1.1, 24])
@pytest.mark.parametrize("unloaded", [False, True])
def test_a_task_that_was_killed_before_anything_was_stored(
    world: World, hours: float, unloaded: bool
) -> None:
    """The next one knows nothing of it. While the ledgers show it, it is certain for ever."""
    manifest = world.manifest(batches(3), first=1000)
    if unloaded:
        world.topic.unload()
    manifest = world.later(manifest, hours)
    if unloaded and hours > 1:
        with pytest.raises(PulsarLakeError, match="nobody can tell what of me has arrived"):
            world.send(manifest, fresh=False)
    else:
        world.send(manifest, fresh=False)
        assert world.topic.ids() == [1000, 1003, 1006]


@pytest.mark.parametrize("created", [0, 1 << 44])
def test_the_age_of_a_decision_is_never_taken_for_less_than_it_is(
    world: World, created: int
) -> None:
    """By whatever clock of a driver, and of a storage that was restored from a copy."""
    manifest = world.manifest(batches(3), first=1000)
    if created:
        manifest = world.later(manifest, 2)
    world.topic.unload()
    with pytest.raises(PulsarLakeError, match="nobody can tell what of me has arrived"):
        world.send(replace(manifest, created=created), fresh=False)


# -- clocks of the driver and of the tasks ---------------------------------------------------------


@pytest.mark.parametrize("hours", [-8760, -24, -2, 2, 24, 8760])
@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("first", [0, 1000])
def test_a_driver_with_another_clock(world: World, first: int, forgotten: bool, hours: int) -> None:
    """It dies before the version is marked as sent, and is started again."""
    if first:
        world.send(world.manifest(batches(2), first=first - 6), fresh=True)
    manifest = world.manifest(batches(3), first=first)
    manifest = replace(manifest, created=manifest.created + hours * 3_600_000)
    world.send(manifest, fresh=True)
    if forgotten:
        world.topic.forget()
    world.send(manifest, fresh=False)
    ours = [one for one in world.topic.ids() if one >= first]
    assert ours == [first + one for one in IDS[:3]]


def test_another_log_of_the_same_name(world: World) -> None:
    """Another cluster's, to which messages were replicated: its positions say nothing."""
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    [entries] = manifest.partitions
    elsewhere = replace(entries, end=LogEnd(Position(1 << 40, 7), "2020-02-02T00:00:00Z"))
    world.topic.forget()
    world.send_entries(manifest, elsewhere, fresh=False)
    assert world.topic.ids() == IDS


def test_only_what_lies_behind_the_end_is_read(world: World) -> None:
    world.send(world.manifest(batches(5), first=1000), fresh=True)
    manifest = world.manifest(batches(2), first=1015)
    assert manifest.partitions[0].end == LogEnd(Position(7, 4), world.created_at)
    world.topic.unload()
    world.send(manifest, fresh=True)
    del world.topic.stored[-1]
    world.topic.forget()
    world.send(manifest, fresh=False)
    assert world.topic.ids() == [1000, 1003, 1006, 1009, 1012, 1015, 1018]


def test_a_transaction_of_others_hides_the_end(world: World) -> None:
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[-1]
    world.hidden = True
    with pytest.raises(UnavailableError, match="transactions that others have open hide the end"):
        world.send(manifest, fresh=False)
    world.topic.forget()
    with pytest.raises(UnavailableError, match="transactions that others have open hide the end"):
        world.send(manifest, fresh=False)


def test_a_loss_behind_the_end_may_be_of_what_was_sent(world: World) -> None:
    """Nobody can tell, of what was decided long ago; and the broker's word counts while it has it.

    In the middle of what is there as well: a ledger that was declared lost.
    """
    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[3:5]
    world.incomplete = True
    assert world.send(manifest, fresh=False).repeated == 8
    world.topic.stored.clear()
    world.topic.forget()
    with pytest.raises(PulsarLakeError, match="nobody can tell what of me has arrived"):
        world.send(world.later(manifest, 2), fresh=False)


def test_a_broker_that_hangs_up_while_the_topic_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it takes longer than a broker waits for an answer to its PING."""

    def slow(*arguments: Any) -> Any:
        found = Arrived(*arguments)
        world.broker.hang_up()
        return found

    manifest = world.manifest(batches(8))
    world.send(manifest, fresh=True)
    del world.topic.stored[5:]
    world.topic.forget()
    monkeypatch.setattr("reader.sink.sending.Arrived", slow)
    world.send(manifest, fresh=False)
    assert world.topic.ids() == IDS
    assert world.reads == 2, "to know where it stopped, and whether all of that is there"
