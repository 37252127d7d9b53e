"""A Protobuf field whose type changes: each pair of scalar types, with values at their edges.

What the column holds exactly is in the column. Any other value is NULL with a problem, also one
that is not on the wire and means 0, "" or false.
"""

import json
import math
import struct
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from reader.payload import payload_fields
from tests.unit.payload.cases import Given, decode, decoder, rows, versions
from tests.unit.payload.protobuf_cases import message_class, native, proto_file, written

LOST = object()
"""A value that is NULL with a problem."""
ENUM = {"enum E": ["A = 0", "B = 1"]}
_SIGNED_32 = [0, 1, -1, (1 << 31) - 1, -(1 << 31)]
_SIGNED_64 = [*_SIGNED_32, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)]
_UNSIGNED_64 = [0, 1, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, math.inf, math.nan]
VALUES: dict[str, list[Any]] = {
    "int32": _SIGNED_32,
    "sint32": _SIGNED_32,
    "sfixed32": _SIGNED_32,
    "uint32": [0, 1, (1 << 32) - 1],
    "fixed32": [0, 1, (1 << 32) - 1],
    "int64": _SIGNED_64,
    "sint64": _SIGNED_64,
    "sfixed64": _SIGNED_64,
    "uint64": _UNSIGNED_64,
    "fixed64": _UNSIGNED_64,
    "float": _FLOATS,
    "double": [*_FLOATS, 1e300, 5e-324],
    "bool": [False, True],
    "string": ["", "1", "true", "B"],
    "bytes": [b"", b"1", b"\xff"],
    "E": [0, 1],
}
COLUMNS = ("int32", "uint32", "int64", "uint64", "fixed64", "float", "bool", "string", "bytes", "E")
NUMBERS = ("int64", "double", "uint64")


def column_of(kind: str) -> str:
    """Return the type that a column of ``kind`` has: the widest of its family."""
    if kind in ("uint64", "fixed64"):
        return "uint64"
    if kind in ("float", "double"):
        return "double"
    return "int64" if "int" in kind or "fixed" in kind else kind


def in_column(column: str, kind: str, value: Any) -> Any:
    """Return what a column shows of a value: the very value, or LOST."""
    own = column_of(kind)
    if own == "E":
        own, value = "string", "AB"[value]
    column = "string" if column == "E" else column
    if own == column:
        return str(value) if own == "uint64" else value
    if own not in NUMBERS or column not in NUMBERS or not math.isfinite(value):
        return LOST
    if value == 0 and math.copysign(1, value) < 0:
        return LOST
    if column == "double":
        return float(value) if Fraction(float(value)) == value else LOST
    least, limit = (-(1 << 63), 1 << 63) if column == "int64" else (0, 1 << 64)
    if Fraction(value).denominator != 1 or not least <= value < limit:
        return LOST
    return int(value) if column == "int64" else str(int(value))


def field_of(kind: str, syntax: str, label: str) -> Any:
    needed = ENUM if kind == "E" else {}
    return proto_file({**needed, "message M": [f"{label}{kind} f = 1"]}, syntax=syntax)


def plain(kind: str) -> Given:
    """PROTOBUF of Java: no more than number, type and label of the field."""
    name = "ENUM" if kind == "E" else kind.upper()
    info = [{"number": 1, "name": "f", "type": name, "label": "LABEL_OPTIONAL"}]
    return "PROTOBUF", "{}", {"__PARSING_INFO__": json.dumps(info)}


def same(found: Any, expected: Any) -> bool:
    """Compare values, and of doubles their bits, but for those of NaN."""
    if isinstance(expected, float) and isinstance(found, float):
        both = math.isnan(found) and math.isnan(expected)
        return both or struct.pack("<d", found) == struct.pack("<d", expected)
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("form", ["proto3", "proto3 optional", "proto2", "PROTOBUF"])
def test_each_pair_of_types(form: str, column: str) -> None:
    syntax, label = ("proto3", "") if form == "proto3" else ("proto3", "optional ")
    if form in ("proto2", "PROTOBUF"):
        syntax, label = "proto2", "optional "
    kinds = list(VALUES)
    files = {kind: field_of(kind, syntax, label) for kind in kinds}
    schemas = [
        plain(kind) if form == "PROTOBUF" else native(files[kind]) for kind in (column, *kinds)
    ]
    payloads, numbers, expected = list[bytes](), list[int](), list[Any]()
    for number, kind in enumerate(kinds, 1):
        message = message_class(files[kind])
        own = "int32" if form == "PROTOBUF" and kind == "E" else kind
        target = column_of("int32" if form == "PROTOBUF" and column == "E" else column)
        for value in VALUES[kind]:
            payloads.append(written(message, f=value))
            expected.append(in_column(target, own, value))
        payloads.append(written(message))
        expected.append(None if label else in_column(target, own, VALUES[kind][0]))
        numbers += [number] * (len(VALUES[kind]) + 1)
    columns = payload_fields(versions(*schemas))
    assert columns.names == ["f"]
    found = decode(decoder(*schemas), payloads, numbers)
    shown = [row["f"] for row in rows(found)]
    wanted = [None if value is LOST else value for value in expected]
    different = [
        (kinds[number - 1], payload, one, other)
        for number, payload, one, other in zip(numbers, payloads, shown, wanted, strict=True)
        if not same(one, other)
    ]
    assert not different
    assert list(found.problems) == [i for i, value in enumerate(expected) if value is LOST]


def test_items_and_members() -> None:
    """The same inside lists, maps and messages, and in a table's column of another format."""
    inner = ["int64 a = 1", "uint64 b = 2"]
    fields = ["repeated int64 l = 1", "map<string, uint64> m = 2", "I i = 3", "uint64 d = 4"]
    first = proto_file({"message I": inner, "message M": fields})
    other = ["uint64 a = 1", "int64 b = 2"]
    fields = ["repeated uint64 l = 1", "map<string, int64> m = 2", "I i = 3", "double d = 4"]
    later = proto_file({"message I": other, "message M": fields})
    message = message_class(later)
    payloads = [
        written(message, l=[5, (1 << 63) - 1], m={"k": 7}, i={"a": 1, "b": 2}, d=3.0),
        written(message, l=[5, 1 << 63], m={"k": -7}, i={"a": 1 << 63, "b": -2}, d=0.5),
    ]
    found = decode(decoder(native(first), native(later)), payloads, 1)
    assert rows(found) == [
        {"l": [5, (1 << 63) - 1], "m": [("k", "7")], "i": {"a": 1, "b": "2"}, "d": "3"},
        {"l": [5, None], "m": [("k", None)], "i": {"a": None, "b": None}, "d": None},
    ]
    assert list(found.problems) == [1]
    table = pa.schema([("d", pa.decimal128(20, 0)), ("i", pa.float64())])
    file = proto_file({"message M": ["uint64 d = 1", "uint64 i = 2"]})
    payload = written(message_class(file), d=(1 << 64) - 1, i=1 << 63)
    found = decode(decoder(native(file), fields=table), [payload])
    assert [int(row["d"]) for row in rows(found)] == [(1 << 64) - 1]
    assert [row["i"] for row in rows(found)] == [2.0**63]
    assert not found.problems


def test_lists_and_messages_that_become_something_else() -> None:
    """A list that is not on the wire is empty, which no column of another kind shows."""
    first = proto_file({"message M": ["int32 l = 1", "repeated int32 s = 2", "string i = 3"]})
    later = proto_file({"message I": ["int32 a = 1"], "message M": [
        "repeated int32 l = 1", "int32 s = 2", "I i = 3"]})  # fmt: skip
    message = message_class(later)
    found = decode(decoder(native(first), native(later)), [written(message)], 1)
    assert rows(found) == [{"l": None, "s": None, "i": None}]
    assert found.problems == {
        0: "field 'l' is list<item: int64> in schema version 1, its column is int64"
    }


def test_a_field_without_a_column_and_a_value() -> None:
    """No column is NULL in its place, so a field that is not on the wire loses nothing."""
    file = proto_file({"message M": ["int32 a = 1", "int32 b = 2"]})
    message = message_class(file)
    made = decoder(native(file), fields=pa.schema([("a", pa.int64())]))
    found = decode(made, [written(message, a=1), written(message, a=1, b=2)])
    assert rows(found) == [{"a": 1}, {"a": 1}]
    assert found.problems == {1: "field 'b' of schema version 0 has no column"}
