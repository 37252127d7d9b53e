"""The rest of a partition: how far back it is read, and what is known without reading."""

import tracemalloc
from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.decode import NO_CHUNKS, Chunk, ChunkSequence
from reader.errors import LedgerGoneError, UnavailableError
from reader.model import Partition, Position, TransactionId
from reader.sources.lookback import Lookback
from reader.sources.stored import StoredEntries
from tests.unit.decode.entries import entry
from tests.unit.sources.memory_sources import MemoryEntries
from tests.unit.sources.splits import PARTITION

OTHER = entry(b"another message")


def chunk(number: int, of: int = 3, uuid: str = "u") -> bytes:
    return entry(b"%d" % number, uuid=uuid, num_chunks_from_msg=of, chunk_id=number)


def lookback_over(
    *ledgers: Sequence[bytes],
    end: Position,
    first: Position | None = None,
    aborted: bool = False,
    known: dict[bytes, ChunkSequence] | None = None,
) -> tuple[Lookback, MemoryEntries]:
    """Over ledgers 0, 1, …; what was read of them."""
    source = MemoryEntries(PARTITION, dict(enumerate(ledgers)), aborted=aborted)
    return Lookback(source, PARTITION, end=end, first=first, known=known), source


def positions(chunks: Sequence[Chunk]) -> list[tuple[int, int, int]]:
    return [(one.ledger, one.entry, one.chunk_id) for one in chunks]


def test_nothing_is_read_before_it_is_asked() -> None:
    _, source = lookback_over([chunk(0)], end=Position(0, 1))
    assert source.asked == []


def test_chunks_from_the_latest_first_one() -> None:
    lookback, _ = lookback_over(
        [chunk(0), chunk(0, uuid="v"), chunk(1), chunk(0), OTHER, chunk(1), chunk(2)],
        end=Position(0, 6),
    )
    assert positions(lookback.sequence_before(b"u")) == [(0, 3, 0), (0, 5, 1)]
    assert positions(lookback.sequence_before(b"v")) == [(0, 1, 0)]


def test_no_further_than_the_first_chunk_and_never_twice() -> None:
    lookback, source = lookback_over(
        [OTHER] * 5000, [*[OTHER] * 90, chunk(0), *[OTHER] * 9], end=Position(1, 100)
    )
    assert positions(lookback.sequence_before(b"u")) == [(1, 90, 0)]
    assert source.asked == [(1, 68, 99)]
    assert lookback.sequence_before(b"v") == NO_CHUNKS
    assert source.asked[1] == (1, 0, 67)
    assert source.asked[-1][:2] == (0, 0)
    read = [(ledger, n) for ledger, low, high in source.asked for n in range(low, high + 1)]
    assert len(read) == len(set(read)) == 5100
    assert max(high - low for _, low, high in source.asked) < 8192


def test_no_further_than_the_lookback_position() -> None:
    lookback, source = lookback_over(
        [chunk(0), chunk(1), OTHER], [OTHER, chunk(2)], end=Position(1, 1), first=Position(0, 1)
    )
    assert lookback.sequence_before(b"u") == NO_CHUNKS, "its beginning is not asked for"
    assert (0, 0) not in [(ledger, low) for ledger, low, _ in source.asked]


def test_a_lookback_ledger_that_has_gone() -> None:
    """Only where the message's first chunk is not found is it missed."""
    source = MemoryEntries(PARTITION, {4: [chunk(0), chunk(0, uuid="v")]})
    lookback = Lookback(source, PARTITION, end=Position(4, 2), first=Position(3, 5))
    assert positions(lookback.sequence_before(b"v")) == [(4, 1, 0)]
    with pytest.raises(LedgerGoneError, match="ledger 3 of a/b/c has left Pulsar; a message may"):
        lookback.sequence_before(b"w")


def test_what_is_known_is_not_looked_for() -> None:
    known = ChunkSequence([Chunk(0, 0, 0, 3, 1, 0)])
    lookback, source = lookback_over([chunk(0), chunk(1)], end=Position(0, 1), known={b"u": known})
    assert lookback.sequence_before(b"u") == known
    assert source.asked == []


def test_seen_from_an_earlier_position() -> None:
    ledger = [chunk(0), chunk(1), chunk(2), chunk(0), chunk(1)]
    lookback, source = lookback_over(ledger, end=Position(0, 5))
    assert positions(lookback.before(Position(0, 4)).sequence_before(b"u")) == [(0, 3, 0)]
    asked = list(source.asked)
    assert positions(lookback.before(Position(0, 2)).sequence_before(b"u")) == [
        (0, 0, 0),
        (0, 1, 1),
    ]
    assert positions(lookback.sequence_before(b"u")) == [(0, 3, 0), (0, 4, 1)]
    assert source.asked == asked


def test_messages_that_are_not_complete() -> None:
    lookback, _ = lookback_over(
        [chunk(0), chunk(0, uuid="v"), chunk(1), chunk(1, uuid="v")],
        [chunk(2), chunk(0, 2, "w"), chunk(2, uuid="x"), OTHER],
        end=Position(1, 3),
        first=Position(0, 0),
    )
    found = lookback.incomplete()
    assert {uuid: positions(chunks) for uuid, chunks in found.items()} == {
        b"v": [(0, 1, 0), (0, 3, 1)],
        b"w": [(1, 1, 0)],
    }


@pytest.mark.parametrize("aborted", [True, False])
def test_chunks_of_aborted_transactions_are_none(aborted: bool) -> None:
    inside = entry(
        b"0", uuid="u", num_chunks_from_msg=3, chunk_id=0, txnid_least_bits=1, txnid_most_bits=2
    )
    lookback, _ = lookback_over([inside], end=Position(0, 1), aborted=aborted)
    assert list(lookback.aborted(0, [(2, 1)])) == ([(2, 1)] if aborted else [])
    assert positions(lookback.sequence_before(b"u")) == ([] if aborted else [(0, 0, 0)])


def test_one_entry_and_errors_of_the_source() -> None:
    lookback, _ = lookback_over([OTHER, chunk(0)], end=Position(0, 1))
    (block,) = lookback.pick(0, [1])
    assert block.arena.tobytes() == chunk(0)
    silent = MemoryEntries(PARTITION, {0: [OTHER]}, silent=True)
    with pytest.raises(UnavailableError):
        Lookback(silent, PARTITION, end=Position(0, 1)).sequence_before(b"u")


def test_a_broker_that_forgot_a_ledger_cannot_say_that_nothing_was_aborted() -> None:
    kept, dropped = (1, 1), (1, 2)

    class Admin:
        """Lists ledger 4 alone."""

        def aborted_transactions(
            self, partition: Partition, transactions: Collection[TransactionId]
        ) -> set[TransactionId]:
            return {dropped} & set(transactions)

        def ledger_ids(self, partition: Partition) -> set[int]:
            return {4}

    clients: Any = SimpleNamespace(admin=Admin())
    entries = StoredEntries(clients, PARTITION)
    assert entries.aborted(4, [kept, dropped]) == {dropped}
    assert entries.aborted(3, [dropped]) == {dropped}, "what it does know is right"
    with pytest.raises(LedgerGoneError):
        entries.aborted(3, [kept, dropped])


CHUNKS = st.builds(
    chunk, st.integers(0, 3), st.integers(2, 3), st.sampled_from(["u", "v", "w", "x"])
)
LEDGERS = st.lists(st.lists(st.one_of(CHUNKS, st.just(OTHER)), max_size=12), max_size=4)


@given(LEDGERS, st.integers(0, 3), st.integers(0, 12), st.integers(1, 9))
def test_beyond_the_bound_the_log_is_read_forwards(
    ledgers: list[list[bytes]], ledger: int, entry: int, most: int
) -> None:
    """With the same answers, from any position, in any order."""
    uuids, ends = (b"u", b"v", b"w", b"x"), [Position(ledger, entry), Position(0, 3)]

    def answers() -> list[Any]:
        whole, _ = lookback_over(*ledgers, end=ends[0])
        asked = [whole.before(end) for end in (ends[1], ends[0], ends[1]) if end <= ends[0]]
        found: list[Any] = [one.sequence_before(uuid) for one in asked for uuid in uuids]
        return [*found, *(one.incomplete() for one in asked)]

    with patch("reader.sources.lookback.MOST_PASSED", 1_000):
        expected = answers()
    with patch("reader.sources.lookback.MOST_PASSED", most):
        assert answers() == expected


@pytest.mark.parametrize("strays", [True, False])
def test_what_is_remembered_of_chunks_does_not_grow_with_them(
    monkeypatch: pytest.MonkeyPatch, strays: bool
) -> None:
    """A chunk whose message never began is looked for in the whole log."""
    monkeypatch.setattr("reader.sources.lookback.MOST_PASSED", 64)
    monkeypatch.setattr("reader.sources.base.MOST_ENTRIES", 64)
    monkeypatch.setattr("reader.decode.chunk_sequence.MOST_OPEN", 64)
    monkeypatch.setattr("reader.decode.chunk_sequence.MOST_OPEN_CHUNKS", 64)
    monkeypatch.setattr("reader.decode.chunk_sequence.MOST_ENDED", 64)

    def peak(n: int) -> int:
        ledger = [chunk(int(strays), uuid=f"u{i}") for i in range(n)]
        lookback, _ = lookback_over(ledger, end=Position(0, n))
        tracemalloc.start()
        assert lookback.sequence_before(b"?") == NO_CHUNKS
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(100)  # what is kept once
    # A chunk takes 200 bytes. Python's free lists, which are not counted, may take 30,000 at once.
    assert peak(1_300) - peak(300) < 1_000 * 60
