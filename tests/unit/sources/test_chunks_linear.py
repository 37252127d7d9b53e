"""What producers make of chunks costs no more than their number: steps are counted, not time."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import reader
from reader.decode import ChunkSequence, EntryDecoder, is_incomplete
from reader.model import EntryBlock, Position
from reader.sources import RowFormat
from reader.sources.base import Delivered
from reader.sources.entry_rows import EntryRows
from reader.sources.lookback import Lookback
from tests.unit.decode.entries import block_of, entry
from tests.unit.sources.memory_sources import MemoryEntries
from tests.unit.sources.splits import PARTITION, split

_OURS = str(Path(reader.__file__).parent)


def steps_of(work: Callable[[], Any]) -> int:
    """How many lines of the reader's run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(_OURS):
            return None
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def chunk(uuid: str, number: int, of: int) -> bytes:
    return entry(b"x", uuid=uuid, num_chunks_from_msg=of, chunk_id=number)


def one_message(n: int) -> list[bytes]:
    return [chunk("u", number, n) for number in range(n)]


def one_without_end(n: int) -> list[bytes]:
    return [chunk("u", number, 2**31 - 1) for number in range(n)]


def many_interleaved(n: int) -> list[bytes]:
    return [chunk(f"u{i}", number, 2) for number in range(2) for i in range(n // 2)]


def strays(n: int) -> list[bytes]:
    return [chunk(f"u{i}", 1, 3) for i in range(n)]


def broken_again_and_again(n: int) -> list[bytes]:
    return [chunk("u", i % 4 if i % 4 < 3 else 9, 2**31 - 1) for i in range(n)]


KINDS = pytest.mark.parametrize(
    "made", [one_message, one_without_end, many_interleaved, strays, broken_again_and_again]
)


def is_linear(steps: Callable[[int], int]) -> bool:
    steps(16)  # what is done once
    least, more = steps(208), steps(832)
    assert least > 208
    return more < 5 * least


@KINDS
def test_decoding(made: Callable[[int], list[bytes]]) -> None:
    def steps(n: int) -> int:
        entries = made(n)
        around = Lookback(MemoryEntries(PARTITION, {42: entries}), PARTITION, end=Position(42, 0))
        decoder = EntryDecoder(PARTITION, columns=("__entryId",), payload=False)
        decoder.begin(around)
        blocks = [
            EntryBlock.of(42, {i: entries[i] for i in range(at, at + 16)}) for at in range(0, n, 16)
        ]
        return steps_of(lambda: [list(decoder.decode(block)) for block in blocks])

    assert is_linear(steps)


@KINDS
def test_looking_back(made: Callable[[int], list[bytes]]) -> None:
    """A split with all that goes on with what is in the ledger before it."""

    def steps(n: int) -> int:
        names = [f"u{i}".encode() for i in range(n // 2)] + [b"u", b"v"]
        entries = MemoryEntries(PARTITION, {0: made(n), 1: []})
        lookback = Lookback(entries, PARTITION, end=Position(1, 0), first=Position(0, 0))
        return steps_of(lambda: [lookback.sequence_before(name) for name in names])

    assert is_linear(steps)


def test_looking_back_from_each_block() -> None:
    """As encrypted entries of a table are read: each block by a decoder of its own."""

    def steps(n: int) -> int:
        entries = MemoryEntries(PARTITION, {0: one_without_end(n)})
        lookback = Lookback(entries, PARTITION, end=Position(1, 0))

        def work() -> None:
            for at in range(n):
                assert len(lookback.before(Position(0, at)).sequence_before(b"u")) == at

        return steps_of(work)

    assert is_linear(steps)


@KINDS
def test_what_a_source_says_of_messages(made: Callable[[int], list[bytes]]) -> None:
    """In all, no more than there are chunks; and at the end, how far each has come."""
    schema = pa.schema([pa.field("__entryId", pa.int64())])
    source = EntryRows(
        lambda some: MemoryEntries(PARTITION, {some[0].ledger_id: made(600)}, each=8),
        RowFormat(pa.schema([]), (), schema),
    )
    said: list[Delivered] = [
        step for step in source.read(split(5, 0, 599), 0) if isinstance(step, Delivered)
    ]
    assert len(said) == 75
    assert sum(len(one.chunks) for one in said) <= 600
    merged: dict[bytes, ChunkSequence] = {}
    for one in said:
        merged.update(one.chunks)
    decoder = EntryDecoder(PARTITION, columns=("__entryId",), payload=False)
    list(decoder.decode(block_of(made(600))))
    assert {
        uuid: chunks for uuid, chunks in merged.items() if is_incomplete(chunks)
    }.keys() == decoder.incomplete_chunks.keys()
    for uuid, chunks in decoder.incomplete_chunks.items():
        assert len(merged[uuid]) == len(chunks)


def reads(messages: int, *, each: int, kept: int, first: int = 0) -> int:
    """Ranges that are asked for to read messages of 4 chunks, one after the other."""
    entries = [
        entry(b"%d" % number * 100, uuid=f"u{n}", num_chunks_from_msg=4, chunk_id=number)
        for n in range(messages)
        for number in range(4)
    ]
    source = MemoryEntries(PARTITION, {5: entries}, each=each)
    schema = pa.schema([pa.field("__entryId", pa.int64())])
    form = RowFormat(pa.schema([]), (), schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("reader.decode.chunks.KEPT_BYTES", kept)
        steps = EntryRows(lambda some: source, form).read(split(5, first, len(entries) - 1), first)
        batches = [step for step in steps if isinstance(step, pa.RecordBatch)]
    ids = [number for batch in batches for number in batch[0].to_pylist()]
    assert ids == [n for n in range(3, len(entries), 4) if n >= first]
    return len(source.asked)


def test_chunks_that_were_just_passed_are_not_read_again() -> None:
    """From a broker a read takes a second, whatever it gives."""
    assert reads(50, each=3, kept=1 << 20) == 1


def test_chunks_that_are_read_again_are_read_together() -> None:
    """Of many messages that end in one block: those that began before what is read."""
    few, many = reads(10, each=2, kept=0), reads(20, each=2, kept=0)
    assert many - few <= 10
    assert reads(100, each=400, kept=0) == 1
