"""Reads of ledgers from bookies in memory: the same entries, each once, in order; or one error."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.errors import (
    ConfigurationError,
    CorruptError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import LedgerMetadata
from tests.support.examples import examples
from tests.unit.bookkeeper.fake_bookie import stored
from tests.unit.bookkeeper.memory_bookies import (
    BREAKS,
    Answers,
    Broken,
    MemoryBookies,
    Replies,
    Reply,
    Script,
)
from tests.unit.bookkeeper.stored_ledgers import (
    EIO,
    NOENTRY,
    NOLEDGER,
    V2_EIO,
    V2_NOENTRY,
    V2_NOLEDGER,
    data_of,
    entries_of,
    entry_script,
    expected,
    ledger_of,
    memory_bookies,
    range_script,
    stored_by,
)

WHOLE = ledger_of(7, 300, ("0", "1"))
STRIPED = ledger_of(7, 300)


def _changed(body: bytes, at: int = 40) -> bytes:
    return body[:at] + bytes([body[at] ^ 16]) + body[at + 1 :]


# --- any ledgers, any ranges, any faults of one bookie ---

STATUSES = {
    "error": (EIO, V2_EIO),
    "bad request": (EIO, 100),
    "lacks": (NOENTRY, V2_NOENTRY),
    "forgot": (NOLEDGER, V2_NOLEDGER),
}
FAULTS: dict[str, Callable[[Reply, random.Random], Answers]] = {
    "none": lambda reply, _: reply,
    "breaks": lambda reply, _: BREAKS,
    "silent": lambda reply, _: None,
    "another": lambda reply, _: reply,  # that of the next entry
    "corrupt": lambda reply, _: _with_body(reply, lambda body: _changed(body, len(body) - 1)),
    "cut off": lambda reply, _: _with_body(reply, lambda body: body[:-3]),
    "short": lambda reply, _: _with_body(reply, lambda body: body[:20]),
    "empty": lambda reply, _: _with_body(reply, lambda body: b""),
    "too many": lambda reply, _: _with_body(reply, lambda body: body * 2),
    "twice": lambda reply, _: [reply, reply],
    "unrequested": lambda reply, _: [Reply(status=EIO, offset=10_000), reply],
    "late": lambda reply, chance: replace(reply, after=chance.choice((0.01, 1.0, 7.0, 12.0))),
    "trickles": lambda reply, _: replace(reply, trickle=(0.5, 1 + len(reply.body or b"") // 40)),
}


def _with_body(reply: Reply, change: Callable[[bytes], bytes]) -> Reply:
    return replace(reply, body=change(reply.body)) if reply.body else reply


def faulty(kind: str, script: Replies, chance: random.Random, *, is_range: bool) -> Script:
    """A bookie that is well half of the time."""

    def answer(ledger: int, entry: int, *limits: int) -> Answers:
        if chance.random() < 0.5:
            return script(ledger, entry, *limits)
        if kind in STATUSES:
            return Reply(status=STATUSES[kind][is_range])
        return FAULTS[kind](script(ledger, entry + (kind == "another"), *limits), chance)

    return answer


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    size, quorum = draw(st.sampled_from([(3, 2), (3, 3), (2, 2), (4, 2), (4, 3)]))
    count = draw(st.sampled_from([1, 2, 50, 130]))
    names = draw(st.permutations(["0", "1", "2", "3"]))
    changes = []
    if count > 2 and draw(st.booleans()):
        others = draw(st.permutations(["0", "1", "2", "3"]))
        changes.append((draw(st.integers(1, count - 1)), tuple(others[:size])))
    length = draw(st.sampled_from([-1, 0, 1, 20_000, 1 << 60]))
    number = draw(st.integers(0, 1 << 40))
    return ledger_of(number, count, names[:size], quorum, changes=tuple(changes), length=length)


@pytest.mark.parametrize("kind", [*STATUSES, *FAULTS])
@given(
    st.lists(ledgers(), min_size=1, max_size=4, unique_by=lambda one: one.ledger_id),
    st.sampled_from([1, 300, 3000, 4 << 20]),
    st.data(),
)
@settings(max_examples=examples(40), deadline=None)
def test_any_ranges_come_whole_and_in_order_whatever_one_bookie_does(
    kind: str, made: list[LedgerMetadata], block_bytes: int, data: st.DataObject
) -> None:
    bad = data.draw(st.integers(0, 3))
    chance = random.Random(data.draw(st.integers(0, 1000)))
    ranges = []
    for _ in range(data.draw(st.integers(1, 6))):
        ledger = data.draw(st.sampled_from(made))
        first = data.draw(st.integers(0, ledger.last_entry))
        ranges.append((ledger, first, data.draw(st.integers(first - 1, ledger.last_entry))))
    store = stored_by(made)[bad]
    bookies = memory_bookies(
        made,
        {str(bad): faulty(kind, entry_script(store), chance, is_range=False)},
        {str(bad): faulty(kind, range_script(store), chance, is_range=True)},
    )
    assert entries_of(bookies.read(*ranges, block_bytes=block_bytes)) == expected(*ranges)
    # What the client kept of the first run does no harm to the next.
    bookies.resume()
    again = entries_of(bookies.read(*ranges[::-1], block_bytes=block_bytes))
    assert again == expected(*ranges[::-1])
    assert max(bookies.most.values(), default=0) <= 500
    if kind == "none" and all(one.ensemble_size == one.write_quorum for one in made):
        assert not any(bookies.asked.values()), "an entry was asked for by itself"


BODIES = [stored(7, entry, data_of(7, entry)) for entry in range(300)]
GOOD_RANGE = range_script({(7, entry): body for entry, body in enumerate(BODIES)})


def without_100(ledger: int, first: int, entries: int, size: int) -> Reply:
    """An entry that it does not hold ends its answer, and is an error of its own."""
    if first == 100:
        return Reply(status=V2_NOENTRY)
    return GOOD_RANGE(ledger, first, min(entries, 100 - first) if first < 100 else entries, size)


def always(reply: Reply | Broken | None) -> Script:
    return lambda *_: reply


def test_what_one_bookie_lacks_the_other_gives() -> None:
    lacks = entry_script({(7, n): body for n, body in enumerate(BODIES) if n != 100})
    bookies = memory_bookies([WHOLE], {"0": lacks}, {"0": without_100, "1": without_100})
    assert entries_of(bookies.read((WHOLE, 0, 299))) == expected((WHOLE, 0, 299))
    assert 100 in bookies.asked["1"]


def test_a_bookie_that_dies_while_it_is_asked_for_single_entries() -> None:
    """What it owed besides goes to the other bookie, and it does not come back."""

    def from_120_on(ledger: int, first: int, entries: int, size: int) -> Answers:
        if first < 120:
            return GOOD_RANGE(ledger, first, entries, size)
        return Reply(status=V2_EIO) if first < 140 else None

    # The second does not support range reads, so the first owes all of them.
    ranges = {"0": from_120_on, "1": always(BREAKS)}
    bookies = memory_bookies([WHOLE], {"0": always(BREAKS)}, ranges)
    assert entries_of(bookies.read((WHOLE, 0, 299))) == expected((WHOLE, 0, 299))


# --- errors ---


@pytest.mark.parametrize("ledger", [WHOLE, STRIPED, ledger_of(7, 300, "0", 1)])
@pytest.mark.parametrize(
    ("statuses", "error", "text"),
    [
        ((NOLEDGER, V2_NOLEDGER), NotFoundError, "no replica has ledger 7"),
        ((NOENTRY, V2_NOENTRY), CorruptError, r"7:\d+ is lost.*bookie 0: no such entry"),
        ((EIO, V2_EIO), UnavailableError, r"no replica gives entry 7:\d+ \(bookie \d: error"),
    ],
)
def test_what_all_replicas_answer_is_the_error(
    ledger: LedgerMetadata, statuses: tuple[int, int], error: type[Exception], text: str
) -> None:
    entry, several = ({str(n): always(Reply(status=one)) for n in range(3)} for one in statuses)
    with pytest.raises(error, match=text):
        list(memory_bookies([ledger], entry, several).read((ledger, 0, 299)))


def test_replicas_that_are_down_are_unavailable() -> None:
    with pytest.raises(UnavailableError, match=r"no replica gives .*\d refused, bookie \d refused"):
        list(MemoryBookies({}).read((WHOLE, 0, 299)))
    one = MemoryBookies({"0": always(Reply(status=NOENTRY))})
    with pytest.raises(UnavailableError, match=r"no replica gives .*1 refused, bookie 0: no such"):
        list(one.read((WHOLE, 0, 299)))


@pytest.mark.parametrize("ensemble", ["0", "01", "012"])
def test_what_every_replica_has_damaged_is_delivered_and_named(ensemble: str) -> None:
    ledger = ledger_of(7, 10, ensemble, min(2, len(ensemble)))
    store = {(7, n): _changed(BODIES[n]) if n == 5 else BODIES[n] for n in range(10)}
    script = dict.fromkeys(ensemble, entry_script(store))
    several = dict.fromkeys(ensemble, range_script(store))
    blocks = list(memory_bookies([ledger], script, several).read((ledger, 0, 9)))
    bad = {int(one.entry_ids[row]): why for one in blocks for row, why in one.damaged.items()}
    assert bad == {5: "digest mismatch on every replica"}
    assert [int(entry) for block in blocks for entry in block.entry_ids] == list(range(10))


@pytest.mark.parametrize("ledger", [WHOLE, STRIPED])
def test_a_wrong_password_is_an_error(ledger: LedgerMetadata) -> None:
    protected = replace(ledger, digest_type="MAC")
    with pytest.raises(ConfigurationError, match="no entry of ledger 7 passes its MAC digest"):
        list(memory_bookies([ledger]).read((protected, 0, 299)))


# --- which bookie is asked, and how often ---


def test_bookies_share_the_entries_in_runs_that_they_hold_whole() -> None:
    bookies = memory_bookies([STRIPED])
    assert entries_of(bookies.read((STRIPED, 0, 299))) == expected((STRIPED, 0, 299))
    for number in range(3):
        held = [entry for entry in range(300) if (entry - entry % 2 + 1) % 3 == number]
        assert sorted(bookies.asked[str(number)]) == held
    assert not any(bookies.ranges.values())


def test_bookies_share_the_ranges() -> None:
    bookies = memory_bookies([WHOLE])
    assert entries_of(bookies.read((WHOLE, 0, 299))) == expected((WHOLE, 0, 299))
    asked = sorted(len(ranges) for ranges in bookies.ranges.values())[-2:]
    assert asked[0] >= asked[1] - 1 > 3


def test_a_bookie_that_is_down_is_asked_for_nothing_more() -> None:
    bookies = memory_bookies([STRIPED])
    bookies.health.record_failure("1", "it is down")
    assert entries_of(bookies.read((STRIPED, 0, 299))) == expected((STRIPED, 0, 299))
    assert [len(set(asked)) for asked in bookies.asked.values()] == [150, 0, 150, 0]


def test_bookies_without_range_reads_are_asked_once() -> None:
    bookies = memory_bookies([WHOLE], ranges={"0": always(BREAKS), "1": always(BREAKS)})
    assert entries_of(bookies.read((WHOLE, 0, 299))) == expected((WHOLE, 0, 299))
    assert sum(bookies.opened.values()) <= 4
    assert sum(map(len, bookies.asked.values())) == 300


def test_only_a_bookie_that_closes_the_connection_is_without_range_reads() -> None:
    ledger = ledger_of(7, 10, "0", 1)
    for answer, knows_ranges in ((BREAKS, False), (Broken(in_order=False), True), (None, True)):
        bookies = memory_bookies([ledger], ranges={"0": always(answer)})
        assert len(list(bookies.read((ledger, 0, 9)))) == 1
        assert bookies.health.choose_for_ranges("0") is None, "it has failed"
        bookies.health.advance(bookies.now + 31)
        assert (bookies.health.choose_for_ranges("0") == "0") is knows_ranges


@pytest.mark.parametrize(("ensemble", "quorum"), [(("0",), 1), (("0", "1", "2"), 2)])
def test_a_range_ends_with_its_ensemble(ensemble: tuple[str, ...], quorum: int) -> None:
    ledger = ledger_of(7, 300, ensemble, quorum, changes=((104, ("3", *ensemble[1:])),))
    bookies = memory_bookies([ledger])
    assert entries_of(bookies.read((ledger, 0, 299))) == expected((ledger, 0, 299))
    first = [first + count - 1 for first, count in bookies.ranges["0"]] + bookies.asked["0"]
    last = [first for first, _ in bookies.ranges["3"]] + bookies.asked["3"]
    assert max(first) < 104 <= min(last)


# --- several ranges, sizes of blocks ---


@pytest.mark.parametrize(("length", "at_once"), [(-1, 1), (sum(map(len, BODIES)), 5)])
def test_a_ledger_of_known_length_is_requested_ahead_of_its_first_answer(
    length: int, at_once: int
) -> None:
    bookies = memory_bookies([WHOLE])
    next(bookies.read((replace(WHOLE, length=length), 0, 299)))
    assert bookies.in_flight_at_first_wait == at_once


def test_small_ledgers_are_requested_together() -> None:
    made = [ledger_of(n, 1, ("0", "1")) for n in range(40)]
    made += [ledger_of(n, 1) for n in range(40, 80)]
    bookies = memory_bookies(made)
    ranges = [(ledger, 0, 0) for ledger in made]
    assert entries_of(bookies.read(*ranges)) == expected(*ranges)
    assert len(bookies.waits) < 10
    assert max(bookies.opened.values()) <= 2


@pytest.mark.parametrize("ensemble", [("0", "1", "2"), ("0", "1")])
def test_an_error_comes_after_the_blocks_of_the_ranges_before_it(ensemble: tuple[str, ...]) -> None:
    made = [ledger_of(n, 5, ensemble) for n in (1, 2, 3)]
    stores = stored_by([made[0], made[2]])

    def unknown(number: int) -> Script:
        known = entry_script(stores[number])
        return lambda of, entry: Reply(status=NOLEDGER) if of == 2 else known(of, entry)

    bookies = memory_bookies(
        [made[0], made[2]], {str(number): unknown(number) for number in range(4)}
    )
    blocks = []
    with pytest.raises(NotFoundError, match="no replica has ledger 2"):
        for block in bookies.read_ranges(((ledger, 1, 4) for ledger in made), 2000):
            blocks.append(block)
    assert entries_of(blocks) == expected((made[0], 1, 4))
    ranges = [(made[2], 3, 4), (made[2], 2, 1), (made[0], 0, 1)]
    assert entries_of(bookies.read(*ranges)) == expected(*ranges)


def test_what_is_wrong_with_the_ranges_comes_in_its_turn_too() -> None:
    ledger = ledger_of(1, 5)
    unread = LedgerMetadata(2, "CLOSED", 1, 1, 1, 4, "SHA9", ((0, ("0",)),))

    def ends() -> Iterator[tuple[LedgerMetadata, int, int]]:
        yield ledger, 0, 4
        raise UnavailableError("the list of ledgers ends here")

    for ranges, error in (
        (ends(), UnavailableError),
        (iter([(ledger, 0, 4), (unread, 0, 4)]), UnsupportedError),
    ):
        blocks = memory_bookies([ledger]).read_ranges(ranges, 2000)
        assert entries_of([next(blocks)]) == expected((ledger, 0, 4))
        with pytest.raises(error):
            next(blocks)


def test_entries_that_grow_do_not_grow_the_blocks_without_end() -> None:
    """Small ones first: the plan for what follows is made with their size."""
    count = 6000
    ledger = ledger_of(7, count)
    bodies = [b"x" * (20 if entry < 300 else 2000) for entry in range(count)]
    store = {(7, entry): stored(7, entry, body) for entry, body in enumerate(bodies)}
    bookies = MemoryBookies(dict.fromkeys("012", entry_script(store)))
    blocks = list(bookies.read((ledger, 0, count - 1), block_bytes=400_000))
    found = [
        block.arena[at : at + size].tobytes()
        for block in blocks
        for at, size in zip(block.offsets, block.lengths, strict=True)
    ]
    assert found == bodies
    # What was in flight when they began to grow is in a block all the same: 500 of each bookie.
    assert max(int(block.lengths.sum()) for block in blocks) < 2 * 400_000 + 2 * 1500 * 2000


@pytest.mark.parametrize("steps", [(0, 2, 3, 4), (1,)])
def test_what_a_bookie_answers_for_others_is_not_taken(steps: tuple[int, ...]) -> None:
    def chatty(ledger: int, entry: int) -> list[Reply]:
        return [
            Reply(status=NOENTRY, offset=step) if step else Reply(BODIES[entry]) for step in steps
        ]

    def patient(ledger: int, entry: int) -> Reply:
        return Reply(BODIES[entry], after=0.01)

    bookies = memory_bookies([STRIPED], {"0": patient, "1": chatty, "2": patient})
    assert entries_of(bookies.read((STRIPED, 0, 299))) == expected((STRIPED, 0, 299))
    assert bookies.health.is_healthy("0") and bookies.health.is_healthy("2")
