"""What cannot be stored: one error for the first such value, by its column's path and its row."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.encode.payload import PayloadEncoder
from reader.model.columns import TIMESTAMP
from tests.unit.encode import writing
from tests.unit.payload.cases import Given
from tests.unit.payload.test_types import (
    DURATION,
    FIXED,
    FIXED_DECIMAL,
    FIXED_UUID,
    LINK,
    UUID,
    decimal,
    logical,
    named,
)

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
INTS = {"type": "array", "items": "int"}
MAP = {"type": "map", "values": "int"}
UNION = ["int", "string"]
MEMBERS = pa.struct([("member0", pa.int64()), ("member1", pa.string())])
STRINGS = pa.map_(pa.string(), pa.int64())
NULL = "is NULL, and {} has no null"


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
@pytest.mark.parametrize(
    ("kind", "arrow", "good", "bad", "path", "why"),
    [
        ("int", pa.int64(), 1, None, "f0", NULL.format("int")),
        ("string", pa.string(), "", None, "f0", NULL.format("string")),
        (["int"], pa.int64(), 1, None, "f0", NULL.format("union of int")),
        ("int", pa.int64(), 1, 1 << 31, "f0", "2147483648 is out of the range of int"),
        (["null", "int"], pa.int64(), None, -(1 << 40), "f0",
         "-1099511627776 is out of the range of int"),
        ("float", pa.float64(), 1e38, -1e39, "f0", "-1e+39 is out of the range of float"),
        (ENUM, pa.string(), "B", "C", "f0", "'C' is not a symbol of enum"),
        (FIXED, pa.binary(), b"ab", b"a", "f0", "has 1 bytes, fixed(2) takes 2"),
        (DURATION, pa.binary(), b"x" * 12, b"", "f0", "has 0 bytes, fixed(12) takes 12"),
        (decimal(4, 2), pa.decimal128(9, 2), Decimal("1.00"), Decimal("100.00"), "f0",
         "100.00 is not exact as decimal(4,2)"),
        (decimal(4, 2), pa.decimal128(9, 3), Decimal("1.000"), Decimal("0.001"), "f0",
         "0.001 is not exact as decimal(4,2)"),
        (decimal(40, 2), pa.string(), "1.5", "1.234", "f0",
         "'1.234' is not exact as decimal(40,2)"),
        (decimal(40, 2), pa.string(), "-7", "1e3", "f0", "'1e3' is not exact as decimal(40,2)"),
        (decimal(40, 2), pa.string(), "+7.0", "1" + "0" * 38, "f0",
         f"'1{'0' * 38}' is not exact as decimal(40,2)"),
        (FIXED_DECIMAL | {"size": 2}, pa.decimal128(9, 2), Decimal("327.67"), Decimal("327.68"),
         "f0", "327.68 has more than 2 bytes"),
        (FIXED_UUID, pa.string(), UUID, UUID[:-1], "f0", f"'{UUID[:-1]}' is not a UUID"),
        (FIXED_UUID, pa.string(), UUID.upper(), UUID[:-1] + "g", "f0",
         f"'{UUID[:-1]}g' is not a UUID"),
        (logical("int", "time-millis"), pa.int64(), 5, 1 << 50, "f0",
         "1125899906842624 is out of the range of time-millis"),
        (logical("int", "time-millis"), pa.int64(), 86_399_999_999, 86_400_000_000, "f0",
         "86400000000 is out of the range of time-millis"),
        (logical("int", "time-millis"), pa.int32(), 0, -1, "f0",
         "-1 is out of the range of time-millis"),
        (logical("long", "time-micros"), pa.int64(), 86_399_999_999, 86_400_000_000, "f0",
         "86400000000 is out of the range of time-micros"),
        (logical("long", "time-micros"), pa.int64(), 0, -1, "f0",
         "-1 is out of the range of time-micros"),
        (logical("string", "uuid"), pa.string(), UUID.upper(), "", "f0", "'' is not a UUID"),
        (logical("string", "uuid"), pa.string(), UUID, UUID.replace("-", ""), "f0",
         f"'{UUID.replace('-', '')}' is not a UUID"),
        (logical("long", "timestamp-nanos"), TIMESTAMP, 0, 1 << 62, "f0",
         "4611686018427387904 is out of the range of timestamp-nanos"),
        (INTS, pa.list_(pa.int64()), [1], [2, None], "f0[]", NULL.format("int")),
        (INTS, pa.large_list(pa.int64()), [], [2, 1 << 31], "f0[]",
         "2147483648 is out of the range of int"),
        (MAP, STRINGS, [("a", 1)], [("b", None)], "f0[]", NULL.format("int")),
        (MAP, STRINGS, [("a", 1), ("b", 2)], [("a", 1), ("b", 1), ("a", 2)], "f0",
         "has the same key twice"),
        (UNION, MEMBERS, {"member0": 1}, {"member0": 1, "member1": ""}, "f0",
         "has member0 and member1 set, and a union takes one"),
        (UNION, MEMBERS, {"member0": 1}, None, "f0",
         "has no member set, and the union has no null"),
        (["null", *UNION], MEMBERS, None, {"member0": 1 << 31}, "f0.member0",
         "2147483648 is out of the range of int"),
        (named({"a": INTS}, "S"), pa.struct([("A", pa.list_(pa.int64()))]), {"A": [1, 2, 3]},
         {"A": [1 << 31]}, "f0.a[]", "2147483648 is out of the range of int"),
        ("null", pa.string(), None, "x", "f0", "is not NULL, which is all that its field takes"),
        (named({}, "S"), pa.string(), "{}", "", "f0",
         "is not JSON text of its field: Expecting value: line 1 column 1 (char 0)"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_stored(
    format_: str, kind: Any, arrow: pa.DataType, good: Any, bad: Any, path: str, why: str
) -> None:
    given = writing.avro(kind) if format_ == "AVRO" else writing.as_json(writing.avro(kind))
    assert len(writing.encode(given, writing.column([good, good], arrow)).values) == 2
    stored = pa.int64() if pa.types.is_timestamp(arrow) else arrow
    # More than one, and in a slice: the row is that of the batch.
    array = pa.array([bad, good, good, bad, good, bad], stored).cast(arrow).slice(1)
    error = writing.refused(given, pa.record_batch([array], names=["F0"]))
    assert error.message == f"column {path!r}, row 2 of the batch: {why}"
    assert error.context == {"row": 2, "column": path}
    assert error.hint


@pytest.mark.parametrize("default", [1e999, 10**400, (1 << 53) + 1])
def test_a_default_that_no_double_holds(default: Any) -> None:
    given = writing.avro("double", "int", default=default)
    error = writing.refused_columns(given, pa.schema([("f1", pa.int64())]))
    assert "is not of its type: double is a number that a double holds" in error.message


@pytest.mark.parametrize(
    ("kind", "arrow", "error"),
    [
        ("int", pa.string(), "string, which its field of type int cannot store"),
        ("string", pa.int64(), "bigint, which its field of type string cannot store"),
        ("bytes", pa.string(), "string, which its field of type bytes cannot store"),
        (ENUM, pa.int32(), "int, which its field of type enum cannot store"),
        (["null", "boolean"], pa.int64(), "bigint, which its field of type boolean cannot store"),
        (logical("int", "date"), TIMESTAMP, "timestamp, which its field of type date cannot"),
        (logical("long", "timestamp-micros"), pa.int64(), "bigint, which its field of type time"),
        (logical("long", "timestamp-micros"), pa.timestamp("us"), "timestamp_ntz, which its "),
        (logical("long", "timestamp-micros"), pa.timestamp("ms", "UTC"), "timestamp, which its "),
        (logical("long", "local-timestamp-micros"), TIMESTAMP, "timestamp, which its field of "),
        (logical("long", "time-micros"), pa.float64(), "double, which its field of type time-mi"),
        (INTS, pa.int64(), "bigint, which its field of type array cannot store"),
        (MAP, pa.map_(pa.int64(), pa.int64()), "map<bigint, bigint>, which its field of type map"),
        (named({"a": "int"}, "S"), pa.list_(pa.int32()), "array<int>, which its field of type rec"),
        (UNION, pa.string(), "string, which its field of type union cannot store"),
        (decimal(9, 2), pa.string(), "string, which its field of type decimal(9,2) cannot store"),
        (decimal(9, 2), pa.float64(), "double, which its field of type decimal(9,2) cannot store"),
        (decimal(40, 2), pa.float64(), "double, which its field of type decimal(40,2) cannot"),
        (LINK, pa.struct([("next", pa.int64()), ("v", pa.int64())]), ""),
        ("long", pa.month_day_nano_interval(), "month_day_nano_interval, which its field of "),
    ],
)  # fmt: skip
def test_a_column_of_another_type(kind: Any, arrow: pa.DataType, error: str) -> None:
    for given in (writing.avro(kind), writing.as_json(writing.avro(kind))):
        found = writing.refused_columns(given, pa.schema([("f0", arrow)]))
        assert found.message.startswith(f"column 'f0' is {error}" if error else "column 'f0.next' ")
        assert found.hint is not None and found.hint.startswith("cast the column to ")
        assert "row" not in found.context


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
def test_names(format_: str) -> None:
    definition = json.dumps(named({"a": "int", "__key": "int", "b c": ["null", "int"]}))
    given: Given = (format_, definition)
    batch = pa.record_batch([pa.array([1]), pa.array([2]), pa.array([3])],
                            names=["B_C", "A", "__KEY_2"])  # fmt: skip
    assert writing.again(given, batch) == [{"a": 2, "__key_2": 3, "b_c": 1}]
    columns = pa.schema([("a", pa.int64()), ("nope", pa.list_(pa.int64()))])
    error = writing.refused_columns(given, columns)
    assert error.message == "column 'nope' (array<bigint>) is not in the schema of the topic"
    assert error.hint == "its fields are a, __key_2, b_c"
    error = writing.refused_columns(given, pa.schema([("a", pa.int64()), ("A", pa.int64())]))
    assert error.message == "column 'A' is there twice: names do not differ by case alone"
    error = writing.refused_columns(given, pa.schema([("__key_2", pa.int64())]))
    assert error.message == (
        "field 'a' of the schema (int) has no column, and neither a default nor null"
    )
    assert error.hint == "add a column 'a'"


INNER = named({"x": ["null", "int"], "y": "int"}, "S")
INNER["fields"][1]["default"] = 9
DEFAULTS: list[tuple[Any, Any, Any]] = [
    # type, default, what the column then shows
    ("int", 7, 7),
    ("string", "ä", "ä"),
    ("bytes", "\u00ffa", b"\xffa"),
    ("double", 1, 1.0),
    (["null", "int"], None, None),
    (["int", "null"], 5, 5),
    (["int", "null"], None, None),
    (["string", "int"], "s", {"member0": "s", "member1": None}),
    (INTS, [1, 2], [1, 2]),
    (MAP, {}, []),
    (ENUM, "B", "B"),
    (FIXED, "hi", b"hi"),
    (INNER, {"x": None}, {"x": None, "y": 9}),
]


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
@pytest.mark.parametrize(("kind", "default", "shown"), DEFAULTS)
def test_a_field_without_a_column_is_its_default(
    format_: str, kind: Any, default: Any, shown: Any
) -> None:
    definition = named({"f0": kind, "f1": "int"})
    definition["fields"][0]["default"] = default
    batch = writing.column([1, 2], pa.int32(), "f1")
    rows = writing.again((format_, json.dumps(definition)), batch)
    assert rows == [{"f0": shown, "f1": 1}, {"f0": shown, "f1": 2}]


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
def test_a_field_without_a_column_is_null(format_: str) -> None:
    inner = ["null", named({"x": ["int", "null"], "y": "int"}, "S")]
    given: Given = (
        format_,
        json.dumps(named({"f0": ["string", "null"], "f1": inner, "n": "null"})),
    )
    batch = writing.column([{"y": 1}, None], pa.struct([("y", pa.int64())]), "f1")
    assert writing.again(given, batch) == [
        {"f0": None, "f1": {"x": None, "y": 1}, "n": None},
        {"f0": None, "f1": None, "n": None},
    ]


def test_a_default_of_another_type() -> None:
    given = writing.avro("int", "int", default="x")
    error = writing.refused_columns(given, pa.schema([("f1", pa.int64())]))
    assert error.message == (
        "field 'f0' has no column, and its default \"x\" is not of its type: "
        "int is an integer, not 'x'"
    )


def test_a_column_without_a_type_is_null() -> None:
    batch = pa.record_batch([pa.nulls(2), pa.nulls(2)], names=["f0", "f1"])
    kinds = (["null", named({"a": INTS}, "S")], ["null", "int", "string"])
    assert writing.again(writing.avro(*kinds), batch) == [{"f0": None, "f1": None}] * 2
    error = writing.refused(writing.avro("int", *kinds[1:]), batch)
    assert error.message == "column 'f0', row 0 of the batch: is NULL, and int has no null"


def test_text_that_is_not_utf8() -> None:
    raw = pa.array([b"a", b"\xff", b"\xc3"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    for given in (writing.avro("string"), writing.as_json(writing.avro("string")), ("STRING", "")):
        name = "value" if given[0] == "STRING" else "f0"
        error = writing.refused(given, pa.record_batch([text], names=[name]))
        assert error.message == f"column {name!r}, row 1 of the batch: is not UTF-8"


def test_what_is_not_written_is_not_checked() -> None:
    """Values under NULL: Spark's writer leaves anything there."""
    bad = pa.array([1 << 40, 5, 1 << 40])
    structs = pa.StructArray.from_arrays([bad], ["a"], mask=pa.array([True, False, True]))
    given = writing.avro(["null", named({"a": "int"}, "S")])
    assert writing.again(given, pa.record_batch([structs], names=["f0"])) == [
        {"f0": None}, {"f0": {"a": 5}}, {"f0": None}
    ]  # fmt: skip
    money = pa.array([Decimal("99999.0"), Decimal("1.5"), Decimal("0.5")])
    structs = pa.StructArray.from_arrays([money], ["a"], mask=pa.array([True, False, True]))
    given = writing.avro(["null", named({"a": decimal(4, 2)}, "S")])
    assert writing.again(given, pa.record_batch([structs], names=["f0"])) == [
        {"f0": None}, {"f0": {"a": Decimal("1.50")}}, {"f0": None}
    ]  # fmt: skip
    validity = pa.py_buffer(np.packbits([0, 1, 0], bitorder="little"))
    offsets = pa.py_buffer(np.array([0, 1, 2, 3], np.int32))
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 3, [validity, offsets], 2, 0, [bad])
    given = writing.avro(["null", INTS])
    assert writing.again(given, pa.record_batch([lists], names=["f0"])) == [
        {"f0": None}, {"f0": [5]}, {"f0": None}
    ]  # fmt: skip
    assert writing.payloads(given, pa.record_batch([lists], names=["f0"]).slice(1, 1)) == [
        b"\x02\x02\x0a\0"
    ]


def test_a_key_twice_behind_one_that_is_not_written() -> None:
    """A map that is NULL may have a key twice, and hides none of the next ones."""
    offsets = np.array([0, 2, 4, 6], np.int32)
    given = writing.avro(["null", MAP])
    for keys, row in (("aabcdd", 2), ("aabccd", None)):
        validity = pa.py_buffer(np.packbits([0, 1, 1], bitorder="little"))
        pairs = pa.StructArray.from_arrays(
            [pa.array(list(keys)), pa.array(range(6), pa.int64())],
            fields=[pa.field("key", pa.string(), False), pa.field("value", pa.int64())],
        )
        maps = pa.Array.from_buffers(STRINGS, 3, [validity, pa.py_buffer(offsets)], 1, 0, [pairs])
        batch = pa.record_batch([maps], names=["f0"])
        if row is None:
            assert [one["f0"] for one in writing.again(given, batch)] == [
                None, [("b", 2), ("c", 3)], [("c", 4), ("d", 5)]
            ]  # fmt: skip
        else:
            error = writing.refused(given, batch)
            assert error.message == f"column 'f0', row {row} of the batch: has the same key twice"


def test_an_error_in_any_column_writes_nothing() -> None:
    batch = pa.record_batch([pa.array([1]), pa.array([1 << 40])], names=["f0", "f1"])
    made = PayloadEncoder(writing.info(writing.avro("int", "int")), batch.schema)
    assert writing.refused(writing.avro("int", "int"), batch).context == {"row": 0, "column": "f1"}
    good = pa.record_batch([pa.array([1]), pa.array([1])], names=["f0", "f1"])
    assert made.encode(good).values[0] == b"\2\2"
