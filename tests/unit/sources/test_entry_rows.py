"""Splits of a partition are read as one, and mean what each means alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from reader.errors import UnavailableError
from reader.model import Position, SchemaInfo, Split
from reader.payload import payload_fields, remember
from reader.plan import LearnedTimes
from reader.sources import entry_rows
from reader.sources.base import Delivered
from reader.sources.entry_rows import EntryRows
from reader.sources.row_format import RowFormat
from tests.unit.decode.entries import PARTITION, entry, single
from tests.unit.payload.cases import avro_bytes, versions
from tests.unit.payload.remembered.test_lives import AB, BA
from tests.unit.sources.memory_sources import MemoryEntries
from tests.unit.sources.splits import split as split_of

COLUMNS = pa.schema(
    [
        pa.field("__ledgerId", pa.int64()),
        pa.field("__entryId", pa.int64()),
        pa.field("__batchIndex", pa.int32()),
        pa.field("value", pa.binary()),
    ]
)
FORMAT = RowFormat(payload_fields([]), (), COLUMNS)


def ledger(number: int, size: int = 3) -> list[bytes]:
    time = 1_000 * number
    batch = entry(single(b"%d" % number) * 2, num_messages_in_batch=2, publish_time=time)
    return [batch, *(entry(b"%d" % number, publish_time=time + n) for n in range(1, size))]


def chunk(number: int, text: bytes = b"part") -> bytes:
    return entry(text, uuid="u", num_chunks_from_msg=2, chunk_id=number, total_chunk_msg_size=8)


def split(number: int, last: int, first: int = 0, lookback: int | None = None) -> Split:
    found = replace(split_of(number, first, last), partition=PARTITION)
    return replace(found, lookback=None if lookback is None else Position(lookback, 0))


def rows_of(
    found: dict[int, list[bytes]],
    splits: Sequence[Split],
    learned: list[tuple[Split, LearnedTimes]] | None = None,
    **options: Any,
) -> list[tuple[int, int, int, bytes]]:
    source = EntryRows(
        lambda _: MemoryEntries(PARTITION, found, **options),
        FORMAT,
        learn=None if learned is None else learned.extend,
    )
    rows: list[tuple[int, int, int, bytes]] = []
    for _, step in source.read_all(splits):
        if not isinstance(step, Delivered):
            rows += [tuple(row.values()) for row in step.to_pylist()]
    return rows


def test_small_ledgers_come_in_common_batches() -> None:
    found = {number: ledger(number) for number in range(1, 40)}
    splits = [split(number, 2) for number in found]
    steps = list(EntryRows(lambda _: MemoryEntries(PARTITION, found), FORMAT).read_all(splits))
    batches = [step for _, step in steps if isinstance(step, pa.RecordBatch)]
    assert len(batches) == 1
    assert batches[0].num_rows == 39 * 4
    alone = [row for one in splits for row in rows_of(found, [one])]
    assert rows_of(found, splits) == alone
    assert steps[-1] == (38, Delivered(2))


@pytest.mark.parametrize("most", [1, 2, 5])
def test_what_was_seen_is_each_splits_own(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_rows, "PACK_BLOCKS", most)
    found = {number: ledger(number, 9) for number in (1, 2, 3)}
    splits = [split(1, 8), split(2, 3), split(2, 8, first=4), replace(split(3, 8), state="open")]
    learned: list[tuple[Split, LearnedTimes]] = []
    rows_of(found, splits, learned, each=2)
    assert [one for one, _ in learned] == splits[:3], "an open ledger is not learned"
    assert [one for _, one in learned] == [
        LearnedTimes(3, 1, 0, 8, 10, 1_000_000, 1_008_000),
        LearnedTimes(3, 2, 0, 3, 5, 2_000_000, 2_003_000),
        LearnedTimes(3, 2, 4, 8, 5, 2_004_000, 2_008_000),
    ]


def test_an_error_comes_after_all_that_was_read_before_it() -> None:
    found = {1: ledger(1), 2: ledger(2, 9), 3: ledger(3)}
    splits = [split(1, 2), split(2, 8), split(3, 2)]
    source = EntryRows(lambda _: MemoryEntries(PARTITION, found, each=2, fails_at=5), FORMAT)
    rows = 0
    delivered = []
    with pytest.raises(UnavailableError):
        for number, step in source.read_all(splits):
            if isinstance(step, Delivered):
                delivered.append((number, step.entry))
            else:
                rows += step.num_rows
    assert delivered[-1] == (1, 3)
    assert rows == 4 + 5


def test_a_message_whose_chunks_lie_in_two_of_the_splits() -> None:
    """Each split finds what lies before it by itself, also where the one before was read by it."""
    found = {1: [*ledger(1), chunk(0, b"one ")], 2: ledger(2), 3: [chunk(1, b"two!"), *ledger(3)]}
    splits = [split(number, len(entries) - 1, lookback=1) for number, entries in found.items()]
    for some in (splits, splits[::2], splits[2:], splits[1:]):
        rows = rows_of(found, some)
        assert [row[3] for row in rows if row[:2] == (3, 0)] == [b"one two!"]
        assert rows == [row for one in some for row in rows_of(found, [one])]


def test_a_chunk_that_is_not_read_does_not_belong_to_what_was_read_before() -> None:
    """Between the splits lies the message's beginning anew: the ledger was pruned."""
    found = {1: [chunk(0, b"old ")], 2: [chunk(0, b"new ")], 3: [chunk(1, b"end!")]}
    splits = [split(1, 0, lookback=1), split(3, 0, lookback=1)]
    assert [row[3] for row in rows_of(found, splits)] == [b"new end!"]


def test_a_message_is_not_older_than_its_own_ledger() -> None:
    """Of several ledgers that are decoded together, each message by when its own was opened."""
    then, now = (
        replace(versions(("AVRO", definition))[0], timestamp=time)
        for definition, time in ((AB, 0), (BA, 150_000))
    )
    schemas = remember((then,), (now,))
    columns = pa.schema([*COLUMNS.remove(3), *payload_fields(schemas)])
    form = RowFormat(payload_fields(schemas), schemas, columns)
    first, second = ({"a": 1, "b": 2}, AB), ({"a": 3, "b": 4}, BA)
    found = {
        number: [entry(avro_bytes(schema, row), publish_time=time, schema_version=bytes(8))]
        for number, (row, schema), time in ((1, first, 100_000), (2, second, 0))
    }
    opened = {1: 90_000, 2: 200_000}  # the clock of ledger 2's producer stands at 0
    splits = [replace(split(number, 0), opened_at=opened[number]) for number in found]
    source = EntryRows(lambda _: MemoryEntries(PARTITION, found), form)
    [batch] = [one for _, one in source.read_all(splits) if isinstance(one, pa.RecordBatch)]
    assert batch.select(["a", "b"]).to_pylist() == [first[0], second[0]]


@pytest.mark.parametrize("compression", [0, 99])
def test_the_bytes_of_each_payload_that_cannot_be_read_are_kept(compression: int) -> None:
    """A number of another length; an entry in a compression that nobody knows is kept whole."""
    schema = SchemaInfo(0, "INT32", "")
    whole = entry(b"seven", compression=compression, schema_version=bytes(8))
    stored = [
        entry(b"one", schema_version=bytes(8)),
        entry(bytes((0, 0, 0, 1)), schema_version=bytes(8)),
        whole,
        entry(b"three", schema_version=bytes(8)),
    ]
    columns = pa.schema([("value", pa.int32()), ("__rescued", pa.binary())])
    form = RowFormat(payload_fields([schema]), (schema,), columns)
    source = EntryRows(lambda _: MemoryEntries(PARTITION, {7: stored}), form)
    [batch] = [one for one in source.read(split(7, 3), 0) if isinstance(one, pa.RecordBatch)]
    assert batch.column("value").to_pylist() == [None, 1, None, None]
    kept = [b"one", None, whole if compression else b"seven", b"three"]
    assert batch.column("__rescued").to_pylist() == kept


def test_a_larger_expanded_bytes_reads_what_compresses_very_well() -> None:
    """As a log of 48 MiB that ZSTD makes 5 kB of: the payload's bound rises with the entry's."""
    schema = SchemaInfo(0, "STRING", "")
    text = b"GET /health 200\n" * (3 << 20)
    raw = entry(text, compression=3, checksum=False, schema_version=bytes(8))
    columns = pa.schema([("value", pa.string()), ("__error", pa.string())])
    shown = []
    for expanded_bytes in (32 << 20, 64 << 20):
        form = RowFormat(payload_fields([schema]), (schema,), columns, expanded_bytes)
        source = EntryRows(lambda _: MemoryEntries(PARTITION, {7: [raw]}), form)
        batch = next(
            step for step in source.read(split(7, 0), 0) if isinstance(step, pa.RecordBatch)
        )
        value, error = (batch.column(name)[0] for name in columns.names)
        shown.append((None if not value.is_valid else value.as_buffer().size, error.as_py()))
    why = "uncompressed size above pulsar.expanded_bytes, and 64 times what is stored"
    assert shown == [(None, why), (48 << 20, None)]
