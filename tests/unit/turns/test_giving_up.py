"""Chunked messages that are not complete: kept while the log may complete them, then given up."""

from pathlib import Path

import pytest

from offloader.convert import Conversion, ConvertedPack
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.schedule.next_turn import next_turn
from offloader.turn import chunk_timeouts
from offloader.turn.topic_offloader import TopicOffloader
from reader.errors import NotFoundError, UnavailableError
from reader.model import Position
from reader.model.columns import FIRST_CHUNK
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import HOUR, NEVER, PLAIN, START, World, at_seconds, chunk, kinds

STRAY = "chunked message with chunks missing"


@pytest.mark.parametrize("sealed", [True, False], ids=["sealed", "in the open ledger"])
def test_a_message_that_the_log_completes_is_never_given_up(world: World, sealed: bool) -> None:
    """With default settings a ledger is due by age just when its chunks have timed out."""
    world.seal(PLAIN, chunk("A", 0, 3))
    world.write(chunk("A", 1, 3), chunk("A", 2, 3))
    world.now += HOUR + 1
    if sealed:
        world.seal()
        world.now += 1
        world.write(PLAIN)
    offloader = world.offloader()
    offloader.turn(world.topic)
    assert [row[3] for row in world.cold()] == [None] * len(world.cold())
    if not sealed:
        assert kinds(world.cold()) == [(10, 0, b"plain")]
        assert kinds(world.hot()) == [(11, 1, b"A0 A1 A2 ")]
        assert world.table().numbers(world.partition).lookback == Position(10, 1)
        world.now += 10 * HOUR
        assert world.held_after(offloader) == Position(10, 1)
        world.seal()
    offloader.turn(world.topic, now=True)
    assert kinds(world.cold()) == [(10, 0, b"plain"), (11, 1, b"A0 A1 A2 ")]
    assert world.held_after(offloader) == Position(12, 0)


@pytest.mark.parametrize("skew", [-24 * HOUR, 75 * 365 * 24 * HOUR])
def test_producers_clocks_decide_nothing(world: World, skew: int) -> None:
    world.seal(PLAIN, chunk("A", 0, 3, START + skew))
    offloader = world.offloader()
    for _ in range(4):
        offloader.turn(world.topic, now=True)
        assert kinds(world.cold()) == [(10, 0, b"plain")]
        assert world.held <= Position(10, 1)
        world.turn_after(HOUR // 4, offloader, now=True)
    assert kinds(world.cold()) == [(10, 0, b"plain"), (10, 1, NEVER)]
    begins = [batch.to_pylist() for batch in world.table().batches(FIRST_CHUNK)]
    assert {(*row.values(),) for rows in begins for row in rows} == {(None, None), (10, 1)}
    assert world.table().numbers(world.partition).given_up == Position(10, 1)
    assert world.held_after(offloader) == Position(11, 0)


def test_given_up_once_and_in_the_order_of_beginnings(world: World) -> None:
    """r16: an older message that is kept makes nobody forget what was given up."""
    offloader = world.offloader()
    # The log completes B, but not soon; A is abandoned. C is what B holds up.
    world.seal(chunk("B", 0, 2, START + 24 * HOUR), chunk("A", 0, 3, START - 2 * HOUR))
    world.write(chunk("B", 1, 2))
    for step in range(3):
        world.now += HOUR
        offloader.turn(world.topic, now=step == 0)
    assert world.cold() == [], "A waits for B, which ends in the open ledger"
    assert world.table().numbers(world.partition).given_up is None
    for number in range(3):
        last = world.seal(entry(b"m%d" % number))
        world.turn_after(HOUR, offloader, now=True)
    expected = [(10, 1, NEVER), (11, 0, b"B0 B1 "), (11, 1, b"m0"), (12, 0, b"m1"), (13, 0, b"m2")]
    assert kinds(world.cold()) == expected
    assert world.held_after(offloader) == Position(last, 0)
    # The rest of A comes: rows of their own.
    world.write(chunk("A", 1, 3), chunk("A", 2, 3))
    late = [(last, 0, STRAY), (last, 1, STRAY)]
    assert kinds(world.hot()) == late
    world.seal()
    offloader.turn(world.topic, now=True)
    assert kinds(world.cold()) == [*expected, *late]


def test_many_abandoned_messages_cost_few_requests(
    world: World, offloader: TopicOffloader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours are read and decoded together, and a turn gives up so many at most."""

    def turns(name: str, count: int) -> list[tuple[int, int]]:
        """(rows, requests to bookies) of each turn until all messages are given up."""
        world.seal(*[chunk(f"{name}{n}", 0, 2) for n in range(count)])
        offloader.turn(world.topic, now=True)
        world.now += HOUR
        found: list[tuple[int, int]] = []
        before = len(world.cold())
        while sum(rows for rows, _ in found) < count:
            world.read.clear()
            offloader.turn(world.topic)
            after = len(world.cold())
            found.append((after - before, len(world.read)))
            before = after
        return found

    (few,) = turns("few", 200)
    monkeypatch.setattr(chunk_timeouts, "MOST_MESSAGES", 250)
    first, second = turns("many", 400)
    assert (few[0], first[0], second[0]) == (200, 250, 150)
    assert max(few[1], first[1], second[1]) <= 4
    assert kinds(world.cold()) == [
        *[(10, n, NEVER) for n in range(200)],
        *[(11, n, NEVER) for n in range(400)],
    ]
    assert world.held_after(offloader) == Position(12, 0)


def test_later_chunks_of_what_was_given_up_are_rows_of_their_own(world: World) -> None:
    """The recorded position alone says it, also where an older ledger is still held."""
    offloader = world.offloader()
    world.seal(chunk("A", 0, 3), chunk("B", 0, 2), chunk("A", 1, 3))
    offloader.turn(world.topic, now=True)
    world.now += HOUR
    world.write(chunk("B", 1, 2))
    offloader.turn(world.topic)
    assert kinds(world.cold()) == [(10, 2, NEVER)]
    assert world.table().numbers(world.partition).lookback == Position(10, 1)
    world.write(chunk("A", 2, 3))
    rows = [(11, 0, b"B0 B1 "), (11, 1, STRAY)]
    assert kinds(world.hot()) == rows
    world.seal()
    offloader.turn(world.topic, now=True)
    assert kinds(world.cold()) == [(10, 2, NEVER), *rows]
    assert world.table().numbers(world.partition).lookback is None


@pytest.mark.parametrize("is_open", [True, False])
def test_a_message_that_begins_anew_is_kept_until_that_has_timed_out(
    world: World, offloader: TopicOffloader, is_open: bool
) -> None:
    world.seal(chunk("A", 0, 3), chunk("A", 1, 3))
    offloader.turn(world.topic, now=True)
    world.now += HOUR - 1
    world.write(chunk("A", 0, 3))
    if not is_open:
        world.seal()
    world.now += 2
    found = offloader.turn(world.topic, now=True)
    assert found.observation.give_up_at == at_seconds(world.now + HOUR - (0 if is_open else 2))
    last = world.opened
    world.write(chunk("A", 1, 3), chunk("A", 2, 3))
    end = len(world.ledger(last).entries) - 1
    assert kinds(world.hot()) == [(last, end, b"A0 A1 A2 ")]
    world.seal()
    offloader.turn(world.topic, now=True)
    assert kinds(world.cold()) == [(last, end, b"A0 A1 A2 ")]


@pytest.mark.parametrize("anew", [False, True])
def test_an_open_ledger_holds_nothing_for_ever(world: World, anew: bool) -> None:
    """The topic is idle: its open ledger has a chunk more, and is never sealed."""
    world.seal(chunk("A", 0, 3))
    world.write(chunk("A", 0 if anew else 1, 3))
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    for _ in range(3):
        world.turn_after(HOUR, offloader)
    assert kinds(world.cold()) == [(10, 0, NEVER)]
    assert world.held_after(offloader) == Position(11, 0)


def test_a_message_that_begins_anew_while_its_topic_is_converted(world: World) -> None:
    """Between the turn's list and the one that the log is looked through by: for good."""
    world.seal(chunk("A", 0, 3))
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    world.now += HOUR + 1
    convert = offloader.jobs.convert

    def meanwhile(conversion: Conversion) -> tuple[ConvertedPack, ...]:
        world.write(chunk("A", 0, 3))
        return convert(conversion)

    offloader.jobs.convert = meanwhile  # type: ignore[method-assign]
    found = offloader.turn(world.topic)
    assert world.cold() == []
    assert found.observation.give_up_at == at_seconds(world.now + HOUR)
    offloader.jobs.convert = convert  # type: ignore[method-assign]
    world.now += HOUR - 1
    assert offloader.turn(world.topic).observation.give_up_at == at_seconds(world.now + 1)
    assert world.cold() == []
    world.turn_after(1, offloader)
    assert kinds(world.cold()) == [(10, 0, NEVER)]
    assert world.held_after(offloader) == Position(11, 0)


def test_what_an_open_transaction_may_go_on_with_is_kept(world: World) -> None:
    world.state.transactions = True
    world.ml.open = {1: (11, 0)}
    world.seal(chunk("A", 0, 3))
    world.write(chunk("A", 1, 3, txnid_most_bits=0, txnid_least_bits=1))
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    for _ in range(3):
        world.turn_after(HOUR, offloader)
    assert world.cold() == []
    assert world.table().numbers(world.partition).lookback == Position(10, 0)
    world.ml.open, world.ml.aborted = {}, {1}
    offloader.turn(world.topic)
    assert kinds(world.cold()) == [(10, 0, NEVER)]


def test_a_broker_whose_clock_was_ahead_holds_nothing_for_ever(world: World) -> None:
    """Its ledger was closed decades ahead, and nothing is written any more."""
    world.seal(chunk("A", 0, 3))
    world.ledger(10).closed_ms = START + 75 * 365 * 24 * HOUR
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    world.turn_after(HOUR - 1, offloader)
    assert world.cold() == []
    world.turn_after(1, offloader)
    assert kinds(world.cold()) == [(10, 0, NEVER)]


def test_this_hosts_clock_decides_nothing(world: World, offloader: TopicOffloader) -> None:
    world.seal(chunk("A", 0, 3))
    for skew in (0, 48 * HOUR):
        world.skew = skew
        offloader.turn(world.topic, now=True)
        assert world.cold() == []


def test_an_idle_topic_gets_its_turn_when_a_message_times_out(world: World) -> None:
    """r20: a commit without a ledger, at the time that the observation names."""
    offloader = world.offloader()
    world.seal(PLAIN, chunk("A", 0, 3))
    world.skew = -24 * HOUR
    first = offloader.turn(world.topic, now=True)
    assert first.committed
    assert first.observation.give_up_at == at_seconds(world.now + world.skew + HOUR)
    version = world.table().version
    world.now += HOUR - 1
    early = offloader.turn(world.topic)
    assert early.committed is None
    assert early.observation.give_up_at == at_seconds(world.now + world.skew + 1)
    seen = early.observation
    pause = next_turn(world.topic, seen, seen.backlog, {}, world.config.offload)
    assert pause == world.config.offload.interval.total_seconds()
    world.now += 1
    found = offloader.observe(world.topic)
    assert found.more, "the scheduler comes at once"
    turn = offloader.turn(world.topic)
    assert turn.committed
    assert (turn.committed.ledgers, turn.committed.rows, turn.committed.rescued) == (0, 1, 1)
    assert turn.observation.give_up_at is None
    assert not turn.more
    table = world.table()
    assert table.version == version + 1
    assert (table.watermark(world.partition), table.numbers(world.partition).lookback) == (10, None)
    assert table.numbers(world.partition).expected is None
    assert [one.ledgers for one in table.commits()][:1] == [()]
    world.skew = 0
    assert offloader.turn(world.topic).committed is None
    assert world.held == Position(11, 0)


def test_what_the_log_keeps_is_not_looked_for_again(world: World) -> None:
    offloader = world.offloader()
    world.seal(chunk("A", 0, 2))
    world.write(chunk("A", 1, 2))
    offloader.turn(world.topic, now=True)
    world.now += HOUR
    turn = offloader.turn(world.topic)
    assert turn.observation.give_up_at is None
    world.read.clear()
    for _ in range(3):
        world.now += HOUR
        world.write(PLAIN)
        assert not offloader.observe(world.topic).more
        assert offloader.turn(world.topic).observation.give_up_at is None
    assert world.read == [], "also where the log grows"


def test_two_offloaders_give_up_a_message_once(world: World) -> None:
    one, other = world.offloader(), world.offloader()
    world.seal(PLAIN, chunk("A", 0, 3))
    one.turn(world.topic, now=True)
    world.now += HOUR
    at_commit = one.jobs.convert

    def overtaken(conversion: Conversion) -> tuple[ConvertedPack, ...]:
        one.jobs.convert = at_commit  # type: ignore[method-assign]
        assert other.turn(world.topic).committed
        return at_commit(conversion)

    one.jobs.convert = overtaken  # type: ignore[method-assign]
    assert one.turn(world.topic).committed is None
    assert [line for line in world.said if "planning again" in line]
    assert kinds(world.cold()) == [(10, 0, b"plain"), (10, 1, NEVER)]


def test_what_another_offloader_gave_up_is_no_row_again(world: World) -> None:
    """A process remembers what its conversion left incomplete, unless others went on since."""
    one, other = world.offloader(), world.offloader()
    world.seal(chunk("A", 0, 2))
    world.now += HOUR - 1
    world.seal(chunk("B", 0, 2))
    one.turn(world.topic, now=True)
    world.now += 1
    assert other.turn(world.topic).committed
    assert kinds(world.cold()) == [(10, 0, NEVER)]
    world.now += HOUR
    assert one.turn(world.topic).committed
    assert kinds(world.cold()) == [(10, 0, NEVER), (11, 0, NEVER)]


def test_a_topic_that_is_made_again_while_a_message_is_incomplete(world: World) -> None:
    """What was incomplete is gone with the topic; nothing of the new one fails, or is held back."""
    offloader = world.offloader()
    world.seal(PLAIN, chunk("A", 0, 3))
    offloader.turn(world.topic, now=True)
    assert world.held_after(offloader) == Position(10, 1)
    world.make_topic(20, "2026-02-02T00:00:00Z")
    world.said.clear()
    world.seal(chunk("A", 1, 3), entry(b"new"))
    rows = [(20, 0, STRAY), (20, 1, b"new")]
    assert kinds(world.hot()) == rows
    for process in (world.offloader(), offloader):
        process.observe(world.topic)
        process.observe(world.topic)
        assert world.moves == [Position(10, 1)], "only the old topic's hold was moved"
    world.now += 2 * HOUR
    found = offloader.turn(world.topic)
    assert found.committed
    assert kinds(world.cold()) == [(10, 0, b"plain"), *rows]
    assert world.held_after(offloader) == Position(21, 0)
    assert world.table().numbers(world.partition).lookback is None


def test_a_topic_that_is_made_again_and_stays_empty(world: World) -> None:
    offloader = world.offloader()
    world.seal(PLAIN, chunk("A", 0, 3))
    offloader.turn(world.topic, now=True)
    created = world.table().created_at(world.partition)
    world.make_topic(20, "2026-02-02T00:00:00Z")
    for _ in range(3):
        world.turn_after(HOUR, offloader)
    assert kinds(world.cold()) == [(10, 0, b"plain")]
    assert world.table().numbers(world.partition).lookback is None
    assert world.table().created_at(world.partition) == created, "nothing of the new one is in it"


def test_a_ledger_is_deleted_under_an_incomplete_message(world: World) -> None:
    """By somebody else, with the hold: what begins later is whole all the same."""
    offloader = world.offloader()
    world.seal(chunk("A", 0, 3))
    world.seal(PLAIN, chunk("B", 0, 2))
    offloader.turn(world.topic, now=True)
    assert world.table().numbers(world.partition).lookback == Position(10, 0)
    world.delete(10)
    world.write(chunk("B", 1, 2), chunk("A", 1, 3))
    rows = [(12, 0, b"B0 B1 "), (12, 1, STRAY)]
    assert kinds(world.hot()) == rows
    world.seal()
    offloader.turn(world.topic, now=True)
    assert kinds(world.cold()) == [(11, 0, b"plain"), *rows]
    assert [line for line in world.said if "ledger 10 was deleted while" in line]
    assert world.held_after(offloader) == Position(13, 0)


def test_what_was_lost_with_a_deleted_ledger_stops_nothing(world: World) -> None:
    """The process knows of its message still."""
    offloader = world.offloader()
    world.seal(chunk("A", 0, 3))
    world.seal(chunk("B", 0, 2))
    offloader.turn(world.topic, now=True)
    world.delete(10)
    world.now += HOUR
    assert offloader.turn(world.topic).committed
    assert kinds(world.cold()) == [(11, 0, NEVER)]
    assert world.held_after(offloader) == Position(12, 0)


def test_a_query_from_before_a_message_was_given_up(world: World) -> None:
    """It gives what it had then, and no row of what was given up since."""
    world.seal(PLAIN, chunk("A", 0, 3))
    world.seal(chunk("B", 0, 2), chunk("B", 1, 2), chunk("A", 1, 3))
    query = world.pinned()
    rows = [(10, 0, b"plain"), (11, 1, b"B0 B1 ")]
    assert kinds(query()) == rows
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    world.turn_after(HOUR, offloader)
    assert kinds(query()) == rows, "Pulsar has them still"
    for one in (10, 11):
        world.delete(one)
    assert kinds(query()) == rows
    assert kinds(world.cold()) == [*rows, (11, 2, NEVER)]


def test_chunks_that_came_after_their_message_was_given_up(world: World) -> None:
    """To a query from before they were no rows; read from the table they cannot be told apart."""
    world.seal(chunk("A", 0, 3))
    world.seal(PLAIN)
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    world.write(PLAIN, chunk("A", 1, 3), PLAIN)
    query = world.pinned()
    rows = [(12, 0, b"plain"), (12, 2, b"plain")]
    assert kinds(query()) == rows
    world.turn_after(2 * HOUR, offloader)
    assert kinds(world.cold())[0] == (10, 0, NEVER)
    assert kinds(query()) == rows, "Pulsar has them still"
    world.seal()
    offloader.turn(world.topic, now=True)
    assert (12, 1, STRAY) in kinds(world.cold())
    world.delete(12)
    with pytest.raises(NotFoundError, match="fit no message"):
        query()


@pytest.mark.parametrize("with_chunk", [False, True])
def test_what_was_given_up_stands_for_no_row_that_has_expired(
    tmp_path: Path, with_chunk: bool
) -> None:
    old = entry(b"old", publish_time=START - 40 * 24 * HOUR)
    with World(tmp_path, retention="30d") as world:
        offloader = world.offloader()
        offloader.observe(world.topic)
        world.seal(old, chunk("A", 0, 3) if with_chunk else PLAIN)
        query = world.pinned()
        offloader.turn(world.topic, now=True)
        world.turn_after(2 * HOUR, offloader)
        TableMaintainer(world.clients.storage, world.config.offload).maintain(world.topic)
        assert len(world.cold()) == 1
        world.delete(10)
        with pytest.raises(NotFoundError, match="expired"):
            query()


def test_a_ledger_that_cannot_be_read_holds_up_no_commit_before_it(world: World) -> None:
    """Whether the open one completes the message nobody can tell: that is for a later turn."""
    world.seal(PLAIN, chunk("A", 0, 2))
    offloader = world.offloader()
    offloader.turn(world.topic, now=True)
    world.now += 2 * HOUR
    opened = world.seal(PLAIN)
    world.write(PLAIN)
    world.silent = {opened}
    assert offloader.turn(world.topic, now=True).committed
    assert world.table().watermark(world.partition) == opened - 1
    with pytest.raises(UnavailableError, match="no replica gives"):
        offloader.turn(world.topic)
    world.silent = set()
    offloader.turn(world.topic)
    assert (10, 1, NEVER) in kinds(world.cold())
