"""Primitive schemas, plain bytes, and KeyValue: both halves, INLINE and SEPARATED."""

import json
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from reader.encode.payload import PayloadEncoder
from reader.errors import ConfigurationError, UnsupportedError
from reader.model.columns import TIMESTAMP
from tests.unit.encode import writing
from tests.unit.payload.cases import key_value

DAY_NS = 86_400_000_000_000
MOST, LEAST = (1 << 63) - 1, -(1 << 63)
NTZ = pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "arrow", "value", "payload"),
    [
        ("BYTES", pa.binary(), b"\xff\0", b"\xff\0"),
        ("BYTES", pa.large_binary(), b"", b""),
        ("BYTES", pa.string(), "ä", "ä".encode()),
        ("NONE", pa.binary(), b"x", b"x"),
        ("STRING", pa.string(), "ä\0€😀", "ä\0€😀".encode()),
        ("STRING", pa.large_string(), "", b""),
        ("BOOLEAN", pa.bool_(), True, b"\1"),
        ("BOOLEAN", pa.bool_(), False, b"\0"),
        ("INT8", pa.int64(), -128, b"\x80"),
        ("INT16", pa.int16(), -32767, b"\x80\x01"),
        ("INT32", pa.int64(), -2, b"\xff\xff\xff\xfe"),
        ("INT64", pa.int8(), -1, b"\xff" * 8),
        ("INT64", pa.int64(), LEAST, struct.pack(">q", LEAST)),
        ("FLOAT", pa.float64(), 0.1, struct.pack(">f", 0.1)),
        ("FLOAT", pa.float32(), 1.5, struct.pack(">f", 1.5)),
        ("DOUBLE", pa.float64(), -0.1, struct.pack(">d", -0.1)),
        ("DOUBLE", pa.int32(), 7, struct.pack(">d", 7)),
        ("DATE", TIMESTAMP, -5001, struct.pack(">q", -6)),
        ("DATE", pa.date32(), 2, struct.pack(">q", 2 * 86_400_000)),
        ("TIMESTAMP", TIMESTAMP, 1_700_000_000_123_999, struct.pack(">q", 1_700_000_000_123)),
        ("TIME", pa.int64(), 3_600_000_000, struct.pack(">q", 3_600_000)),
        ("INSTANT", pa.int64(), 2_000_000_003, struct.pack(">qi", 2, 3)),
        ("INSTANT", pa.int64(), -1_000_000_001, struct.pack(">qi", -2, 999_999_999)),
        ("INSTANT", TIMESTAMP, -1, struct.pack(">qi", -1, 999_999_000)),
        ("LOCAL_DATE", pa.date32(), -1, struct.pack(">q", -1)),
        ("LOCAL_TIME", pa.int64(), DAY_NS - 1, struct.pack(">q", DAY_NS - 1)),
        ("LOCAL_DATE_TIME", pa.int64(), 5 - DAY_NS, struct.pack(">qq", -1, 5)),
        ("LOCAL_DATE_TIME", NTZ, -1, struct.pack(">qq", -1, DAY_NS - 1000)),
    ],
)
def test_primitives(kind: str, arrow: pa.DataType, value: Any, payload: bytes) -> None:
    stored = pa.int64() if pa.types.is_timestamp(arrow) else arrow
    stored = pa.int32() if pa.types.is_date32(arrow) else stored
    array = pa.array([value, None, value, value], stored).cast(arrow).slice(1)
    batch = pa.record_batch([array], names=["VALUE"])
    assert writing.payloads((kind, ""), batch) == [None, payload, payload]


@pytest.mark.parametrize(
    ("kind", "arrow", "value", "why"),
    [
        ("INT8", pa.int64(), 128, "128 is out of the range of INT8"),
        ("INT16", pa.int32(), -32769, "-32769 is out of the range of INT16"),
        ("INT32", pa.int64(), 1 << 31, "2147483648 is out of the range of INT32"),
        ("FLOAT", pa.float64(), 1e39, "1e+39 is out of the range of FLOAT"),
        ("FLOAT", pa.int64(), (1 << 24) + 1, "16777217 is not exact as FLOAT"),
        ("DOUBLE", pa.int64(), MOST, f"{MOST} is not exact as DOUBLE"),
        ("DOUBLE", pa.int64(), -(1 << 53) - 1, f"{-(1 << 53) - 1} is not exact as DOUBLE"),
        ("LOCAL_TIME", pa.int64(), DAY_NS, f"{DAY_NS} is out of the range of LOCAL_TIME"),
        ("LOCAL_TIME", pa.int64(), -1, "-1 is out of the range of LOCAL_TIME"),
        ("INSTANT", pa.int64(), MOST, f"{MOST} is out of the range of INSTANT"),
        ("LOCAL_DATE_TIME", pa.int64(), LEAST, f"{LEAST} is out of the range of LOCAL_DATE_TIME"),
        ("INSTANT", TIMESTAMP, MOST, f"{MOST} is out of the range of INSTANT"),
    ],
)
def test_a_value_that_does_not_fit(kind: str, arrow: pa.DataType, value: int, why: str) -> None:
    stored = pa.int64() if pa.types.is_timestamp(arrow) else arrow
    good = pa.array([None, 1, 1], stored).cast(arrow)
    array = pa.concat_arrays([good, pa.array([value, value], stored).cast(arrow)])
    error = writing.refused((kind, ""), pa.record_batch([array], names=["value"]))
    assert error.message == f"column 'value', row 3 of the batch: {why}"
    assert error.context == {"row": 3, "column": "value"}
    assert error.hint


@pytest.mark.parametrize(
    ("kind", "arrow", "error"),
    [
        ("INT32", pa.string(), "is string, which its field of type INT32 cannot store"),
        ("STRING", pa.int64(), "is bigint, which its field of type STRING cannot store"),
        ("STRING", pa.binary(), "is binary, which its field of type STRING cannot store"),
        ("BOOLEAN", pa.int8(), "is tinyint, which its field of type BOOLEAN cannot store"),
        ("INT8", pa.bool_(), "is boolean, which its field of type INT8 cannot store"),
        ("INT64", pa.float64(), "is double, which its field of type INT64 cannot store"),
        ("BYTES", pa.list_(pa.int8()), "is array<tinyint>, which its field of type BYTES cannot"),
        ("TIMESTAMP", NTZ, "is timestamp_ntz, which its field of type TIMESTAMP cannot store"),
        ("LOCAL_DATE", TIMESTAMP, "is timestamp, which its field of type LOCAL_DATE cannot store"),
        ("DOUBLE", pa.duration("us"), "is duration[us], which its field of type DOUBLE cannot"),
        ("DOUBLE", pa.decimal128(3, 1), "is decimal(3,1), which its field of type DOUBLE cannot"),
    ],
)
def test_a_column_of_another_type(kind: str, arrow: pa.DataType, error: str) -> None:
    found = writing.refused_columns((kind, ""), pa.schema([("value", arrow)]))
    assert found.message.startswith(f"column 'value' {error}")
    assert found.hint is not None and found.hint.startswith("cast the column to ")
    assert found.context == {"column": "value"}


def test_without_a_schema_it_is_bytes() -> None:
    batch = writing.column([b"a", None, b""], pa.binary(), "value")
    found = PayloadEncoder(None, batch.schema).encode(batch)
    assert [found.values[i] for i in range(3)] == [b"a", None, b""]
    assert found.keys is None


@pytest.mark.parametrize(
    ("names", "error"),
    [
        (["value", "VALUE"], "column 'VALUE' is there twice: names do not differ by case alone"),
        (["value", "x"], "column 'x' (string) is not in the schema of the topic"),
        ([], "field 'value' of the schema (STRING) has no column, and neither a default nor null"),
    ],
)
def test_columns_that_are_not_its_own(names: list[str], error: str) -> None:
    columns = pa.schema([pa.field(name, pa.string()) for name in names])
    assert writing.refused_columns(("STRING", ""), columns).message == error


@pytest.mark.parametrize("kind", ["AUTO_CONSUME", "AUTO_PUBLISH", "EXTERNAL", "PROTOBUF", "AVRO"])
def test_schemas_that_cannot_be_written(kind: str) -> None:
    with pytest.raises(UnsupportedError) as found:
        PayloadEncoder(writing.info((kind, "")), pa.schema([("value", pa.binary())]))
    assert found.value.message.startswith("messages of ")
    assert found.value.hint
    parsing = {"__PARSING_INFO__": '[{"number":1,"name":"a","type":"INT32","label":"x"}]'}
    with pytest.raises(UnsupportedError, match="PROTOBUF schema cannot be written"):
        PayloadEncoder(writing.info(("PROTOBUF", "{}", parsing)), pa.schema([("a", pa.int64())]))


ID = json.loads(writing.avro("int")[1])
BOTH = pa.schema([("key", pa.struct([("f0", pa.int32())])), ("value", pa.string())])


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
def test_key_value_inline(format_: str) -> None:
    given = key_value((format_, json.dumps(ID)), ("STRING", ""))
    batch = pa.RecordBatch.from_pylist(
        [{"key": {"f0": 1}, "value": "x"}, {"key": None, "value": ""}, {"key": {"f0": -1}}, {}],
        BOTH,
    )
    one, other = (b"\x02", b"\x01") if format_ == "AVRO" else (b'{"f0":1}', b'{"f0":-1}')
    null = b"\xff" * 4
    found = writing.encode(given, batch)
    assert found.keys is None
    assert [found.values[i] for i in range(4)] == [
        struct.pack(">i", len(one)) + one + b"\0\0\0\1x",
        null + b"\0\0\0\0",
        struct.pack(">i", len(other)) + other + null,
        null + null,
    ]
    assert writing.again(given, batch) == batch.to_pylist()
    assert writing.again(given, batch.slice(2, 1)) == batch.slice(2, 1).to_pylist()


def test_key_value_separated() -> None:
    given = key_value(("AVRO", json.dumps(ID)), ("INT32", ""), "SEPARATED")
    columns = pa.schema([("Value", pa.int64()), ("KEY", pa.struct([("F0", pa.int64())]))])
    rows = [{"KEY": {"F0": 1}, "Value": 5}, {"KEY": None, "Value": None}]
    found = writing.encode(given, pa.RecordBatch.from_pylist(rows, columns))
    assert found.keys is not None
    assert [found.keys[i] for i in range(2)] == [b"\2", None]
    assert [found.values[i] for i in range(2)] == [b"\0\0\0\5", None]


def test_errors_in_a_half_of_a_key_value() -> None:
    given = key_value(("AVRO", json.dumps(ID)), ("AVRO", writing.avro(["null", "long"])[1]))
    rows = [{"key": None}, {"key": {"f0": 1}}, {"key": {"f0": None}}]
    columns = pa.schema([BOTH.field("key")])
    error = writing.refused(given, pa.RecordBatch.from_pylist(rows, columns))
    assert error.message == "column 'key.f0', row 2 of the batch: is NULL, and int has no null"
    assert error.hint == "give each row a value, or let the schema allow null"
    other = pa.schema([("key", pa.struct([("f0", pa.int32()), ("g", pa.string())]))])
    assert writing.refused_columns(given, other).message == (
        "column 'key.g' (string) is not in the schema of the topic"
    )
    assert writing.refused_columns(given, pa.schema([("value", pa.string())])).message == (
        "column 'value' is string, which its field of type record R cannot store"
    )


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
def test_what_is_no_record_is_the_column_value(format_: str) -> None:
    array = (format_, '{"type":"array","items":"int"}')
    lists = writing.column([[1, 2], [], None], pa.list_(pa.int64()), "value")
    assert writing.payloads(array, lists) == (
        [b"\x04\x02\x04\0", b"\0", None] if format_ == "AVRO" else [b"[1,2]", b"[]", None]
    )
    optional = (format_, '["null","int"]')
    numbers = writing.column([7, None], pa.int32(), "value")
    assert writing.payloads(optional, numbers) == (
        [b"\x02\x0e", b"\0"] if format_ == "AVRO" else [b"7", b"null"]
    )


def test_a_decimal_needs_no_particular_type() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}
    for values, kind in (
        ([Decimal("1.5"), Decimal("-99.9")], pa.decimal128(38, 1)),
        ([Decimal("1.500"), Decimal("-99.900")], pa.decimal128(10, 3)),
    ):
        assert writing.again(writing.avro(decimal), writing.column(values, kind)) == [
            {"f0": Decimal("1.50")}, {"f0": Decimal("-99.90")}
        ]  # fmt: skip
    assert writing.again(writing.avro(decimal), writing.column([7, -1], pa.int8())) == [
        {"f0": Decimal("7.00")}, {"f0": Decimal("-1.00")}
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"row 0 of the batch: 1.001 is not exact as "):
        writing.encode(
            writing.avro(decimal), writing.column([Decimal("1.001")], pa.decimal128(10, 3))
        )
