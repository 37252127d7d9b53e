"""Primitive schemas and plain bytes, and topics whose versions are of several types."""

import struct
from typing import Any

import pyarrow as pa
import pytest

from reader.model.columns import TIMESTAMP
from reader.payload import payload_fields
from tests.unit.payload.cases import decode, decoder, rows, versions

DAY_NS = 86_400_000_000_000
MOST, LEAST = (1 << 63) - 1, -(1 << 63)
RECORD = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
VALUED = '{"type":"record","name":"R","fields":[{"name":"value","type":"int"}]}'


@pytest.mark.parametrize(
    ("kind", "arrow", "payload", "column"),
    [
        ("BYTES", pa.binary(), b"\xff\0", b"\xff\0"),
        ("NONE", pa.binary(), b"", b""),
        ("STRING", pa.string(), "ä\0€😀".encode(), "ä\0€😀"),
        ("STRING", pa.string(), b"", ""),
        ("BOOLEAN", pa.bool_(), b"\1", True),
        ("BOOLEAN", pa.bool_(), b"\0", False),
        ("INT8", pa.int64(), b"\x80", -128),
        ("INT16", pa.int64(), b"\x80\x01", -32767),
        ("INT32", pa.int64(), b"\xff\xff\xff\xfe", -2),
        ("INT64", pa.int64(), struct.pack(">q", LEAST), LEAST),
        ("FLOAT", pa.float64(), struct.pack(">f", 1.5), 1.5),
        ("DOUBLE", pa.float64(), struct.pack(">d", -0.1), -0.1),
        ("DATE", TIMESTAMP, struct.pack(">q", -5), -5000),
        ("TIMESTAMP", TIMESTAMP, struct.pack(">q", 1_700_000_000_123), 1_700_000_000_123_000),
        ("TIME", pa.int64(), struct.pack(">q", 3_600_000), 3_600_000_000),
        ("INSTANT", pa.int64(), struct.pack(">qi", 2, 3), 2_000_000_003),
        ("INSTANT", pa.int64(), struct.pack(">qi", -2, 999_999_999), -1_000_000_001),
        ("LOCAL_DATE", pa.date32(), struct.pack(">q", -1), -1),
        ("LOCAL_TIME", pa.int64(), struct.pack(">q", DAY_NS - 1), DAY_NS - 1),
        ("LOCAL_DATE_TIME", pa.int64(), struct.pack(">qq", -1, 5), 5 - DAY_NS),
    ],
)
def test_primitives(kind: str, arrow: pa.DataType, payload: bytes, column: Any) -> None:
    assert payload_fields(versions((kind, ""))) == pa.schema([("value", arrow)])
    found = decode(decoder((kind, "")), [None, payload, payload])
    assert rows(found) == [{"value": None}, {"value": column}, {"value": column}]
    assert not found.problems


@pytest.mark.parametrize(
    ("kind", "payload", "problem"),
    [
        ("STRING", b"a\xff", "not UTF-8"),
        ("STRING", b"\xed\xa0\x80", "not UTF-8"),
        ("BOOLEAN", b"", "BOOLEAN takes 1 bytes, not 0"),
        ("BOOLEAN", b"\2", "value out of range for BOOLEAN"),
        ("INT8", b"ab", "INT8 takes 1 bytes, not 2"),
        ("INT32", b"abc", "INT32 takes 4 bytes, not 3"),
        ("INT64", b"123456789", "INT64 takes 8 bytes, not 9"),
        ("DATE", struct.pack(">q", MOST), "value out of range for DATE"),
        ("TIMESTAMP", struct.pack(">q", LEAST), "value out of range for TIMESTAMP"),
        ("INSTANT", struct.pack(">qi", 10**10, 0), "value out of range for INSTANT"),
        ("INSTANT", struct.pack(">qi", 0, 10**9), "value out of range for INSTANT"),
        ("INSTANT", struct.pack(">qi", 0, -1), "value out of range for INSTANT"),
        ("LOCAL_DATE", struct.pack(">q", 1 << 31), "value out of range for LOCAL_DATE"),
        ("LOCAL_TIME", struct.pack(">q", DAY_NS), "value out of range for LOCAL_TIME"),
        ("LOCAL_DATE_TIME", struct.pack(">qq", MOST, 0), "value out of range for LOCAL_DATE_TIME"),
        ("LOCAL_DATE_TIME", struct.pack(">qq", 0, -1), "value out of range for LOCAL_DATE_TIME"),
    ],
)
def test_what_is_no_such_value(kind: str, payload: bytes, problem: str) -> None:
    found = decode(decoder((kind, "")), [payload, None])
    assert rows(found) == [{"value": None}, {"value": None}]
    assert found.problems == {0: problem}


def test_no_schemas_at_all() -> None:
    assert payload_fields([]) == pa.schema([("value", pa.binary())])
    found = decode(decoder(), [b"x", None, b"", b"y"], [-1, -1, -1, 3])
    assert [row["value"] for row in rows(found)] == [b"x", None, b"", None]
    assert found.problems == {3: "schema version 3 is not in the registry"}


@pytest.mark.parametrize(
    ("schemas", "payload", "column", "problem"),
    [
        ([("BYTES", "")], b"x", {"value": b"x"}, None),
        ([("STRING", "")], b"x", {"value": "x"}, None),
        ([("JSON", RECORD)], b'{"a":1}', {"a": 1}, None),
        ([("JSON", RECORD), ("JSON", VALUED)], b'{"value":1}', {"a": None, "value": 1}, None),
        ([("JSON", RECORD), ("BYTES", "")], b"x", {"a": None, "value": b"x"}, None),
        ([("AVRO", RECORD), ("NONE", "")], b"x", {"a": None, "value": b"x"}, None),
        # There has never been another version, and the payload is wholly a value of it.
        ([("AVRO", RECORD)], b"\2", {"a": 1}, None),
        ([("AVRO", RECORD)], b"\2\2", {"a": None},
         "malformed Avro at the end: bytes follow the datum"),
        ([("INT32", "")], b"\0\0\0\1", {"value": 1}, None),
        ([("AVRO", RECORD), ("AVRO", RECORD)], b"\2", {"a": None},
         "the message has no schema version"),
        ([("JSON", RECORD), ("AVRO", RECORD)], b"{}", {"a": None},
         "the message has no schema version"),
        ([("STRING", ""), ("BYTES", "")], b"x", {"value": None, "value_2": b"x"}, None),
    ],
)  # fmt: skip
def test_messages_without_a_version(
    schemas: list[tuple[str, str]], payload: bytes, column: Any, problem: str | None
) -> None:
    found = decode(decoder(*schemas), [payload, None], -1)
    assert rows(found) == [column, dict.fromkeys(column)]
    assert found.problems == ({} if problem is None else {0: problem})


def test_a_topic_of_every_type() -> None:
    schemas = [("BYTES", ""), ("AVRO", VALUED), ("JSON", RECORD), ("AUTO", ""), ("STRING", "")]
    fields = payload_fields(versions(*schemas))
    assert fields == pa.schema(
        [
            ("value", pa.binary()), ("value_2", pa.int64()), ("a", pa.int64()),
            ("value_3", pa.string()),
        ]
    )  # fmt: skip
    made = decoder(*schemas)
    payloads = [b"\2", b'{"a":5}', b"raw", b"kv", b"text", b"\4", None, b'{"a":6}', b"\1"]
    found = decode(made, payloads, [1, 2, 0, 3, 4, 1, 1, 2, -1])
    none = {"value": None, "value_2": None, "a": None, "value_3": None}
    assert rows(found) == [
        none | {"value_2": 1},
        none | {"a": 5},
        none | {"value": b"raw"},
        none,
        none | {"value_3": "text"},
        none | {"value_2": 2},
        none,
        none | {"a": 6},
        none | {"value": b"\1"},
    ]
    assert found.problems == {3: "schema type AUTO is not supported"}
    some = decode(decoder(*schemas, wanted=["a"]), payloads, [1, 2, 0, 3, 4, 1, 1, 2, -1])
    assert some.problems == found.problems
    assert some.arrays["a"].equals(found.arrays["a"])
    assert list(some.arrays) == ["a"]


def test_numbers_of_any_width_share_a_column() -> None:
    made = decoder(("INT8", ""), ("INT64", ""))
    found = decode(made, [b"\1", struct.pack(">q", MOST)], [0, 1])
    assert [row["value"] for row in rows(found)] == [1, MOST]
    assert not found.problems
