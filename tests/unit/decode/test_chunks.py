"""Chunked messages and transactions, entry by entry, against rules written out by hand."""

import gc
import tracemalloc
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader import decode
from reader.errors import UnavailableError, UnsupportedError
from reader.model import EntryBlock, TransactionId
from tests.support.examples import examples
from tests.unit.decode.entries import PARTITION, block_of, broker, compress, entry, rows_of


def chunk(payload: bytes, number: int, of: int, uuid: str = "p-1", **values: Any) -> bytes:
    return entry(payload, uuid=uuid, num_chunks_from_msg=of, chunk_id=number, **values)


class Log:
    """Entries of one ledger, read from ``first`` on; what lies before is asked for."""

    def __init__(self, entries: Sequence[bytes], aborted: Sequence[tuple[int, int]] = ()) -> None:
        self.block = block_of(entries)
        self.entries = list(entries)
        self.ends = set(aborted)
        self.asked: list[Any] = []
        self.picked: list[Sequence[int]] = []
        self.sequences: dict[bytes, decode.ChunkSequence] = {}

    def between(self, first: int, last: int) -> EntryBlock:
        block = block_of(self.entries[first:last])
        return EntryBlock(
            block.ledger_id, block.entry_ids + first, block.offsets, block.lengths, block.arena
        )

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        self.asked += transactions
        return self.ends & set(transactions)

    def sequence_before(self, uuid: bytes) -> decode.ChunkSequence:
        self.asked.append(uuid)
        before = self.between(0, self.first)
        found = decode.NO_CHUNKS
        for name, one in decode.chunk_headers(before, decode.Transactions(self.aborted)):
            if name == uuid:
                found = decode.add_chunk(found, one)[0]
        return found

    def pick(self, ledger: int, numbers: Sequence[int]) -> Iterator[EntryBlock]:
        self.picked.append(numbers)
        yield EntryBlock.of(ledger, {number: self.entries[number - 10] for number in numbers})

    def rows(self, first: int = 0, last: int | None = None, cut: int = 1 << 30) -> list[Any]:
        """Rows of entries first..last - 1, given in blocks of ``cut`` entries."""
        self.first = first
        last = len(self.entries) if last is None else last
        decoder = decode.EntryDecoder(PARTITION)
        decoder.begin(self)
        found = []
        self.sequences = {}
        for at in range(first, last, cut):
            for messages in decoder.decode(self.between(at, min(at + cut, last))):
                found += rows_of(messages)
            self.sequences |= decoder.take_chunk_changes()
        assert decoder.incomplete_chunks == {
            uuid: chunks for uuid, chunks in self.sequences.items() if decode.is_incomplete(chunks)
        }
        return found


def seen(rows: Sequence[Any]) -> list[tuple[int, bytes | None, str | None]]:
    return [(r["__entryId"] - 10, r["payload"], r["rescued"] and r["rescued"][1]) for r in rows]


def test_a_message_belongs_to_its_last_chunk() -> None:
    log = Log(
        [
            entry(b"before"),
            chunk(b"he", 0, 3, sequence_id=5, head=broker(index=1)),
            chunk(b"X", 0, 2, uuid="other"),
            chunk(b"ll", 1, 3, sequence_id=5),
            entry(b"between"),
            chunk(b"o", 2, 3, sequence_id=5, partition_key="k", head=broker(3, index=9)),
            chunk(b"Y", 1, 2, uuid="other"),
        ]
    )
    rows = log.rows()
    assert seen(rows) == [
        (0, b"before", None),
        (4, b"between", None),
        (5, b"hello", None),
        (6, b"XY", None),
    ]
    assert rows[2]["__index"] == 9
    assert rows[2]["__key"] == "k"
    assert rows[2]["__sequenceId"] == 5
    assert rows[2]["__batchIndex"] == -1
    assert log.asked == []


@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_it_was_compressed_before_it_was_cut(kind: int) -> None:
    whole = b"abcdefgh" * 500
    packed = compress(kind, whole)
    pieces = [packed[:10], packed[10:30], packed[30:]]
    entries = [
        entry(
            piece,
            uuid="u",
            num_chunks_from_msg=3,
            chunk_id=n,
            again={"compression": kind, "uncompressed_size": len(whole)},
        )
        for n, piece in enumerate(pieces)
    ]
    assert seen(Log(entries).rows()) == [(2, whole, None)]


@pytest.mark.parametrize(
    ("order", "rows"),
    [
        pytest.param([0, 1, 2], [(2, b"012", None)], id="in order"),
        pytest.param([0, 1], [], id="not complete yet"),
        pytest.param([0, 0, 1, 2], [(3, b"012", None)], id="first chunk sent again"),
        pytest.param([0, 1, 0, 1, 2], [(4, b"012", None)], id="sent again from the start"),
        pytest.param([0, 1, 1, 2], [(3, b"012", None)], id="a chunk sent again"),
        pytest.param([0, 1, 2, 2], [(2, b"012", None)], id="the last sent again: a resend"),
        pytest.param(
            [0, 1, 2, 0, 1, 2], [(2, b"012", None), (5, b"012", None)], id="the whole sent again"
        ),
        pytest.param([0, 2], [(1, None, "02")], id="one is missing"),
        pytest.param([0, 2, 1], [(1, None, "02"), (2, None, "1")], id="in the wrong order"),
        pytest.param([1, 2], [(0, None, "1"), (1, None, "2")], id="the first is missing"),
        pytest.param(
            [0, 2, 0, 1, 2], [(1, None, "02"), (4, b"012", None)], id="broken, then again"
        ),
    ],
)
@pytest.mark.parametrize("first", range(7))
def test_sequences(order: list[int], rows: list[Any], first: int) -> None:
    """The same rows, wherever a split begins."""
    log = Log([chunk(b"%d" % n, n, 3) for n in order])
    found = []
    for row in log.rows(min(first, len(order))):
        reason = row["rescued"]
        if reason:
            assert reason[1] == "chunked message with chunks missing"
            raw = reason[0]
            assert raw.startswith(log.entries[row["__entryId"] - 10][:30])
            reason = raw[len(log.entries[row["__entryId"] - 10]) - 1 :].decode()
        found.append((row["__entryId"] - 10, row["payload"], reason))
    assert found == [row for row in rows if row[0] >= first]


def test_impossible_chunks_are_rescued_by_themselves() -> None:
    rows = Log(
        [
            chunk(b"a", 3, 3),
            chunk(b"b", -1, 3),
            entry(b"c", num_chunks_from_msg=2),
            chunk(b"d", 0, 2, total_chunk_msg_size=2**31 - 1),
            chunk(b"e", 0, 2, encryption_keys=b"\x0a\x01k\x12\x01v"),
            chunk(b"f", 0, 1),
            chunk(b"g", 0, 0),
        ]
    ).rows()
    assert [r["rescued"] and r["rescued"][1] for r in rows] == [
        "chunked message with chunks missing",
        "chunked message with chunks missing",
        "chunked message with chunks missing",
        "uncompressed size above 512 MiB",
        "encrypted",
        None,
        None,
    ]


def test_giving_up() -> None:
    log = Log([chunk(b"ab", 0, 3), entry(b"x"), chunk(b"cd", 1, 3)])
    log.first = 2
    decoder = decode.EntryDecoder(PARTITION)
    decoder.begin(log, rescue_incomplete=True)
    (messages,) = decoder.decode(log.between(2, 3))
    (row,) = rows_of(messages)
    raw, reason = row["rescued"]
    assert raw.endswith(b"abcd")
    assert reason == "chunked message that was never completed"
    assert row["payload"] is None


_CHUNKS = st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from([3, 4]))


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(st.lists(_CHUNKS | st.none(), max_size=14), st.integers(0, 14), st.integers(1, 5))
def test_any_cut_gives_the_same_rows(
    made: list[tuple[str, int, int] | None], first: int, cut: int
) -> None:
    log = Log(
        [
            entry(b"plain%d" % i) if one is None else chunk(b"%d" % i, one[1], one[2], uuid=one[0])
            for i, one in enumerate(made)
        ]
    )
    whole = log.rows()
    sequences = log.sequences
    first = min(first, len(made))
    assert log.rows(0, first, cut) + log.rows(first, None, cut) == whole
    # What both halves say of the sequences, the later over the earlier, is what the whole says.
    log.rows(0, first)
    merged = log.sequences
    log.rows(first)
    merged |= log.sequences
    assert {u: s for u, s in merged.items() if decode.is_incomplete(s)} == {
        u: s for u, s in sequences.items() if decode.is_incomplete(s)
    }
    covered = {r["__entryId"] for r in whole}
    for i, one in enumerate(made):
        assert one is not None or i + 10 in covered


def test_add_chunk_of_another_number_of_chunks() -> None:
    begun = decode.ChunkSequence([decode.Chunk(1, 0, 0, 3, 1, 0)])
    sequence, outcome, chunks = decode.add_chunk(begun, decode.Chunk(1, 1, 1, 4, 1, 0))
    assert (sequence, outcome, len(chunks)) == (decode.NO_CHUNKS, "stray", 2)


def test_aborted_transactions_are_no_rows() -> None:
    def in_txn(payload: bytes, number: int, **values: Any) -> bytes:
        return entry(payload, txnid_most_bits=1, txnid_least_bits=number, **values)

    log = Log(
        [
            in_txn(b"a", 1),
            in_txn(b"b", 2),
            entry(b"c"),
            in_txn(b"d", 1, num_messages_in_batch=1),
            in_txn(b"", 1, marker_type=21),
            in_txn(b"", 2, marker_type=22),
            in_txn(b"e", 3),
            in_txn(b"f", 4),
            in_txn(b"g", 2**63),
        ],
        aborted=[(1, 2), (1, 4)],
    )
    assert [row["__entryId"] - 10 for row in log.rows()] == [0, 2, 3, 6, 8]
    # Only those without a commit marker among the entries; ids are signed, as the admin REST takes
    # them.
    assert log.asked == [(1, 2), (1, 3), (1, 4), (1, -(2**63))]


def _marked(*markers: int, aborted: bool) -> Log:
    """An entry of a transaction, markers that name it, and another entry of it."""
    of: dict[str, Any] = {"txnid_most_bits": 1, "txnid_least_bits": 7}
    entries = [
        entry(b"a", **of),
        *(entry(b"", marker_type=one, **of) for one in markers),
        entry(b"b", **of),
    ]
    return Log(entries, [(1, 7)] if aborted else [])


@pytest.mark.parametrize("cut", [1, 1 << 30])
@pytest.mark.parametrize("markers", [(22,), (22, 21), (21, 22), (22, 22)])
@pytest.mark.parametrize("aborted", [False, True])
def test_an_abort_marker_is_not_believed(markers: tuple[int, ...], aborted: bool, cut: int) -> None:
    """Whoever may produce can write one, for any transaction."""
    log = _marked(*markers, aborted=aborted)
    assert len(log.rows(cut=cut)) == (0 if aborted else 2)
    assert log.asked == [(1, 7)]


def test_a_commit_marker_saves_the_question() -> None:
    log = _marked(21, aborted=False)
    assert len(log.rows()) == 2
    assert log.asked == []
    # It hides nothing, and what was asked before wins over it.
    log = _marked(21, aborted=True)
    assert log.rows(cut=1) == []
    assert log.asked == [(1, 7)]


def test_a_broker_without_transactions_leaves_markers_to_tell() -> None:
    """Where they were switched off since."""

    def aborted(ledger_id: int, transactions: Collection[TransactionId]) -> list[TransactionId]:
        raise UnsupportedError("the broker has none")

    transactions = decode.Transactions(aborted)
    named: dict[str, Any] = {"txnid_most_bits": 1, "txnid_least_bits": 7}
    block = block_of([chunk(b"a", 0, 2, **named), entry(b"", marker_type=22, **named)])
    assert decode.chunk_headers(block, transactions) == []
    with pytest.raises(UnsupportedError):
        decode.chunk_headers(block_of([chunk(b"a", 0, 2, **named)]), decode.Transactions(aborted))


def test_an_outcome_that_nobody_gave_is_asked_again() -> None:
    calls = []

    def aborted(ledger_id: int, transactions: Collection[TransactionId]) -> list[TransactionId]:
        calls.append((ledger_id, list(transactions)))
        if len(calls) == 1:
            raise UnavailableError("later")
        return [(1, 7)]

    transactions = decode.Transactions(aborted)
    headers = chunk(b"a", 0, 2, txnid_most_bits=1, txnid_least_bits=7)
    with pytest.raises(UnavailableError):
        decode.chunk_headers(block_of([headers]), transactions)
    assert decode.chunk_headers(block_of([headers]), transactions) == []
    assert calls == [(block_of([headers]).ledger_id, [(1, 7)])] * 2


def test_aborted_entries_are_not_counted_outside_of_the_range_either() -> None:
    log = Log([entry(b"a", publish_time=0, txnid_most_bits=0, txnid_least_bits=1), entry(b"b")])
    log.ends = {(0, 1)}
    decoder = decode.EntryDecoder(PARTITION, publish_range=(5, None))
    decoder.begin(log)
    assert [len(m) for m in decoder.decode(log.between(0, 2))] == [1]
    (seen,) = decoder.take_seen()
    assert (seen.messages, seen.low) == (1, 1_700_000_000_123_000)


def test_chunks_of_an_aborted_transaction() -> None:
    values: dict[str, Any] = {"txnid_most_bits": 0, "txnid_least_bits": 7}
    log = Log([chunk(b"a", 0, 2, **values), chunk(b"b", 1, 2, **values), entry(b"x")], [(0, 7)])
    assert seen(log.rows()) == [(2, b"x", None)]
    assert seen(log.rows(1)) == [(2, b"x", None)]


def test_the_arena_of_a_joined_block_is_its_own() -> None:
    log = Log([chunk(b"a" * 10, 0, 2), chunk(b"b" * 10, 1, 2)])
    block = log.between(0, 2)
    before = np.array(block.arena)
    log.first = 0
    decoder = decode.EntryDecoder(PARTITION)
    decoder.begin(log)
    list(decoder.decode(block))
    assert (block.arena == before).all()


def chunk_growth(made: Callable[[int], bytes], count: int) -> int:
    """Return by how many bytes Python's objects grow while a decoder reads ``count`` more entries.

    The decoder has read as many before. Without a collection first, the size depends on when the
    collector last ran: what comes from one of Python's free lists is not counted.
    """
    decoder = decode.EntryDecoder(PARTITION, columns=(), payload=False)
    blocks = [block_of([made(n) for n in range(at, at + 100)]) for at in range(0, 2 * count, 100)]
    sizes = []
    tracemalloc.start()
    try:
        for half in (blocks[: count // 100], blocks[count // 100 :]):
            for block in half:
                for _ in decoder.decode(block):
                    pass
                decoder.take_seen()
                decoder.take_chunk_changes()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return sizes[1] - sizes[0]


@pytest.mark.parametrize("of", [1000, 2])
def test_memory_of_chunks_is_bounded(of: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of messages that are abandoned, and of complete ones."""
    for name in ("MOST_OPEN", "MOST_OPEN_CHUNKS", "MOST_ENDED"):
        monkeypatch.setattr(decode.chunk_sequence, name, 200)

    def made(n: int) -> bytes:
        number = n % 2 if of == 2 else 0
        return chunk(b"", number, of, uuid=f"u{n - number}")

    assert chunk_growth(made, 600) < 600 * 20


def test_a_chunk_that_there_is_no_room_for_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, and messages that have begun go on."""
    monkeypatch.setattr(decode.chunk_sequence, "MOST_OPEN", 2)
    made = [
        (0, "a"),
        (0, "b"),
        (0, "c"),
        (1, "a"),
        (1, "c"),
        (2, "a"),
        (0, "d"),
        (1, "b"),
        (2, "b"),
    ]
    log = Log([chunk(b"%d" % number, number, 3, uuid=uuid) for number, uuid in made])
    stray = "chunked message with chunks missing"
    assert seen(log.rows()) == [
        (2, None, stray),
        (4, None, stray),
        (5, b"012", None),
        (8, b"012", None),
    ]
    assert log.sequences[b"d"]
    monkeypatch.setattr(decode.chunk_sequence, "MOST_OPEN", 9)
    monkeypatch.setattr(decode.chunk_sequence, "MOST_OPEN_CHUNKS", 2)
    rows = Log([chunk(b"%d" % n, n, 4) for n in range(4)]).rows()
    assert seen(rows) == [(2, None, stray), (3, None, stray)]
    assert rows[0]["rescued"][0].endswith(b"012")


@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_chunks_of_earlier_blocks(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept, or read again: all that one block needs is asked for at once."""
    monkeypatch.setattr("reader.decode.chunks.KEPT_BYTES", kept)
    names = ["a0", "b0", "a1", "c0", "b1", "a2", "b2", "c1", "c2"]
    log = Log([chunk(name.encode(), int(name[1:]), 3, uuid=name[0]) for name in names])
    rows = [(5, b"a0a1a2", None), (6, b"b0b1b2", None), (8, b"c0c1c2", None)]
    assert seen(log.rows(cut=5)) == rows
    assert log.picked == ([] if kept else [[10, 11, 12, 13, 14]])
