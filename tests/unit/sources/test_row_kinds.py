"""What each row is called in ``__kind``, and where the message of a row begins."""

from typing import Any

import pyarrow as pa
import pytest

from reader.model import SchemaInfo
from reader.model.columns import FIRST_CHUNK, METADATA, last_given_up
from reader.model.positions import BEFORE_ALL, Position
from reader.payload import payload_fields
from reader.sources.entry_rows import EntryRows
from reader.sources.row_format import RowFormat
from reader.sources.rows import RowBuilder
from tests.unit.decode.entries import PARTITION, block_of, entry, single
from tests.unit.sources.memory_sources import MemoryEntries
from tests.unit.sources.splits import split

VERSION = bytes(8)
RECORD = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
INLINE = {"key.schema.type": "STRING", "value.schema.type": "STRING", "kv.encoding.type": "INLINE"}


def rows_of(stored: list[bytes], schema: SchemaInfo, *names: str) -> list[dict[str, Any]]:
    fields = payload_fields([schema])
    columns = pa.schema([*fields, *METADATA])
    wanted = pa.schema([columns.field(name) for name in names or columns.names])
    form = RowFormat(fields, (schema,), wanted)
    source = EntryRows(lambda _: MemoryEntries(PARTITION, {7: stored}), form)
    steps = source.read(split(7, 0, len(stored) - 1), 0)
    return [row for one in steps if isinstance(one, pa.RecordBatch) for row in one.to_pylist()]


@pytest.mark.parametrize(
    ("kind", "definition", "payload", "expected"),
    [
        ("JSON", RECORD, b'{"a": 1}', ("message", False)),
        ("JSON", RECORD, b"", ("undecodable", True)),
        ("JSON", RECORD, b'{"a": 1, "b": 2}', ("message", True)),
        ("JSON", RECORD, b'{"a": "x"}', ("message", True)),
        ("JSON", RECORD, b'{"a": ', ("undecodable", True)),
        ("JSON", RECORD, b"[1]", ("undecodable", True)),
        ("JSON", RECORD, b"\xff", ("undecodable", True)),
        ("AVRO", RECORD, b"\x02", ("message", False)),
        ("AVRO", RECORD, b"\xff", ("undecodable", True)),
        ("INT32", "", bytes(4), ("message", False)),
        ("INT32", "", b"one", ("undecodable", True)),
        ("STRING", "", b"\xff", ("undecodable", True)),
        ("EXTERNAL", "", b"x", ("undecodable", True)),
    ],
)
def test_a_payload(kind: str, definition: str, payload: bytes, expected: tuple[str, bool]) -> None:
    """A part that has no column leaves a message; what has no value at all is undecodable."""
    schema = SchemaInfo(0, kind, definition)
    stored = [entry(payload, schema_version=VERSION)]
    [row] = rows_of(stored, schema)
    assert (row["__kind"], row["__error"] is not None) == expected
    assert [one["__kind"] for one in rows_of(stored, schema, "__kind")] == [expected[0]]
    if row["__kind"] == "undecodable":
        assert all(row[name] is None for name in payload_fields([schema]).names)
        assert row["__rescued"] == payload


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"\0\0\0\1k\0\0\0\1v", "message"),
        (b"\0\0\0\1k\0\0\0\1v..", "message"),
        (b"\0\0\0\1k\0\0\0\1\xff", "undecodable"),
        (b"\0\0\0\7k", "undecodable"),
    ],
)
def test_a_key_value(payload: bytes, expected: str) -> None:
    schema = SchemaInfo(0, "KEY_VALUE", '{"key": "", "value": ""}', INLINE)
    [row] = rows_of([entry(payload, schema_version=VERSION)], schema)
    assert row["__kind"] == expected


def test_metadata_that_cannot_be_shown_leaves_a_message() -> None:
    schema = SchemaInfo(0, "BYTES", "")
    [row] = rows_of([entry(b"x", partition_key=b"\xff", schema_version=VERSION)], schema)
    assert (row["__kind"], row["__error"]) == ("message", "key is not UTF-8")
    batch = [entry(single(b"a") + single(b"b"), num_messages_in_batch=2), entry(b"c"), b""]
    kinds = [row["__kind"] for row in rows_of(batch, schema)]
    assert kinds == ["message"] * 3 + ["undecodable"]


def test_chunks() -> None:
    """A message that has all of its chunks, a chunk without a message, and one that is given up."""

    def chunk(uuid: str, number: int, of: int) -> bytes:
        return entry(
            b"%d" % number,
            uuid=uuid,
            chunk_id=number,
            num_chunks_from_msg=of,
            total_chunk_msg_size=of,
        )

    stored = [chunk("A", 0, 2), entry(b"x"), chunk("A", 1, 2), chunk("B", 2, 3), chunk("C", 0, 2)]
    columns = pa.schema([*payload_fields([]), *METADATA])
    builder = RowBuilder(PARTITION, RowFormat(payload_fields([]), (), columns))
    found = []
    for rescued in (False, True):
        decoder = builder.entry_decoder(decryption=None, rescue_incomplete=rescued)
        [batch] = [one for part in decoder.decode(block_of(stored)) for one in builder.build(part)]
        names = "__entryId", "__kind", *FIRST_CHUNK
        found.append([tuple(row[name] for name in names) for row in batch.to_pylist()])
        expected = Position(*found[-1][-1][2:]) if rescued else BEFORE_ALL
        assert last_given_up(batch) == expected
    ledger, first = found[0][1][2:]
    assert found[0][0][1:] == ("message", None, None)
    assert found[0][1] == (first + 2, "message", ledger, first)
    assert [row[1] for row in found[0]] == ["message", "message", "unmatched"]
    assert found[1][-1] == (first + 4, "incomplete", ledger, first + 4)
