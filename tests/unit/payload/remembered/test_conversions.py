"""A value that its column holds exactly is in the column, whatever schema version wrote it.

All others are NULL with a problem. Each case is read as AVRO and JSON, as a column, as a half of a
KeyValue, inside lists, and in a column that a table has already.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.payload import payload_fields
from tests.unit.payload import cases
from tests.unit.payload.protobuf_cases import message_class, native, proto_file, written

LOST = object()
"""A value that is NULL with a problem."""


def decimal(precision: int, scale: int, size: int = 0) -> dict[str, Any]:
    kind: dict[str, Any] = {"type": "bytes"}
    if size:
        kind = {"type": "fixed", "name": f"F{size}", "size": size}
    return {**kind, "logicalType": "decimal", "precision": precision, "scale": scale}


def record(kind: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "a", "type": kind}]}


PAIR = record("int", "P")
FIRST, SECOND, THIRD = (
    {"type": "record", "name": name, "fields": [{"name": field, "type": "int"}]}
    for name, field in (("First", "id"), ("Second", "x"), ("Third", "y"))
)
GROWN = FIRST | {"fields": [{"name": name, "type": "int"} for name in ("id", "n")]}
MOVED = SECOND | {"namespace": "b"}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED"]}
SIZE = {"type": "enum", "name": "Size", "symbols": ["L"]}
D = Decimal

# The type that the column has, the type of a later version, its values and what the column shows.
CASES: dict[str, tuple[Any, Any, list[tuple[Any, Any]]]] = {
    "more digits": (decimal(10, 2), decimal(12, 2), [
        (D("12.34"), D("12.34")), (D("-0.01"), D("-0.01")), (D("99999999.99"), D("99999999.99")),
        (D("1234567890.12"), LOST)]),
    "fewer digits": (decimal(12, 2), decimal(4, 2), [(D("12.34"), D("12.34"))]),
    "a larger scale": (decimal(10, 2), decimal(10, 4), [
        (D("1.2300"), D("1.23")), (D("-5.1000"), D("-5.10")), (D("1.2345"), LOST),
        (D("0.0000"), D("0.00"))]),
    "a smaller scale": (decimal(10, 4), decimal(10, 2), [
        (D("1.23"), D("1.2300")), (D("999999.99"), D("999999.9900")), (D("-1000000.00"), LOST)]),
    "as wide as there is": (decimal(38, 0), decimal(38, 38), [
        (D("0." + "9" * 38), LOST), (D("0." + "0" * 38), D(0))]),
    "to all digits": (decimal(38, 38), decimal(38, 0), [(D(0), D("0." + "0" * 38)), (D(1), LOST)]),
    "wide to narrow": (decimal(5, 1), decimal(60, 3), [
        (D("12.300"), D("12.3")), (D("1" * 50 + ".000"), LOST)]),
    "narrow to wide": (decimal(60, 3), decimal(5, 1), [(D("12.3"), "12.3")]),
    "fixed": (decimal(10, 2), decimal(12, 2, 16), [
        (D("-12.34"), D("-12.34")), (D("1234567890.12"), LOST)]),
    "integer in a decimal": (decimal(5, 2), "long", [
        (123, D("123.00")), (-999, D("-999.00")), (1000, LOST), (1 << 62, LOST)]),
    "decimal in an integer": ("long", decimal(30, 2), [
        (D("123.00"), 123), (D("-9223372036854775808.00"), -(1 << 63)), (D("1.50"), LOST),
        (D("9223372036854775808.00"), LOST)]),
    "long in a double": ("double", "long", [
        (1 << 53, float(1 << 53)), ((1 << 53) + 1, LOST), (1 << 62, float(1 << 62)),
        (-(1 << 63), -float(1 << 63))]),
    "int in a double": ("float", "int", [(-3, -3.0)]),
    "double in an integer": ("int", "double", [(3.0, 3), (0.5, LOST), (-(2.0**63), -(1 << 63))]),
    "a union with the type": ("string", ["null", "string", "long"], [
        ("c", "c"), (7, LOST), (None, None)]),
    "a union with another number": (["null", "double"], ["null", "string", "long"], [
        (3, 3.0), ((1 << 53) + 1, LOST), ("x", LOST)]),
    "a union with more branches": (["null", "string", "long"], [
        "null", "string", "long", "boolean"], [
        ("x", {"member0": "x", "member1": None, "member2": None}),
        (True, {"member0": None, "member1": None, "member2": True})]),
    "a union in another order": (["long", "string"], ["string", "null", "long"], [
        ("x", {"member0": None, "member1": "x"}), (5, {"member0": 5, "member1": None}),
        (None, None)]),
    "a union with a branch in front": (["null", "string", "int"], [
        "null", "boolean", "string", "int"], [
        (True, {"member0": None, "member1": None, "member2": True}),
        ("x", {"member0": "x", "member1": None, "member2": None}),
        (5, {"member0": None, "member1": 5, "member2": None})]),
    "a union of records in another order": (["null", FIRST, SECOND], ["null", SECOND, FIRST], [
        ({"id": 1}, {"member0": {"id": 1}, "member1": None}),
        ({"x": 2}, {"member0": None, "member1": {"x": 2}})]),
    "a union of records with one in front": (["null", FIRST], ["string", SECOND, FIRST], [
        ({"id": 1}, {"id": 1}), ({"x": 2}, LOST)]),
    "a union with one record more": ([FIRST, SECOND], ["null", THIRD, FIRST, SECOND], [
        ({"id": 1}, {"member0": {"id": 1}, "member1": None, "member2": None}),
        ({"x": 2}, {"member0": None, "member1": {"x": 2}, "member2": None}),
        ({"y": 3}, {"member0": None, "member1": None, "member2": {"y": 3}})]),
    "the second record alone": ([FIRST, SECOND], ["null", SECOND], [
        ({"x": 2}, {"member0": None, "member1": {"x": 2}})]),
    "a record in another namespace": ([FIRST, SECOND], ["null", MOVED], [
        ({"x": 2}, {"member0": None, "member1": {"x": 2}})]),
    "a union with another enum": ([COLOUR, "int"], [SIZE, "int"], [
        ("L", {"member0": None, "member1": None, "member2": "L"})]),
    "a union with fewer branches": (["long", "string", "boolean"], ["null", "string"], [
        ("x", {"member0": None, "member1": "x", "member2": None}), (None, None)]),
    "a union with a record": (PAIR, ["null", PAIR, "string"], [({"a": 1}, {"a": 1}), ("x", LOST)]),
    "a union with another kind of number": (["string", "long"], ["string", "double"], [
        (2.5, {"member0": None, "member1": None, "member2": 2.5}),
        (2.0, {"member0": None, "member1": None, "member2": 2.0})]),
    "another number alone": (["string", "long"], decimal(10, 2), [
        (D("2.00"), {"member0": None, "member1": 2})]),
    "a union with a record that has grown": (FIRST, ["null", GROWN, "string"], [
        ({"id": 1, "n": 2}, {"id": 1, "n": 2}), ("x", LOST)]),
    "a record of a union alone, grown": ([FIRST, SECOND], ["null", GROWN], [
        ({"id": 1, "n": 2}, {"member0": {"id": 1, "n": 2}, "member1": None})]),
    "a record alone that the union has not": ([FIRST, SECOND], THIRD, [
        ({"y": 3}, {"member0": None, "member1": None, "member2": {"y": 3}})]),
    "a record under JSON text": ({"type": "record", "name": "P", "fields": []}, PAIR, [
        ({"a": 1}, '{"a":1}')]),
    "text": ("string", "long", [(1, LOST)]),
    "number under text of a decimal": (decimal(60, 3), "long", [(1, LOST)]),
    "another meaning": ("long", {"type": "long", "logicalType": "timestamp-micros"}, [(1, LOST)]),
}  # fmt: skip


def _shown(value: Any) -> Any:
    return None if value is LOST else value


def _avro(schema: Any, value: Any) -> bytes:
    return cases.avro_bytes(schema, value)


def _json(schema: Any, value: Any) -> bytes:
    return cases.json_bytes(value)


# Jackson writes 3.0 for a double, which is no integer in JSON.
FRACTIONS = ("decimal in an integer", "double in an integer", "another number alone")
AS_JSON = [case for case in CASES if case not in FRACTIONS]
FORMATS: dict[str, Callable[[Any, Any], bytes]] = {"AVRO": _avro, "JSON": _json}


@pytest.mark.parametrize(
    ("case", "kind"), [*((case, "AVRO") for case in CASES), *((case, "JSON") for case in AS_JSON)]
)
def test_a_column(case: str, kind: str) -> None:
    before, after, values = CASES[case]
    schemas: list[cases.Given] = [(kind, record(before)), (kind, record(after))]
    payloads = [FORMATS[kind](record(after), {"a": value}) for value, _ in values]
    alone = payload_fields(cases.versions(*schemas[:1]))
    assert payload_fields(cases.versions(*schemas)).field("a").type == alone.field("a").type or (
        "union" in case
    )
    for fields in (None, payload_fields(cases.versions(*schemas), alone)):
        found = cases.decode(cases.decoder(*schemas, fields=fields), payloads, 1)
        assert [row["a"] for row in cases.rows(found)] == [_shown(value) for _, value in values]
        assert list(found.problems) == [i for i, (_, value) in enumerate(values) if value is LOST]


@pytest.mark.parametrize(
    ("case", "kind"), [*((case, "AVRO") for case in CASES), *((case, "JSON") for case in AS_JSON)]
)
def test_items_of_lists(case: str, kind: str) -> None:
    before, after, values = CASES[case]
    first, later = ({"type": "array", "items": one} for one in (before, after))
    schemas: list[cases.Given] = [(kind, record(first)), (kind, record(later))]
    payload = FORMATS[kind](record(later), {"a": [value for value, _ in values]})
    found = cases.decode(cases.decoder(*schemas), [payload], 1)
    assert cases.rows(found)[0]["a"] == [_shown(value) for _, value in values]
    assert bool(found.problems) == any(value is LOST for _, value in values)


@pytest.mark.parametrize("case", AS_JSON)
def test_halves_of_a_key_value(case: str) -> None:
    before, after, values = CASES[case]
    schemas = [
        cases.key_value(("AVRO", record(one)), ("JSON", record(one)), "SEPARATED")
        for one in (before, after)
    ]
    payloads = [cases.json_bytes({"a": value}) for value, _ in values]
    keys = [cases.avro_bytes(record(after), {"a": value}) for value, _ in values]
    found = cases.decode(cases.decoder(*schemas), payloads, 1, keys)
    assert cases.rows(found) == [
        {"key": {"a": _shown(value)}, "value": {"a": _shown(value)}} for _, value in values
    ]
    assert list(found.problems) == [i for i, (_, value) in enumerate(values) if value is LOST]


@pytest.mark.parametrize(
    ("before", "after", "values"),
    [
        ("DOUBLE", "INT64", [(b"\0" * 7 + b"\5", 5.0), (b"\0\x20" + b"\0" * 5 + b"\1", LOST)]),
        ("INT32", "DOUBLE", [(bytes.fromhex("4008000000000000"), 3),
                             (bytes.fromhex("3fe0000000000000"), LOST),
                             (bytes.fromhex("8000000000000000"), LOST),
                             (bytes.fromhex("7ff8000000000000"), LOST)]),
        ("INT8", "INT64", [(b"\x7f" * 8, int.from_bytes(b"\x7f" * 8, "big"))]),
        ("STRING", "INT32", [(b"\0\0\0\5", LOST)]),
    ],
)  # fmt: skip
def test_primitives(before: str, after: str, values: list[tuple[bytes, Any]]) -> None:
    found = cases.decode(
        cases.decoder((before, ""), (after, "")), [value for value, _ in values], 1
    )
    assert [row["value"] for row in cases.rows(found)] == [_shown(value) for _, value in values]
    assert list(found.problems) == [i for i, (_, value) in enumerate(values) if value is LOST]


def test_protobuf() -> None:
    """Also of another format: its fields go to the columns of their names."""
    kinds = {"i": "long", "d": "double", "m": decimal(5, 2)}
    avro = {"type": "record", "name": "R", "fields": [
        {"name": name, "type": kind} for name, kind in kinds.items()]}  # fmt: skip
    file = proto_file({"message M": ["double i = 1", "int64 d = 2", "int32 m = 3"]})
    message = message_class(file)
    payloads = [
        written(message, i=5.0, d=7, m=12),
        written(message, i=0.5, d=(1 << 53) + 1, m=1000),
        written(message, i=math.inf, d=-(1 << 62), m=-999),
    ]
    found = cases.decode(cases.decoder(("AVRO", avro), native(file)), payloads, 1)
    assert cases.rows(found) == [
        {"i": 5, "d": 7.0, "m": D("12.00")},
        {"i": None, "d": None, "m": None},
        {"i": None, "d": -float(1 << 62), "m": D("-999.00")},
    ]
    assert list(found.problems) == [1, 2]


SIGNS = st.sampled_from((1, -1))
SCALES = st.integers(1, 38).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, p)))


@given(SCALES, SCALES, st.data())
def test_decimals_of_any_scale(
    column: tuple[int, int], own: tuple[int, int], data: st.DataObject
) -> None:
    """As fractions have it, by all digits or by few before many zeros."""
    digits = data.draw(st.integers(0, own[0]))
    zeros = 10 ** data.draw(st.integers(0, digits))
    limit = 10**digits - 1
    unscaled = data.draw(st.integers(0, limit)) // zeros * zeros * data.draw(SIGNS)
    number = Fraction(unscaled, 10 ** own[1])
    scaled = number * 10 ** column[1]
    fits = scaled.denominator == 1 and abs(scaled) < 10 ** column[0]
    for size in (0, 16):
        schemas: list[cases.Given] = [
            ("AVRO", record(decimal(*column))),
            ("AVRO", record(decimal(*own, size))),
        ]
        value = D(unscaled).scaleb(-own[1])
        payload = cases.avro_bytes(record(decimal(*own, size)), {"a": value})
        found = cases.decode(cases.decoder(*schemas), [payload], 1)
        [row] = cases.rows(found)
        assert (None if row["a"] is None else Fraction(row["a"])) == (number if fits else None)
        assert bool(found.problems) == (not fits)


@given(cases.INT64)
def test_integers_in_doubles(number: int) -> None:
    found = cases.decode(
        cases.decoder(("AVRO", record("double")), ("AVRO", record("long"))),
        [cases.avro_bytes(record("long"), {"a": number})],
        1,
    )
    exact = int(float(number)) == number
    assert cases.rows(found) == [{"a": float(number) if exact else None}]
    assert bool(found.problems) == (not exact)


@given(st.floats())
def test_doubles_in_integers(number: float) -> None:
    found = cases.decode(
        cases.decoder(("AVRO", record("long")), ("AVRO", record("double"))),
        [cases.avro_bytes(record("double"), {"a": number})],
        1,
    )
    exact = (
        number.is_integer()
        and abs(number) < 2**63
        and math.copysign(1, number) == (-1 if number < 0 else 1)
    )
    exact = exact or number == -(2.0**63)
    assert cases.rows(found) == [{"a": int(number) if exact else None}]
    assert bool(found.problems) == (not exact)


def test_types_of_columns_stay() -> None:
    schemas = [("AVRO", record(decimal(10, 2))), ("AVRO", record(decimal(12, 2)))]
    assert payload_fields(cases.versions(*schemas)) == pa.schema([("a", pa.decimal128(10, 2))])
