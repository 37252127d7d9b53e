"""Striped ledgers of bookies that fail, lag and lie: the same entries, each once, in order."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.bookkeeper import BookKeeperClient
from reader.errors import NotFoundError, UnavailableError, UnsupportedError
from reader.model import LedgerMetadata
from tests.support.examples import examples
from tests.unit.bookkeeper.fake_bookie import (
    BatchScript,
    FakeBookie,
    Script,
    answer,
    batch_answer,
    stored,
)
from tests.unit.bookkeeper.stored_ledgers import (
    EIO,
    NOENTRY,
    NOLEDGER,
    OK,
    V2_NOENTRY,
    Store,
    batch,
    bookies,
    data_of,
    entries_of,
    expected,
    ledger_of,
    single,
    stored_by,
)

# --- any ledgers, any ranges, any faults of one bookie ---


def _changed(body: bytes) -> bytes:
    return body[:40] + bytes([body[40] ^ 1]) + body[41:]


def faulty(kind: str, seed: int, script: Script, ranges: BatchScript) -> tuple[Script, BatchScript]:
    """Both protocols of a bookie that is well half of the time."""
    chance = random.Random(seed)
    lock = threading.Lock()

    def hits() -> bool:
        with lock:
            return chance.random() < 0.5

    def one(request: int, ledger: int, entry: int) -> bytes | None:
        whole = script(request, ledger, entry)
        if kind == "well" or not hits():
            return whole
        body = stored(ledger, entry, data_of(ledger, entry))
        ways: dict[str, Callable[[], bytes | None]] = {
            "error": lambda: answer(request, EIO, ledger, entry),
            "lacks": lambda: answer(request, NOENTRY, ledger, entry),
            "forgot": lambda: answer(request, NOLEDGER, ledger, entry),
            "corrupt": lambda: answer(request, OK, ledger, entry, _changed(body)),
            "garbage": lambda: b"\x00\x00\x00\x08" + b"\xff" * 8,
            "hangs up": _hang_up,
            "silent": lambda: None,
            "twice": lambda: (whole or b"") * 2,
        }
        return ways[kind]()

    def several(request: int, ledger: int, first: int, entries: int, size: int) -> bytes | None:
        whole = ranges(request, ledger, first, entries, size)
        if kind in ("well", "twice") or not hits() or whole is None:
            return whole
        ways: dict[str, Callable[[], bytes | None]] = {
            "error": lambda: batch_answer(request, 101, ledger, first),
            "lacks": lambda: batch_answer(request, V2_NOENTRY, ledger, first),
            "forgot": lambda: batch_answer(request, 1, ledger, first),
            "corrupt": lambda: whole[:-1] + bytes([whole[-1] ^ 1]),
            "garbage": lambda: b"\x00\x00\x00\x40" + b"\xff" * 64,
            "hangs up": _hang_up,
            "silent": lambda: None,
        }
        return ways[kind]()

    return one, several


def _hang_up() -> bytes:
    raise ConnectionError


_KINDS = ["well", "error", "lacks", "forgot", "corrupt", "garbage", "hangs up", "silent", "twice"]
_SHAPES = [(3, 2), (3, 3), (2, 2), (4, 2), (4, 3)]


@st.composite
def ledgers(draw: st.DrawFn) -> LedgerMetadata:
    size, quorum = draw(st.sampled_from(_SHAPES))
    count = draw(st.sampled_from([1, 2, 50, 130]))
    names = draw(st.permutations(["0", "1", "2", "3"]))
    ensembles = [(0, tuple(names[:size]))]
    if count > 2 and draw(st.booleans()):
        others = draw(st.permutations(["0", "1", "2", "3"]))
        ensembles.append((draw(st.integers(1, count - 1)), tuple(others[:size])))
    return ledger_of(draw(st.integers(0, 1 << 40)), count, tuple(ensembles), quorum)


@given(
    st.lists(ledgers(), min_size=1, max_size=4, unique_by=lambda one: one.ledger_id),
    st.sampled_from(_KINDS),
    st.sampled_from([1, 300, 3000, 4 << 20]),
    st.data(),
)
@settings(max_examples=examples(120), deadline=None)
def test_any_ranges_come_whole_and_in_order_whatever_one_bookie_does(
    made: list[LedgerMetadata], kind: str, block_bytes: int, data: st.DataObject
) -> None:
    stores = stored_by(made)
    bad = data.draw(st.integers(0, 3))
    ranges = []
    for _ in range(data.draw(st.integers(1, 6))):
        ledger = data.draw(st.sampled_from(made))
        first = data.draw(st.integers(0, ledger.last_entry))
        ranges.append((ledger, first, data.draw(st.integers(first - 1, ledger.last_entry))))
    with ExitStack() as stack:
        addresses = {}
        for number, store in enumerate(stores):
            script, several = single(store), batch(store)
            if number == bad:
                script, several = faulty(kind, number, script, several)
            bookie = stack.enter_context(FakeBookie(script, several))
            addresses[str(number)] = bookie.address
        with BookKeeperClient(addresses=addresses, timeout=30.0) as client:
            found = entries_of(client.read_ranges(ranges, block_bytes=block_bytes))
            assert found == expected(*ranges)
            # What it kept of the first run does no harm to the next.
            client.resume()
            again = entries_of(client.read_ranges(ranges[::-1], block_bytes=block_bytes))
            assert again == expected(*ranges[::-1])


# --- which bookie is asked, and how often ---


@pytest.mark.usefixtures("nobody_is_late")
def test_bookies_share_the_work_in_runs_that_they_hold_whole() -> None:
    ledger = ledger_of(7, 600)
    with bookies(stored_by([ledger])) as (made, addresses):
        with BookKeeperClient(addresses=addresses, timeout=120) as client:
            assert entries_of(client.read(ledger, 0, 599)) == expected((ledger, 0, 599))
        assert [len(one.asked) for one in made] == [200, 200, 200, 0]
        assert all(entry ^ 1 in one.asked for one in made for entry in one.asked)


@pytest.mark.usefixtures("nobody_is_late")
def test_a_bookie_that_is_down_is_asked_for_nothing_more() -> None:
    ledger = ledger_of(7, 600)
    with bookies(stored_by([ledger])) as (made, addresses):
        with BookKeeperClient(addresses=addresses, timeout=120) as client:
            client.pool.drop("1", "it is down")
            assert entries_of(client.read(ledger, 0, 599)) == expected((ledger, 0, 599))
        assert [len(set(one.asked)) for one in made] == [300, 0, 300, 0]


# --- several ranges ---


def test_small_ledgers_are_asked_for_together() -> None:
    """No answer is given before several ledgers were asked for."""
    made = [ledger_of(n, 1, ((0, ("0", "1")),)) for n in range(40)]
    made += [ledger_of(n, 1) for n in range(40, 80)]
    stores = stored_by(made)
    asked: list[None] = []
    enough = threading.Event()

    def count() -> None:
        asked.append(None)
        if len(asked) >= 3:
            enough.set()

    def one(store: Store) -> Script:
        def script(request: int, ledger: int, entry: int) -> bytes | None:
            count()
            enough.wait(60)
            return single(store)(request, ledger, entry)

        return script

    def several(store: Store) -> BatchScript:
        def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes | None:
            count()
            enough.wait(60)
            return batch(store)(request, ledger, first, entries, size)

        return script

    with ExitStack() as stack:
        all_of_them = [stack.enter_context(FakeBookie(one(s), several(s))) for s in stores]
        addresses = {str(n): bookie.address for n, bookie in enumerate(all_of_them)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=30.0))
        ranges = [(ledger, 0, 0) for ledger in made]
        assert entries_of(client.read_ranges(iter(ranges))) == expected(*ranges)
        assert enough.is_set()
        assert all(bookie.connections <= 2 for bookie in all_of_them)


@pytest.mark.parametrize("striped", [False, True])
def test_an_error_comes_after_the_blocks_of_the_ranges_before_it(striped: bool) -> None:
    ensemble = ("0", "1", "2") if striped else ("0", "1")
    made = [ledger_of(n, 5, ((0, ensemble),)) for n in (1, 2, 3)]
    stores = stored_by([made[0], made[2]])

    def unknown(store: Store) -> Script:
        def script(request: int, ledger: int, entry: int) -> bytes:
            if ledger == 2:
                return answer(request, NOLEDGER, ledger, entry)
            return single(store)(request, ledger, entry) or b""

        return script

    with ExitStack() as stack:
        all_of_them = [stack.enter_context(FakeBookie(unknown(s), batch(s))) for s in stores]
        addresses = {str(n): bookie.address for n, bookie in enumerate(all_of_them)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=30.0))
        found = []
        with pytest.raises(NotFoundError, match="no replica has ledger 2"):
            for block in client.read_ranges((ledger, 0, 4) for ledger in made):
                found.append(block)
        assert entries_of(found) == expected((made[0], 0, 4))
        rest = client.read_ranges([(made[2], 0, 4)])
        assert entries_of(rest) == expected((made[2], 0, 4))


def test_what_is_wrong_with_the_ranges_comes_in_its_turn_too() -> None:
    ledger = ledger_of(1, 5)
    unread = LedgerMetadata(2, "CLOSED", 1, 1, 1, 4, "SHA9", ((0, ("0",)),))

    def ends() -> Iterator[tuple[LedgerMetadata, int, int]]:
        yield ledger, 0, 4
        raise UnavailableError("the list of ledgers ends here")

    with bookies(stored_by([ledger])) as (_, addresses):
        with BookKeeperClient(addresses=addresses, timeout=30.0) as client:
            for ranges, error in (
                (ends(), UnavailableError),
                (iter([(ledger, 0, 4), (unread, 0, 4)]), UnsupportedError),
            ):
                blocks = client.read_ranges(ranges)
                assert entries_of([next(blocks)]) == expected((ledger, 0, 4))
                with pytest.raises(error):
                    next(blocks)


def test_entries_that_grow_do_not_grow_the_blocks_without_end() -> None:
    """Small ones first: the plan for what follows is made with their size."""
    count = 6000
    ledger = ledger_of(7, count)
    stores: list[dict[tuple[int, int], bytes]] = [{} for _ in range(3)]
    bodies = [b"x" * (20 if entry < 300 else 2000) for entry in range(count)]
    for entry, body in enumerate(bodies):
        for bookie in ledger.replicas(entry):
            stores[int(bookie)][7, entry] = stored(7, entry, body)
    with bookies(stores) as (_, addresses):
        with BookKeeperClient(addresses=addresses, timeout=30.0) as client:
            blocks = list(client.read(ledger, 0, count - 1, block_bytes=400_000))
    found = [
        block.arena[at : at + size].tobytes()
        for block in blocks
        for at, size in zip(block.offsets, block.lengths, strict=True)
    ]
    assert found == bodies
    # What was in flight when they began to grow is in a block all the same: 500 of each bookie.
    assert max(int(block.lengths.sum()) for block in blocks) < 2 * 400_000 + 2 * 1500 * 2000


@pytest.mark.parametrize("steps", [(0, 2, 3, 4), (1,)])
def test_what_a_bookie_answers_for_others_is_not_taken(
    steps: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The others wait a second at most.
    monkeypatch.setattr("reader.bookkeeper.pool.LATE_SECONDS", 8.0)
    ledger = ledger_of(7, 600)
    stores = stored_by([ledger])
    first, rest = threading.Event(), [single(one) for one in stores]

    def patient(script: Script) -> Script:
        def patiently(request: int, number: int, entry: int) -> bytes | None:
            first.wait(1)
            return script(request, number, entry)

        return patiently

    def chatty(request: int, number: int, entry: int) -> bytes | None:
        if entry > 56:  # of the 64 that are asked for at first
            first.set()
        return b"".join(
            answer(request + n, NOENTRY, number, entry + n)
            if n
            else rest[1](request, number, entry) or b""
            for n in steps
        )

    scripts = [patient(rest[0]), chatty, *map(patient, rest[2:])]
    with ExitStack() as stack:
        made = [stack.enter_context(FakeBookie(one)) for one in scripts]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        with BookKeeperClient(addresses=addresses, timeout=30.0) as client:
            assert entries_of(client.read(ledger, 0, 599)) == expected((ledger, 0, 599))
            assert all(client.pool.is_well(one) for one in addresses if one != "1")
