"""Batch reads against bookies that fail on demand: whatever happens, the rows of single reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.bookkeeper import BookKeeperClient
from reader.bookkeeper.v2 import HEADER_BYTES, decode_batch_header, split_entries
from reader.errors import ConfigurationError, CorruptError, NotFoundError, UnavailableError
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

LEDGER = 7
OK, NOLEDGER, NOENTRY, EIO = 0, 402, 403, 501
V2_NOLEDGER, V2_NOENTRY, V2_EBADREQ, V2_EIO = 1, 2, 100, 101
COUNT = 300


def data_of(entry: int) -> bytes:
    return f"entry {entry} ".encode() * (1 + entry % 50)


EXPECTED = [data_of(entry) for entry in range(COUNT)]
BODIES = [stored(LEDGER, entry, data) for entry, data in enumerate(EXPECTED)]


def single(request: int, ledger: int, entry: int) -> bytes:
    return answer(request, OK, ledger, entry, BODIES[entry])


def fitting(first: int, entries: int, size: int) -> int:
    """Where a bookie stops: it gives one entry at least."""
    stop, left = first, size - 36
    while stop < min(first + entries, COUNT) and (stop == first or len(BODIES[stop]) + 4 <= left):
        left -= len(BODIES[stop]) + 4
        stop += 1
    return stop


def batch(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    return batch_answer(request, 0, ledger, first, BODIES[first : fitting(first, entries, size)])


def ledger_of(
    bookies: Sequence[str],
    ensembles: tuple[tuple[int, tuple[str, ...]], ...] = (),
    digest: str = "CRC32C",
    length: int = -1,
) -> LedgerMetadata:
    size, ensembles = len(bookies), ensembles or ((0, tuple(bookies)),)
    return LedgerMetadata(
        LEDGER, "CLOSED", size, size, size, COUNT - 1, digest, ensembles, length=length
    )


def read(
    ledger: LedgerMetadata,
    first: int = 0,
    last: int = COUNT - 1,
    block_bytes: int = 2000,
    timeout: float = 30.0,
) -> list[bytes]:
    found: list[bytes] = []
    with BookKeeperClient(timeout=timeout) as client:
        for block in client.read(ledger, first, last, block_bytes=block_bytes):
            assert block.ledger_id == LEDGER
            assert not block.damaged
            assert block.entry_ids.tolist() == list(
                range(first + len(found), first + len(found) + len(block))
            )
            for at, size in zip(block.offsets, block.lengths, strict=True):
                found.append(block.arena[at : at + size].tobytes())
    return found


def forbidden(request: int, ledger: int, entry: int) -> bytes:
    raise AssertionError("an entry was asked for by itself")


@given(
    st.integers(0, COUNT - 1),
    st.integers(1, COUNT),
    st.sampled_from([1, 500, 2000, 50_000, 1 << 30]),
    st.sampled_from([-1, 0, 1, sum(map(len, EXPECTED)), 1 << 60]),
)
@settings(max_examples=examples(40), deadline=None)
def test_any_range_comes_whole_and_in_order(
    first: int, count: int, block_bytes: int, length: int
) -> None:
    last = min(first + count, COUNT) - 1
    with FakeBookie(forbidden, batch) as one, FakeBookie(forbidden, batch) as two:
        ledger = ledger_of([one.address, two.address], length=length)
        assert read(ledger, first, last, block_bytes) == EXPECTED[first : last + 1]


def test_a_ledger_of_known_length_is_requested_ahead_of_its_first_answer() -> None:
    both_asked = threading.Barrier(2, timeout=60)

    def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        if not waited.is_set():
            both_asked.wait()
            waited.set()
        return batch(request, ledger, first, entries, size)

    waited = threading.Event()
    with FakeBookie(forbidden, script) as one, FakeBookie(forbidden, script) as two:
        ledger = ledger_of([one.address, two.address], length=sum(map(len, EXPECTED)))
        assert read(ledger) == EXPECTED


@pytest.mark.usefixtures("nobody_is_late")
def test_all_replicas_take_their_share() -> None:
    with FakeBookie(forbidden, batch) as one, FakeBookie(forbidden, batch) as two:
        assert read(ledger_of([one.address, two.address]), timeout=120) == EXPECTED
        # The one that owes less is asked, so how quick they are counts too. Four are in flight.
        asked = sorted([len(one.batches), len(two.batches)])
        assert 5 * asked[0] > asked[1] > 3


# --- faults: each of a first bookie, beside a second that is well ---


def status(code: int) -> BatchScript:
    return lambda request, ledger, first, entries, size: batch_answer(request, code, ledger, first)


def silent(request: int, ledger: int, first: int, entries: int, size: int) -> None:
    return None


def reset(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    raise ConnectionError


def damaged(change: Callable[[bytearray], None]) -> BatchScript:
    """The third entry of each answer is changed."""

    def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        bodies = [bytearray(b) for b in BODIES[first : fitting(first, entries, size)]]
        change(bodies[min(2, len(bodies) - 1)])
        return batch_answer(request, 0, ledger, first, [bytes(body) for body in bodies])

    return script


def flip(body: bytearray) -> None:
    body[40] ^= 0x10


def cut(body: bytearray) -> None:
    del body[20:]


def other_ledger(body: bytearray) -> None:
    body[:] = stored(LEDGER + 1, int.from_bytes(body[8:16], "big"), b"x")


def other_entry(body: bytearray) -> None:
    body[:] = BODIES[int.from_bytes(body[8:16], "big") - 1]


def too_many(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    return batch_answer(request, 0, ledger, first, BODIES[first : first + entries + 1] * 2)


def nothing(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    return batch_answer(request, 0, ledger, first)


def cut_off(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    """The frame is whole, its last entry is not."""
    whole = batch(request, ledger, first, entries, size)[:-3]
    return (len(whole) - 4).to_bytes(4, "big") + whole[4:]


def garbage(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    return b"\x00\x00\x00\x40" + b"\xff" * 64


def oversize(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    return b"\x7f\xff\xff\xff" + batch(request, ledger, first, entries, size)[4:]


def undersize(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    return b"\x00\x00\x00\x08" + batch(request, ledger, first, entries, size)[4:]


def nobody_asked(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    unasked = batch_answer(request + 10_000, V2_EIO, ledger, first)
    return unasked + batch(request, ledger, first, entries, size)


def without_100(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    """An entry that it does not hold ends its answer, and is an error of its own."""
    if first == 100:
        return batch_answer(request, V2_NOENTRY, ledger, first)
    before = 100 - first if first < 100 else entries
    return batch(request, ledger, first, min(entries, before), size)


FAULTS: list[BatchScript] = [
    status(V2_NOENTRY),
    status(V2_NOLEDGER),
    status(V2_EIO),
    status(V2_EBADREQ),
    silent,
    reset,
    damaged(flip),
    damaged(cut),
    damaged(other_ledger),
    damaged(other_entry),
    too_many,
    nothing,
    cut_off,
    garbage,
    oversize,
    undersize,
    nobody_asked,
    without_100,
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("begins", [0, pytest.param(120, marks=pytest.mark.long)])
def test_one_bad_bookie_of_two_changes_nothing(fault: BatchScript, begins: int) -> None:
    def sometimes(request: int, ledger: int, first: int, entries: int, size: int) -> bytes | None:
        script = fault if first >= begins else batch
        return script(request, ledger, first, entries, size)

    with FakeBookie(single, sometimes) as one, FakeBookie(single, batch) as two:
        assert read(ledger_of([one.address, two.address])) == EXPECTED


def test_what_one_bookie_lacks_the_other_gives() -> None:
    def lacks(request: int, ledger: int, entry: int) -> bytes:
        if entry == 100:
            return answer(request, NOENTRY, ledger, entry)
        return single(request, ledger, entry)

    with FakeBookie(lacks, without_100) as one, FakeBookie(single, without_100) as two:
        assert read(ledger_of([one.address, two.address])) == EXPECTED
        assert 100 in two.asked


def test_a_bookie_that_dies_while_it_is_asked_for_single_entries() -> None:
    """What it owed besides goes to the other, although nobody answers at its address any more."""
    dying: list[FakeBookie] = []

    def from_120_on(request: int, ledger: int, first: int, entries: int, size: int) -> bytes | None:
        if first < 120:
            return batch(request, ledger, first, entries, size)
        return batch_answer(request, V2_EIO, ledger, first) if first < 140 else None

    def dies(request: int, ledger: int, entry: int) -> bytes:
        dying[0].close()
        raise ConnectionError

    # The second does not support batch reads, so the first owes all of them.
    with FakeBookie(dies, from_120_on) as one, FakeBookie(single) as two:
        dying.append(one)
        assert read(ledger_of([one.address, two.address])) == EXPECTED


@pytest.mark.usefixtures("nobody_is_late")
def test_bookies_without_batch_reads_are_asked_once() -> None:
    with FakeBookie(single) as one, FakeBookie(single) as two:
        assert read(ledger_of([one.address, two.address]), timeout=120) == EXPECTED
        assert len(one.batches) + len(two.batches) <= 2
        assert len(one.asked) + len(two.asked) == COUNT


def test_striped_ledgers_are_read_entry_by_entry() -> None:
    with ExitStack() as stack:
        three = [stack.enter_context(FakeBookie(single, batch)) for _ in range(3)]
        ledger = LedgerMetadata(
            LEDGER, "CLOSED", 3, 2, 2, COUNT - 1, "CRC32C", ((0, tuple(b.address for b in three)),)
        )
        assert read(ledger) == EXPECTED
        assert not any(bookie.batches for bookie in three)


def test_a_range_ends_with_its_ensemble() -> None:
    with FakeBookie(forbidden, batch) as old, FakeBookie(forbidden, batch) as new:
        ledger = ledger_of([old.address], ensembles=((0, (old.address,)), (104, (new.address,))))
        assert read(ledger) == EXPECTED
        assert max(first + count for first, count in old.batches) == 104
        assert min(first for first, _ in new.batches) == 104


@pytest.mark.usefixtures("nobody_is_late")
def test_a_kept_connection_that_goes_silent_costs_its_timeout_once() -> None:
    mute = [False]

    def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes | None:
        return None if mute[0] else batch(request, ledger, first, entries, size)

    def quiet(request: int, ledger: int, entry: int) -> None:
        return None

    with (
        FakeBookie(quiet, script) as one,
        FakeBookie(single, batch) as two,
        BookKeeperClient(timeout=10.0) as client,
    ):
        ledger = ledger_of([one.address, two.address])
        for silent in (False, True):
            client.resume()
            mute[0] = silent
            blocks = client.read(ledger, 0, COUNT - 1, block_bytes=2000)
            assert sum(len(block) for block in blocks) == COUNT
        assert one.connections == 1, "it is not asked again on a new connection"
        assert client.pool.best([one.address, two.address]) == two.address


@pytest.mark.parametrize("fault", [silent, garbage])
def test_only_a_bookie_that_closes_the_connection_is_an_older_one(fault: BatchScript) -> None:
    now = [0.0]

    def passing(request: int, ledger: int, first: int, entries: int, size: int) -> Any:
        now[0] += 1.5  # and none while it is asked for single entries
        return fault(request, ledger, first, entries, size)

    with (
        FakeBookie(single, passing) as one,
        BookKeeperClient(timeout=1.5, clock=lambda: now[0]) as client,
    ):
        assert len(list(client.read(ledger_of([one.address]), 0, 9))) == 1
        assert client.pool.best_for_ranges([one.address]) is None
        now[0] += 31
        assert client.pool.best_for_ranges([one.address]) == one.address
    with FakeBookie(single) as one, BookKeeperClient(clock=lambda: now[0]) as client:
        assert len(list(client.read(ledger_of([one.address]), 0, 9))) == 1
        now[0] += 31
        assert client.pool.best_for_ranges([one.address]) is None


def test_the_end_of_a_connection_in_the_middle_of_an_answer() -> None:
    def halves(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        if first >= 100:
            return batch(request, ledger, first, entries, size)[:-200]
        return batch(request, ledger, first, entries, size)

    with FakeBookie(single, halves) as one, FakeBookie(single, batch) as two:
        assert read(ledger_of([one.address, two.address])) == EXPECTED


def errors(code: int) -> Script:
    return lambda request, ledger, entry: answer(request, code, ledger, entry)


def test_errors_are_those_of_single_reads() -> None:
    with FakeBookie(errors(NOLEDGER), status(V2_NOLEDGER)) as one:
        with pytest.raises(NotFoundError, match="no replica has ledger 7"):
            read(ledger_of([one.address]))
    with FakeBookie(errors(NOENTRY), status(V2_NOENTRY)) as one:
        with pytest.raises(CorruptError, match="7:0 is lost"):
            read(ledger_of([one.address]))
    with FakeBookie(errors(EIO), status(V2_EIO)) as one:
        with pytest.raises(UnavailableError, match="no replica gives"):
            read(ledger_of([one.address]))
    with pytest.raises(UnavailableError, match=r"no replica gives .*no connection .*refused"):
        read(ledger_of([one.address]))


def test_what_every_replica_has_damaged_is_delivered_and_named() -> None:
    broken = bytearray(BODIES[5])
    flip(broken)

    def bad_5(request: int, ledger: int, entry: int) -> bytes:
        body = bytes(broken) if entry == 5 else BODIES[entry]
        return answer(request, OK, ledger, entry, body)

    with FakeBookie(bad_5, damaged(flip)) as one, BookKeeperClient(timeout=30.0) as client:
        found = list(client.read(ledger_of([one.address]), 0, 9))
    bad = {int(b.entry_ids[row]): why for b in found for row, why in b.damaged.items()}
    assert bad == {5: "digest mismatch on every replica"}
    assert [int(entry) for block in found for entry in block.entry_ids] == list(range(10))


def test_a_wrong_password_is_said() -> None:
    with FakeBookie(single, batch) as one, pytest.raises(ConfigurationError, match="MAC digest"):
        read(ledger_of([one.address], digest="MAC"))


def test_the_client_is_usable_after_a_read_that_was_given_up() -> None:
    with FakeBookie(single, batch) as one, BookKeeperClient(timeout=30.0) as client:
        ledger = ledger_of([one.address])
        blocks = client.read(ledger, 0, 299, block_bytes=500)
        next(blocks)
        blocks.close()
        again = [int(e) for block in client.read(ledger, 3, 20) for e in block.entry_ids]
        assert again == list(range(3, 21))


@given(st.binary(max_size=120), st.integers(0, 5))
@settings(deadline=None)  # the first compiles
def test_any_content_is_split_or_refused(content: bytes, most: int) -> None:
    data = np.frombuffer(content, np.uint8)
    try:
        offsets, lengths = split_entries(data, most)
    except CorruptError:
        return
    found = [content[at : at + size] for at, size in zip(offsets, lengths, strict=True)]
    assert b"".join(len(one).to_bytes(4, "big") + one for one in found) == content


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_any_header_is_read_or_refused(opening: bytes) -> None:
    with suppress(CorruptError):
        assert 0 <= decode_batch_header(opening, 1 << 20).size <= 1 << 20


def test_a_kept_connection_that_breaks_is_no_failure_of_the_bookie() -> None:
    breaks = [False]

    def script(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
        if breaks[0]:
            breaks[0] = False
            raise ConnectionError
        return batch(request, ledger, first, entries, size)

    with FakeBookie(forbidden, script) as one, BookKeeperClient(timeout=60.0) as client:
        ledger = ledger_of([one.address])
        for broken in (False, True, False):
            client.resume()
            breaks[0] = broken
            blocks = client.read(ledger, 0, COUNT - 1, block_bytes=2000)
            assert sum(len(block) for block in blocks) == COUNT
        assert one.connections == 2
