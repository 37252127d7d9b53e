"""Striped ledgers of bookies that fail, lag and lie: the same entries, each once, in order."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.bookkeeper import BookKeeperClient
from reader.errors import CorruptError, NotFoundError, UnavailableError, UnsupportedError
from reader.model import EntryBlock, LedgerMetadata
from tests.support.examples import examples
from tests.unit.bookkeeper.fake_bookie import (
    BatchScript,
    FakeBookie,
    Script,
    answer,
    batch_answer,
    stored,
)

OK, NOLEDGER, NOENTRY, EIO = 0, 402, 403, 501
V2_NOENTRY = 2

Store = Mapping[tuple[int, int], bytes]
"""Entries as they are stored, by ledger and entry."""


def data_of(ledger: int, entry: int) -> bytes:
    return f"{ledger}:{entry} ".encode() * (1 + (entry * 7 + ledger) % 40)


def stored_by(ledgers: Iterable[LedgerMetadata]) -> list[dict[tuple[int, int], bytes]]:
    """What each of the bookies "0", "1" … has of the ledgers' entries."""
    held: list[dict[tuple[int, int], bytes]] = [{} for _ in range(4)]
    for ledger in ledgers:
        for entry in range(ledger.last_entry + 1):
            for bookie in ledger.replicas(entry):
                body = stored(ledger.ledger_id, entry, data_of(ledger.ledger_id, entry))
                held[int(bookie)][ledger.ledger_id, entry] = body
    return held


def single(store: Store) -> Script:
    def script(request: int, ledger: int, entry: int) -> bytes:
        body = store.get((ledger, entry))
        known = OK if body is not None else NOENTRY
        return answer(request, known, ledger, entry, body)

    return script


def batch(store: Store) -> BatchScript:
    def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        found: list[bytes] = []
        left = size - 36
        for entry in range(first, first + entries):
            body = store.get((ledger, entry))
            if body is None or (found and len(body) + 4 > left):
                break
            left -= len(body) + 4
            found.append(body)
        known = 0 if found else V2_NOENTRY
        return batch_answer(request, known, ledger, first, found)

    return script


@contextmanager
def bookies(stores: Iterable[Store]) -> Iterator[tuple[list[FakeBookie], dict[str, str]]]:
    with ExitStack() as stack:
        made = [stack.enter_context(FakeBookie(single(one), batch(one))) for one in stores]
        yield made, {str(n): bookie.address for n, bookie in enumerate(made)}


def ledger_of(
    number: int,
    count: int,
    ensembles: tuple[tuple[int, tuple[str, ...]], ...] = ((0, ("0", "1", "2")),),
    quorum: int = 2,
) -> LedgerMetadata:
    size = len(ensembles[0][1])
    return LedgerMetadata(number, "CLOSED", size, quorum, quorum, count - 1, "CRC32C", ensembles)


def entries_of(blocks: Iterable[EntryBlock]) -> list[tuple[int, int, bytes]]:
    found = []
    for block in blocks:
        assert not block.damaged
        ids = block.entry_ids.tolist()
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        for entry, at, size in zip(ids, block.offsets, block.lengths, strict=True):
            found.append((block.ledger_id, entry, block.arena[at : at + size].tobytes()))
    return found


def expected(*ranges: tuple[LedgerMetadata, int, int]) -> list[tuple[int, int, bytes]]:
    return [
        (ledger.ledger_id, entry, data_of(ledger.ledger_id, entry))
        for ledger, first, last in ranges
        for entry in range(first, last + 1)
    ]


stored(0, 0, b"")  # compiles the checksum, before any timeout counts


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
        with BookKeeperClient(addresses=addresses, timeout=2.0) as client:
            found = entries_of(client.read_ranges(ranges, block_bytes=block_bytes))
            assert found == expected(*ranges)
            # What it kept of the first run does no harm to the next.
            client.resume()
            again = entries_of(client.read_ranges(ranges[::-1], block_bytes=block_bytes))
            assert again == expected(*ranges[::-1])


# --- which bookie is asked, and how often ---


def test_bookies_share_the_work_in_runs_that_they_hold_whole() -> None:
    ledger = ledger_of(7, 600)
    with bookies(stored_by([ledger])) as (made, addresses):
        with BookKeeperClient(addresses=addresses) as client:
            assert entries_of(client.read(ledger, 0, 599)) == expected((ledger, 0, 599))
        assert [len(one.asked) for one in made] == [200, 200, 200, 0]
        assert all(entry ^ 1 in one.asked for one in made for entry in one.asked)


def test_a_bookie_that_is_down_is_asked_for_nothing_more() -> None:
    ledger = ledger_of(7, 600)
    with bookies(stored_by([ledger])) as (made, addresses):
        with BookKeeperClient(addresses=addresses) as client:
            client.pool.drop("1", "it is down")
            assert entries_of(client.read(ledger, 0, 599)) == expected((ledger, 0, 599))
        assert [len(set(one.asked)) for one in made] == [300, 0, 300, 0]


# --- stragglers ---


def late(script: Script, when: Callable[[int], bool], gate: threading.Event) -> Script:
    """Some answers wait until the gate opens."""

    def waits(request: int, ledger: int, entry: int) -> bytes | None:
        if when(entry):
            gate.wait(20)
        return script(request, ledger, entry)

    return waits


def test_what_is_late_is_asked_elsewhere_and_the_late_answer_is_dropped() -> None:
    ledger = ledger_of(7, 600)
    gate = threading.Event()
    stores = stored_by([ledger])
    with ExitStack() as stack:
        scripts = [single(store) for store in stores]
        scripts[0] = late(scripts[0], lambda entry: entry > 200, gate)
        made = [stack.enter_context(FakeBookie(script)) for script in scripts]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses, timeout=15.0))
        blocks = client.read(ledger, 0, 599, block_bytes=20_000)
        found = [next(blocks)]
        while found[-1].entry_ids[-1] < 400:
            found.append(next(blocks))
        gate.set()  # the answers that others gave come after all
        found += blocks
        assert entries_of(found) == expected((ledger, 0, 599))
        assert not client.pool.is_well("0") or len(made[0].asked) >= 100


@pytest.mark.parametrize("begins", [0, 10, 36, 500])
@pytest.mark.parametrize("trickles", [False, True])
def test_a_whole_range_that_is_late_is_asked_elsewhere(begins: int, trickles: bool) -> None:
    """It stalls before its answer, in the header, behind it or in an entry, or trickles on."""
    ledger = ledger_of(7, 300, ((0, ("0", "1")),))
    gate = threading.Event()
    stores = stored_by([ledger])

    def slow(request: int, ledger: int, first: int, entries: int, size: int) -> Iterator[bytes]:
        whole = batch(stores[0])(request, ledger, first, entries, size)
        assert whole is not None
        at = begins
        yield whole[:at]
        while trickles and at < len(whole) - 1 and not gate.wait(0.01):
            yield whole[at : at + 1]
            at += 1
        gate.wait(20)
        yield whole[at:]

    with (
        FakeBookie(single(stores[0]), slow) as one,
        FakeBookie(single(stores[1]), batch(stores[1])) as two,
        BookKeeperClient(addresses={"0": one.address, "1": two.address}, timeout=15.0) as client,
    ):
        begun = time.monotonic()
        blocks = client.read(ledger, 0, 299, block_bytes=3000)
        assert entries_of(blocks) == expected((ledger, 0, 299))
        assert time.monotonic() - begun < 7, "late after half of the timeout at most"
        assert one.asked == two.asked == [], "it was read by the range all the same"
        assert client.pool.is_fine("0"), "late is not failed"
        assert not client.pool.is_well("0")
        gate.set()


def test_a_range_that_arrives_slowly_is_waited_for_where_nobody_else_has_it() -> None:
    """A bookie is silent when nothing arrives, not while an answer takes long."""
    ledger = ledger_of(7, 30, ((0, ("0",)),), 1)
    store = stored_by([ledger])[0]
    pause = threading.Event()

    def slow(request: int, ledger: int, first: int, entries: int, size: int) -> Iterator[bytes]:
        whole = batch(store)(request, ledger, first, entries, size)
        assert whole is not None
        for at in range(0, len(whole), 1 + len(whole) // 8):
            yield whole[at : at + 1 + len(whole) // 8]
            pause.wait(0.2)

    with (
        FakeBookie(single(store), slow) as one,
        BookKeeperClient(addresses={"0": one.address}, timeout=0.6) as client,
    ):
        assert entries_of(client.read(ledger, 0, 29)) == expected((ledger, 0, 29))
        assert (len(one.batches), one.asked) == (1, [])


def test_where_there_is_no_other_replica_what_is_late_is_waited_for() -> None:
    ledger = ledger_of(7, 30, ((0, ("0", "1")),), 1)
    stores = stored_by([ledger])
    gate = threading.Event()
    with (
        FakeBookie(late(single(stores[0]), lambda entry: entry == 10, gate)) as one,
        FakeBookie(single(stores[1])) as two,
        BookKeeperClient(addresses={"0": one.address, "1": two.address}) as client,
    ):
        threading.Timer(0.6, gate.set).start()
        assert entries_of(client.read(ledger, 0, 29)) == expected((ledger, 0, 29))
        assert len(one.asked) == len(two.asked) == 15


def test_a_late_replica_that_lacks_the_entry_counts_as_one_that_lacks_it() -> None:
    ledger = ledger_of(7, 6)
    stores = stored_by([ledger])
    for store in stores:
        store.pop((7, 4), None)
    gate = threading.Event()
    with ExitStack() as stack:
        scripts = [single(store) for store in stores]
        scripts[2] = late(scripts[2], lambda entry: entry == 4, gate)
        made = [stack.enter_context(FakeBookie(script)) for script in scripts]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses))
        threading.Timer(0.6, gate.set).start()
        with pytest.raises(CorruptError, match="7:4 is lost"):
            list(client.read(ledger, 0, 5))


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
            enough.wait(10)
            return single(store)(request, ledger, entry)

        return script

    def several(store: Store) -> BatchScript:
        def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes | None:
            count()
            enough.wait(10)
            return batch(store)(request, ledger, first, entries, size)

        return script

    with ExitStack() as stack:
        all_of_them = [stack.enter_context(FakeBookie(one(s), several(s))) for s in stores]
        addresses = {str(n): bookie.address for n, bookie in enumerate(all_of_them)}
        client = stack.enter_context(BookKeeperClient(addresses=addresses))
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
        client = stack.enter_context(BookKeeperClient(addresses=addresses))
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
        with BookKeeperClient(addresses=addresses) as client:
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
        with BookKeeperClient(addresses=addresses) as client:
            blocks = list(client.read(ledger, 0, count - 1, block_bytes=400_000))
    found = [
        block.arena[at : at + size].tobytes()
        for block in blocks
        for at, size in zip(block.offsets, block.lengths, strict=True)
    ]
    assert found == bodies
    # What was in flight when they began to grow is in a block all the same: 500 of each bookie.
    assert max(int(block.lengths.sum()) for block in blocks) < 2 * 400_000 + 2 * 1500 * 2000


def test_a_bookie_that_answers_for_others_is_left() -> None:
    ledger = ledger_of(7, 600)
    stores = stored_by([ledger])
    scripts = [single(one) for one in stores]

    def chatty(request: int, number: int, entry: int) -> bytes | None:
        more = b"".join(answer(request + n, NOENTRY, number, entry + n) for n in (2, 3, 4))
        return (single(stores[1])(request, number, entry) or b"") + more

    scripts[1] = chatty
    with ExitStack() as stack:
        made = [stack.enter_context(FakeBookie(one)) for one in scripts]
        addresses = {str(n): bookie.address for n, bookie in enumerate(made)}
        with BookKeeperClient(addresses=addresses, timeout=3.0) as client:
            assert entries_of(client.read(ledger, 0, 599)) == expected((ledger, 0, 599))
