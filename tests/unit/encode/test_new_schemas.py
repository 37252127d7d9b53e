"""The schema of a new topic: of every type that Spark gives, and what cannot be one."""

import json
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from reader.encode.payload import grown_schema, new_schema
from reader.errors import ConfigurationError
from reader.model.columns import TIMESTAMP
from tests.unit.encode.writing import again, payloads
from tests.unit.payload.cases import Given

EVERYTHING = pa.schema(
    [
        ("b", pa.bool_()),
        ("i1", pa.int8()),
        ("i2", pa.int16()),
        ("i4", pa.int32()),
        ("i8", pa.int64()),
        ("f4", pa.float32()),
        ("f8", pa.float64()),
        ("s", pa.string()),
        ("ls", pa.large_string()),
        ("raw", pa.binary()),
        ("day", pa.date32()),
        ("at", TIMESTAMP),
        ("berlin", pa.timestamp("us", "Europe/Berlin")),
        ("local", pa.timestamp("us")),
        ("money", pa.decimal128(38, 10)),
        ("l", pa.list_(pa.list_(pa.int32()))),
        ("ll", pa.large_list(pa.string())),
        ("m", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
        ("st", pa.struct([("x", pa.struct([("x", pa.string())])), ("void", pa.null())])),
        ("none", pa.null()),
    ]
)
ROW: dict[str, Any] = {
    "b": True, "i1": -128, "i2": 1, "i4": -(1 << 31), "i8": 1 << 62, "f4": 0.5, "f8": 0.1,
    "s": "ä", "ls": "", "raw": b"\xff", "day": 5, "at": 6, "berlin": 7, "local": 8,
    "money": Decimal("1.5"), "l": [[1, None], None, []], "ll": ["a"],
    "m": [("k", {"x": 1}), ("n", None)], "st": {"x": {"x": "y"}, "void": None}, "none": None,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["AVRO", "json"])
def test_every_type(kind: str) -> None:
    made = new_schema(EVERYTHING, kind, name="Order")
    assert (made.version, made.type) == (-1, kind.upper())
    assert made.properties["__alwaysAllowNull"] == "true"
    definition = json.loads(made.definition)
    fastavro.parse_schema(definition)
    assert definition["name"] == "Order"
    assert all(one["default"] is None for one in definition["fields"])
    arrays = []
    for field in EVERYTHING:
        stored = pa.int64() if pa.types.is_timestamp(field.type) else field.type
        stored = pa.int32() if pa.types.is_date32(field.type) else stored
        arrays.append(pa.array([ROW[field.name], None], stored).cast(field.type))
    batch = pa.record_batch(arrays, schema=EVERYTHING)
    given: Given = (made.type, made.definition)
    expected = ROW | {"money": Decimal("1.5000000000")}
    assert again(given, batch) == [expected, dict.fromkeys(ROW)]


@pytest.mark.parametrize(
    ("kind", "arrow", "value", "payload"),
    [
        ("STRING", pa.string(), "a", b"a"),
        ("bytes", pa.binary(), b"a", b"a"),
        ("INT64", pa.int32(), 1, b"\0" * 7 + b"\1"),
        ("INT8", pa.int64(), 1, b"\1"),
        ("LOCAL_DATE", pa.date32(), 1, b"\0" * 7 + b"\1"),
    ],
)
def test_primitives(kind: str, arrow: pa.DataType, value: Any, payload: bytes) -> None:
    columns = pa.schema([("value", arrow)])
    made = new_schema(columns, kind)
    assert (made.type, made.definition, dict(made.properties)) == (kind.upper(), "", {})
    stored = pa.int32() if pa.types.is_date32(arrow) else arrow
    batch = pa.record_batch([pa.array([value], stored).cast(arrow)], schema=columns)
    assert payloads((made.type, ""), batch) == [payload]


@pytest.mark.parametrize("records", ["AVRO", "JSON"])
@pytest.mark.parametrize("encoding", ["INLINE", "separated"])
def test_key_value(records: str, encoding: str) -> None:
    inner = pa.struct([("a", pa.int64())])
    columns = pa.schema([("Value", inner), ("key", pa.string())])
    made = new_schema(columns, "KEY_VALUE", encoding=encoding, records=records)
    assert made.encoding == encoding.upper()
    assert made.properties["value.schema.type"] == records
    assert made.properties["key.schema.type"] == "STRING"
    given: Given = (made.type, made.definition, made.properties)
    rows = [{"Value": {"a": 1}, "key": "k"}, {"Value": None, "key": None}]
    batch = pa.RecordBatch.from_pylist(rows, columns)
    assert again(given, batch) == [
        {"key": "k", "value": {"a": 1}}, {"key": None, "value": None}
    ]  # fmt: skip
    both = new_schema(pa.schema([("key", inner), ("value", inner)]), "KEY_VALUE")
    names = [json.loads(both.definition)[half]["name"] for half in ("key", "value")]
    assert names == ["Message_key", "Message_value"]


VALUE = pa.schema([("value", pa.string())])


@pytest.mark.parametrize(
    ("columns", "kind", "options", "error"),
    [
        (pa.schema([("a b", pa.int64())]), "AVRO", {},
         "'a b' cannot be the name of a field in an Avro schema"),
        (pa.schema([("s", pa.struct([("1", pa.int64())]))]), "JSON", {},
         "'s.1' cannot be the name of a field in an Avro schema"),
        (pa.schema([("a", pa.duration("us"))]), "AVRO", {},
         "column 'a' is duration[us], which no field of a schema can be"),
        (pa.schema([("a", pa.list_(pa.map_(pa.int32(), pa.int32())))]), "AVRO", {},
         "column 'a[]' is map<int, int>, which no field of a schema can be"),
        (pa.schema([("a", pa.struct([]))]), "AVRO", {},
         "column 'a' is struct<>, which no field of a schema can be"),
        (VALUE, "AUTO", {}, "a topic with a schema of type AUTO cannot be made"),
        (VALUE, "PROTOBUF_NATIVE", {},
         "a topic with a schema of type PROTOBUF_NATIVE cannot be made"),
        (VALUE, "INT32", {}, "column 'value' is string, which its field of type INT32 cannot "
         "store"),
        (pa.schema([("a", pa.string())]), "STRING", {},
         "a schema of type STRING takes the column value, not a"),
        (VALUE, "KEY_VALUE", {},
         "a schema of type KEY_VALUE takes the columns key and value, not value"),
        (pa.schema([("key", pa.string()), ("value", TIMESTAMP)]), "KEY_VALUE", {},
         "column 'value' is timestamp, which has no schema of its own"),
        (pa.schema([("key", pa.string()), ("value", pa.string())]), "KEY_VALUE",
         {"encoding": "x"}, "a KeyValue cannot be X"),
        (pa.schema([("key", pa.string()), ("value", pa.struct([("a", pa.int8())]))]), "KEY_VALUE",
         {"records": "x"}, "records cannot be of type X"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_schema(
    columns: pa.Schema, kind: str, options: dict[str, str], error: str
) -> None:
    with pytest.raises(ConfigurationError) as found:
        new_schema(columns, kind, **options)
    assert found.value.message == error
    assert found.value.hint


@pytest.mark.parametrize(
    "name", ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
)
def test_no_record_is_named_as_a_primitive(name: str) -> None:
    """Parsers refuse such a name, or take it for the primitive."""
    columns = pa.schema([(name, pa.struct([("a", pa.int64())]))])
    made = new_schema(columns)
    definition = json.loads(made.definition)
    assert definition["fields"][0]["type"][1]["name"] == f"{name}_2"
    grown = grown_schema(new_schema(pa.schema([("b", pa.int64())])), ["b"], columns)
    assert json.loads(grown.definition)["fields"][1]["type"][1]["name"] == f"{name}_2"
    given: Given = (made.type, made.definition)
    row = {name: {"a": 1}}
    assert again(given, pa.RecordBatch.from_pylist([row], columns)) == [row]


def test_records_of_one_name_are_told_apart() -> None:
    inner = pa.struct([("a", pa.struct([("a", pa.int64())]))])
    made = new_schema(pa.schema([("a", inner), ("Message", inner)]))
    fastavro.parse_schema(json.loads(made.definition))
