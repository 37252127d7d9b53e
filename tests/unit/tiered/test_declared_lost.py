"""Ledgers that an operator has declared lost: what can be read is offloaded, the rest is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offloader.service.status import topic_status
from reader.errors import (
    ConfigurationError,
    CorruptError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import BEFORE_ALL, Position
from reader.model.reasons import Reason
from reader.plan import PublishTimeStore, make_plan, take_snapshot
from reader.sources import BrokerEntries, StoredEntries
from reader.stream.known_topic import KnownTopic
from reader.stream.offsets import PartitionOffset
from tests.unit.bookkeeper.fake_bookie import FakeBookie, Script, answer, stored
from tests.unit.turns.pulsar_world import PLAIN, World, chunk, kinds

PLAINS = (PLAIN, PLAIN, PLAIN)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as found:
        found.offloader().observe(found.topic)
        yield found


@pytest.fixture
def damaged(world: World) -> World:
    """Of the second of three ledgers no bookie has the middle entry any more."""
    for _ in range(3):
        world.seal(*PLAINS)
    world.missing = {(11, 1)}
    return world


def declare(world: World, *ledgers: int) -> None:
    """As an operator who changes the settings and starts the process again."""
    world.config.pulsar.lost_ledgers.extend(ledgers)


def allow(world: World) -> None:
    object.__setattr__(world.config.query, "allow_data_loss", True)


def values(world: World, *, cold: bool) -> list[tuple[int, int, bytes | str | None]]:
    found = kinds(world.cold() if cold else world.hot())
    return [
        (ledger, entry, one[:13] if isinstance(one, str) else one) for ledger, entry, one in found
    ]


ALL = [
    *((10, n, b"plain") for n in range(3)),
    (11, 0, b"plain"),
    (11, 1, "damaged entry"),
    (11, 2, b"plain"),
    *((12, n, b"plain") for n in range(3)),
]


def test_nothing_is_recorded_by_itself(damaged: World) -> None:
    for _ in range(2):
        with pytest.raises(CorruptError, match="11"):
            damaged.offloader().turn(damaged.topic, now=True)
    with pytest.raises(CorruptError, match="11"):
        damaged.hot()


def test_the_commit_records_it_and_queries_tell(damaged: World) -> None:
    declare(damaged, 11)
    turn = damaged.offloader().turn(damaged.topic, now=True)
    assert turn.committed is not None
    assert (turn.committed.rows, turn.committed.rescued) == (9, 1)
    assert values(damaged, cold=True) == ALL
    table = damaged.table()
    assert table.topic_numbers.data_loss is not None
    assert [one.declared_lost for one in table.ledgers()] == [False, True, False]
    assert [one.entries for one in table.ledgers()] == [3, 3, 3]
    said = r"ledger 11 was declared lost \(pulsar.lost_ledgers\)"
    with pytest.raises(ConfigurationError, match=said):
        damaged.hot()
    assert any("ledger 11 was declared lost" in one for one in damaged.said)
    # It is a fact of the table from now on, whatever the settings say.
    damaged.config.pulsar.lost_ledgers.clear()
    with pytest.raises(ConfigurationError, match=said):
        damaged.hot()
    found = topic_status(
        damaged.clients, "pulsar-lake", damaged.topic, clock_ms=damaged.now, failures={}
    )
    assert [one for one in found.errors if "ledger 11 was declared lost" in one]
    allow(damaged)
    plan = make_plan(damaged.clients, take_snapshot(damaged.clients, damaged.topic))
    reasons = {one.segment.ledger_id: one.segment.reason.kind for one in plan.segments}
    assert reasons[11] is Reason.DECLARED_LOST
    assert reasons[10] is reasons[12] is Reason.IN_TABLE
    # The hold has gone on, and so may Pulsar.
    assert damaged.held.ledger == 13


def test_queries_before_the_commit(damaged: World) -> None:
    """They say so as well, and read what there is if they may."""
    declare(damaged, 11)
    with pytest.raises(ConfigurationError, match="ledger 11 was declared lost"):
        damaged.hot()
    allow(damaged)
    assert values(damaged, cold=False) == ALL


@pytest.mark.parametrize("offloaded", [False, True])
def test_streams_are_told(damaged: World, offloaded: bool) -> None:
    """Those that have it before them, also where they begin with it."""
    declare(damaged, 11)
    if offloaded:
        damaged.offloader().turn(damaged.topic, now=True)
    allow(damaged)

    def told(start: Position, end: Position) -> int:
        said: list[str] = []
        offsets = [{damaged.partition: PartitionOffset(one)} for one in (start, end)]
        KnownTopic(damaged.clients, damaged.topic).snapshot(*offsets, lost=said.append)
        assert all("ledger 11 was declared lost" in one for one in said)
        return len(said)

    for start in (BEFORE_ALL, Position(10, 1), Position(11, -1)):
        assert told(start, Position(12, 2)) == 1
        assert told(start, Position(11, 0)) == 1
    assert told(Position(11, 2), Position(12, 2)) == 0
    assert told(BEFORE_ALL, Position(10, 2)) == 0


@pytest.mark.parametrize("ledger", [10, 12])
def test_the_first_and_the_last_ledger(damaged: World, ledger: int) -> None:
    damaged.missing = {(ledger, n) for n in range(3)}
    declare(damaged, ledger)
    damaged.offloader().turn(damaged.topic, now=True)
    assert len(damaged.cold()) == 9
    assert [one.ledger for one in damaged.table().ledgers() if one.declared_lost] == [ledger]


def test_a_ledger_without_metadata(damaged: World) -> None:
    """BookKeeper has forgotten it, and Pulsar still lists it."""
    damaged.forget(11)
    with pytest.raises(PulsarLakeError, match="11"):
        damaged.offloader().turn(damaged.topic, now=True)
    declare(damaged, 11)
    damaged.offloader().turn(damaged.topic, now=True)
    found = values(damaged, cold=True)
    assert [one for one in found if one[0] == 11] == [(11, n, "damaged entry") for n in range(3)]
    assert len(found) == 9


def test_bookies_that_do_not_answer_have_lost_nothing(damaged: World) -> None:
    declare(damaged, 11)
    damaged.silent = {11}
    with pytest.raises(PulsarLakeError):
        damaged.offloader().turn(damaged.topic, now=True)
    damaged.silent = set()
    damaged.offloader().turn(damaged.topic, now=True)
    assert values(damaged, cold=True) == ALL


def test_chunks_that_are_lost(world: World) -> None:
    """A message of which a chunk is gone is a row with what there is; others are whole."""
    world.seal(PLAIN, chunk("a", 0, 3))
    world.seal(chunk("b", 0, 2), chunk("a", 1, 3), PLAIN)
    world.seal(chunk("a", 2, 3), chunk("b", 1, 2))
    world.missing = {(11, 1)}
    declare(world, 11)
    world.offloader().turn(world.topic, now=True)
    found = values(world, cold=True)
    assert (12, 1, b"b0 b1 ") in found
    assert (11, 1, "damaged entry") in found
    assert (12, 0, "chunked messa") in found
    assert len(found) == 5


def test_the_first_chunk_is_lost_behind_the_table(world: World) -> None:
    """Its ledger is offloaded, but for the message that ends in the next one: that has a row."""
    world.seal(PLAIN, chunk("a", 0, 2), PLAIN)
    world.offloader().turn(world.topic, now=True)
    world.seal(chunk("a", 1, 2), PLAIN)
    world.missing = {(10, 1)}
    with pytest.raises(CorruptError, match="10:1 is lost"):
        world.offloader().turn(world.topic, now=True)
    declare(world, 10)
    rest = [(11, 0, "chunked messa"), (11, 1, b"plain")]
    assert values(world, cold=False) == rest
    turn = world.offloader().turn(world.topic, now=True)
    assert turn.committed is not None
    assert (turn.committed.rows, turn.committed.rescued) == (2, 1)
    assert values(world, cold=True) == [(10, 0, b"plain"), (10, 2, b"plain"), *rest]
    assert world.held == Position(12, 0)


# -- what is not to be had for the moment has lost nothing -----------------------------------------


def test_metadata_that_the_broker_could_not_read(damaged: World) -> None:
    """It leaves out what its metadata store does not give it in time."""
    declare(damaged, 11)
    turn = damaged.offloader().turn
    damaged.forget(10, 11, 12, 13)
    object.__setattr__(damaged.config.pulsar, "lost_ledgers", [10, 11, 12])
    with pytest.raises(UnavailableError, match="no metadata of any ledger"):
        turn(damaged.topic, now=True)
    damaged.forget()
    object.__setattr__(damaged.config.pulsar, "lost_ledgers", [11])
    turn(damaged.topic, now=True)
    assert values(damaged, cold=True) == ALL


def test_metadata_that_are_there_again(damaged: World) -> None:
    """They were missing when the query was planned."""
    declare(damaged, 11)
    allow(damaged)
    damaged.forget(11)
    rows = damaged.pinned()
    damaged.forget()
    assert [error for *_, error in rows() if error] == [
        error for *_, error in damaged.hot() if error
    ]
    assert len([error for *_, error in rows() if error]) == 1


def test_a_ledger_that_was_moved_after_the_plan(damaged: World) -> None:
    """Bookies do not have it any more, and the objects do."""
    declare(damaged, 11)
    allow(damaged)
    rows = damaged.pinned()
    damaged.move(11)
    assert [error for *_, error in rows()] == [None] * 9


@pytest.mark.parametrize("there", [True, False])
def test_a_place_that_is_not_mounted(damaged: World, there: bool) -> None:
    """A directory that is missing, or empty: then nothing is told of one ledger of it."""
    damaged.missing = set()
    damaged.move(11)
    mounted, away = damaged.tiered, damaged.tiered.with_name("away")
    mounted.rename(away)
    if there:
        mounted.mkdir()
    declare(damaged, 11)
    with pytest.raises(UnavailableError, match="is empty, or not there: is it mounted"):
        damaged.offloader().turn(damaged.topic, now=True)
    if there:
        mounted.rmdir()
    away.rename(mounted)
    damaged.offloader().turn(damaged.topic, now=True)
    assert [error for *_, error in damaged.cold()] == [None] * 9


def test_no_place_is_named(damaged: World) -> None:
    """The broker, which cannot read it either, is not what it is to be read from."""
    damaged.move(11)
    object.__setattr__(damaged.clients.settings, "tiered", [])
    with pytest.raises(UnsupportedError, match=r"name the place in \[\[tiered\]\]"):
        damaged.offloader().turn(damaged.topic, now=True)
    declare(damaged, 11)
    with pytest.raises(UnsupportedError, match="declared lost, and no place is named") as raised:
        damaged.offloader().turn(damaged.topic, now=True)
    assert "[[tiered]]" in str(raised.value.hint)
    assert "broker" not in str(raised.value.hint)


def test_a_striped_ledger_of_which_one_bookie_knows_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entries are gone, those of the others are not."""

    def script(*, empty: bool) -> Script:
        def one(request: int, ledger: int, number: int) -> bytes:
            if empty:
                return answer(request, 402, ledger, number)
            return answer(request, 0, ledger, number, stored(ledger, number, b"%d" % number))

        return one

    with FakeBookie(script(empty=True)) as gone, FakeBookie(script(empty=False)) as there:
        metadata = (
            "LedgerMetadata{formatVersion=3, ensembleSize=2, writeQuorumSize=1, ackQuorumSize=1, "
            "state=CLOSED, length=1, lastEntryId=9, digestType=CRC32C, password=OMITTED, "
            f"ensembles={{0=[{gone.address}, {there.address}]}}, customMetadata={{}}}}"
        )
        real = world.rest.answer

        def striped(method: str, path: str, body: object) -> tuple[int, object]:
            status, found = real(method, path, body)
            if path.endswith("/internalStats"):
                found["ledgers"][0]["metadata"] = metadata
            return status, found

        monkeypatch.setattr(world.rest, "answer", striped)
        world.seal(*[PLAIN] * 10)
        declare(world, 10)
        entries = StoredEntries(world.clients, world.partition)
        found = [
            (number, i in block.damaged)
            for block in entries.read(10, 0, 9)
            for i, number in enumerate(block.entry_ids.tolist())
        ]
    assert found == [(n, n % 2 == 0) for n in range(10)]


def test_what_was_learned_of_it(damaged: World) -> None:
    """Once it is restored, it has more; and before it was lost, it had."""
    allow(damaged)

    def known() -> set[int]:
        store = PublishTimeStore(damaged.config.query, damaged.config.pulsar, damaged.topic)
        hot = take_snapshot(damaged.clients, damaged.topic).hot
        return {ledger for _, ledger in store.known(hot)}

    declare(damaged, 11)
    damaged.hot()
    assert known() == {10, 12}
    damaged.config.pulsar.lost_ledgers.clear()
    assert known() == {10, 12}
    damaged.missing = set()
    damaged.hot()
    assert known() == {10, 11, 12}
    declare(damaged, 11)
    assert known() == {10, 12}


def test_a_ledger_that_is_moved_while_it_is_read(
    damaged: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was given as lost may be there now: no row more is given."""
    declare(damaged, 11)
    allow(damaged)
    rows = damaged.pinned()
    answer, listed = damaged.rest.answer, []

    def moving(method: str, path: str, body: object) -> tuple[int, object]:
        if path.endswith("/internalStats"):
            listed.append(path)
            if len(listed) == 2:
                damaged.move(11)
        return answer(method, path, body)

    monkeypatch.setattr(damaged.rest, "answer", moving)
    with pytest.raises(PulsarLakeError, match=r"while it was read: ledger 11 .*stored elsewhere"):
        rows()
    monkeypatch.undo()
    assert [error for *_, error in damaged.hot()] == [None] * 9


def test_a_ledger_of_which_nothing_is_lost(damaged: World) -> None:
    """A wrong number, or one that was restored in time: its table is not called lossy for ever."""
    damaged.missing = set()
    declare(damaged, 11)
    damaged.offloader().turn(damaged.topic, now=True)
    assert [error for *_, error in damaged.cold()] == [None] * 9
    assert not damaged.table().topic_numbers.data_loss is not None
    assert not any(one.declared_lost for one in damaged.table().ledgers())
    assert damaged.hot() == []


def test_no_broker_is_asked_for_it(damaged: World) -> None:
    """By a lookback, say, of a ledger that is read through the broker: there is none here."""
    declare(damaged, 11)
    entries = BrokerEntries(damaged.clients, damaged.partition)
    found = [(block.entry_ids.tolist(), [*block.damaged]) for block in entries.read(11, 0, 2)]
    assert [n for ids, _ in found for n in ids] == [0, 1, 2]
    assert [ids[i] for ids, lost in found for i in lost] == [1]
    # It hides nothing, so what was aborted has to be asked for.
    damaged.state.transactions = True
    damaged.ml.aborted = {2}
    assert set(entries.aborted(11, [(1, 2)])) == {(1, 2)}
    assert not entries.aborted(12, [(1, 2)])
