"""Chunked messages that are not complete in a backlog: it is offloaded first, and read once."""

from pathlib import Path

import pytest

from offloader.backlog.policy import within
from offloader.convert import Conversion, ConvertedPack
from offloader.turn.topic_offloader import TopicOffloader
from reader.model import Position
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import HOUR, NEVER, PLAIN, World, at_seconds, chunk, kinds


@pytest.fixture
def one_ledger_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offloader.turn.topic_offloader.within", lambda dues, _: within(dues, 1))


@pytest.mark.parametrize("abandoned", [True, False])
@pytest.mark.usefixtures("one_ledger_a_commit")
def test_a_backlog_is_looked_through_once(tmp_path: Path, abandoned: bool) -> None:
    """Whatever is abandoned in it, or completed at its end only."""
    answers = []
    for size in 4, 8:
        with World(tmp_path / str(size)) as world:
            offloader = world.offloader()
            offloader.observe(world.topic)
            world.seal(chunk("A", 0, 2))
            for number in range(1, size):
                world.seal(PLAIN, *([chunk(f"U{number}", 0, 2)] if abandoned else []))
            if not abandoned:
                world.write(chunk("A", 1, 2))
            world.now += 2 * HOUR
            commits = 1
            while offloader.turn(world.topic, now=True).more:
                commits += 1
            assert commits == size
            expected: list[tuple[int, int, bytes | str | None]] = []
            for ledger in range(10, 10 + size):
                expected += [(ledger, 0, b"plain")] if ledger > 10 else []
                if abandoned:
                    expected.append((ledger, int(ledger > 10), NEVER))
            assert kinds(world.cold()) == expected
            answers.append(len(world.read))
    assert answers[1] <= 2 * answers[0]


@pytest.mark.parametrize("others", [(), (1,), (1, 3), (2, 3)], ids=str)
@pytest.mark.usefixtures("one_ledger_a_commit")
def test_a_backlog_is_offloaded_before_anything_is_given_up(
    world: World, others: tuple[int, ...]
) -> None:
    """C and A are abandoned; the last ledger completes B. What is rescued, and when, does not
    depend on which of two processes has seen how much of it; ``others``: the other one's turns.
    """
    world.seal(chunk("C", 0, 2))
    world.seal(chunk("B", 0, 2), chunk("A", 0, 2))
    world.seal(PLAIN)
    world.seal(chunk("B", 1, 2))
    world.now += 2 * HOUR
    processes = (world.offloader(), world.offloader())
    for step in range(3):
        turn = processes[step in others].turn(world.topic, now=True)
        assert turn.more
        assert turn.observation.give_up_at is None
        assert [row[3] for row in world.cold()] == [None] * (step == 2)
        assert world.held == Position(10, 0)
    assert not processes[3 in others].turn(world.topic, now=True).more
    rows = [(10, 0, NEVER), (11, 1, NEVER), (12, 0, b"plain"), (13, 0, b"B0 B1 ")]
    assert kinds(world.cold()) == rows
    for one in processes:
        one.turn(world.topic)
    assert world.held == Position(14, 0)
    assert kinds(world.cold()) == rows


def test_sealed_ledgers_that_are_not_due_come_first(world: World) -> None:
    """Their age brings the turn: none is taken in vain before."""
    offloader = world.offloader()
    world.seal(chunk("A", 0, 2))
    offloader.turn(world.topic, now=True)
    world.now += HOUR - 1
    world.seal(PLAIN)
    world.now += 1
    world.read.clear()
    assert not offloader.observe(world.topic).more
    found = offloader.turn(world.topic)
    assert found.committed is None
    assert found.observation.give_up_at is None
    assert found.observation.backlog.oldest == at_seconds(world.now - 1)
    assert world.read == []
    world.now += HOUR - 1
    turn = offloader.turn(world.topic)
    assert turn.committed
    assert turn.committed.ledgers == 1
    assert kinds(world.cold()) == [(10, 0, NEVER), (11, 0, b"plain")]


def test_empty_ledgers_hold_nothing_up(world: World, offloader: TopicOffloader) -> None:
    """They alone are never due."""
    world.seal(chunk("A", 0, 2))
    offloader.turn(world.topic, now=True)
    world.seal()
    world.turn_after(HOUR, offloader)
    assert kinds(world.cold()) == [(10, 0, NEVER)]


def test_ledgers_that_are_sealed_while_others_are_converted_hold_nothing_up(world: World) -> None:
    """Of a busy topic there are such in each turn; they are looked through, and may complete it."""
    offloader = world.offloader()
    world.seal(chunk("A", 0, 2), chunk("B", 0, 2))
    offloader.turn(world.topic, now=True)
    world.now += HOUR
    convert = offloader.jobs.convert

    def meanwhile(conversion: Conversion) -> tuple[ConvertedPack, ...]:
        world.seal(PLAIN, chunk("B", 1, 2))
        return convert(conversion)

    world.seal(PLAIN)
    offloader.jobs.convert = meanwhile  # type: ignore[method-assign]
    assert offloader.turn(world.topic, now=True).committed
    assert kinds(world.cold()) == [(10, 0, NEVER), (11, 0, b"plain")]
    assert world.table().numbers(world.partition).lookback == Position(10, 1)
    offloader.jobs.convert = convert  # type: ignore[method-assign]
    offloader.turn(world.topic, now=True)
    assert kinds(world.cold())[2:] == [(12, 0, b"plain"), (12, 1, b"B0 B1 ")]


def test_what_an_open_transaction_may_go_on_with_is_not_looked_for_in_each_commit(
    world: World, offloader: TopicOffloader
) -> None:
    world.state.transactions = True
    world.ml.open = {1: (11, 0), 2: (12, 1)}
    world.seal(chunk("A", 0, 3))
    world.seal(entry(b"first", txnid_most_bits=0, txnid_least_bits=1))
    world.write(PLAIN, chunk("A", 1, 3, txnid_most_bits=0, txnid_least_bits=2))
    world.now += HOUR
    offloader.turn(world.topic, now=True)
    assert 12 in world.read
    del world.ml.open[1]
    world.read.clear()
    offloader.turn(world.topic, now=True)
    assert world.table().watermark(world.partition) == 11
    assert kinds(world.cold()) == [(11, 0, b"first")]
    assert 12 not in world.read
    world.ml.open, world.ml.aborted = {}, {2}
    offloader.turn(world.topic)
    assert kinds(world.cold()) == [(10, 0, NEVER), (11, 0, b"first")]
