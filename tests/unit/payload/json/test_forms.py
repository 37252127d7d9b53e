"""Forms of JSON besides the first of each type: docs/types.md, "Other forms in JSON"."""

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.payload import PayloadDecoder, payload_fields
from reader.payload.json.time_forms import CUT
from tests.unit.payload.cases import decode, decoder, rows
from tests.unit.payload.json.agreement import agrees, record


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


def java(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "java-class": name}


def pairs(key: Any, value: Any = "string", name: str = "PairXY") -> dict[str, Any]:
    """What Avro's reflection makes of a Java map whose keys are no strings."""
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    pair = {"type": "record", "name": name, "namespace": "org.apache.avro.reflect"}
    return {"type": "array", "items": {**pair, "fields": fields}, "java-class": "java.util.Map"}


DATE, CLOCK = logical("int", "date"), logical("int", "time-millis")
INSTANT, MILLIS = logical("long", "timestamp-micros"), logical("long", "timestamp-millis")
NANOS = logical("long", "timestamp-nanos")
LOCAL, LOCAL_NANOS = (logical("long", f"local-timestamp-{u}") for u in ("millis", "nanos"))
OBJECT = {"type": "record", "name": "Object", "namespace": "java.lang", "fields": []}
ENUM = {"type": "enum", "name": "E", "symbols": ["RED", "GREEN"]}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
BIG_DECIMAL = java("string", "java.math.BigDecimal")
BIG_INTEGER = java("string", "java.math.BigInteger")
CHAR = java("int", "java.lang.Character")
DAY = 86_400_000_000
AT = 1_700_000_000_000_000
NONE = object()

# Type, JSON, the column's value; NONE: NULL, with a problem.
FORMS: list[tuple[Any, str, Any]] = [
    ("long", "1.0", 1),
    ("long", "1e3", 1000),
    ("long", "-1.20E1", -12),
    ("long", '"-5"', -5),
    ("long", '"1.0"', 1),
    ("long", "1234567890123456789", 1234567890123456789),
    ("long", '"9223372036854775807"', 9223372036854775807),
    ("long", "9223372036854775808", NONE),
    ("long", "1.5", NONE),
    ("long", '"007"', NONE),
    ("long", '" 7"', NONE),
    ("long", '""', NONE),
    ("long", "true", NONE),
    ("boolean", '"true"', True),
    ("boolean", '"FALSE"', False),
    ("boolean", "1", True),
    ("boolean", "0", False),
    ("boolean", "2", NONE),
    ("boolean", '"yes"', NONE),
    ("boolean", '"1"', NONE),
    ("double", "NaN", float("nan")),
    ("double", "-Infinity", float("-inf")),
    ("double", '"-0.5e1"', -5.0),
    ("double", '"nan"', NONE),
    ("string", "5", NONE),
    (ENUM, "1", "1"),
    (ENUM, "-2", "-2"),
    (ENUM, '"red"', "red"),
    (ENUM, "1.5", NONE),
    (ENUM, "true", NONE),
    (ENUM, "-0", NONE),
    (DECIMAL, '"12.34"', Decimal("12.34")),
    (DECIMAL, '"-5"', Decimal("-5.00")),
    (DECIMAL, '"12345"', Decimal("12345.00")),
    (DECIMAL, '"1234"', NONE),  # it is base64, too
    (DECIMAL, "1E+3", Decimal("1000.00")),
    (BIG_DECIMAL, "12.340", "12.340"),
    (BIG_DECIMAL, "1E+20", "1E+20"),
    (BIG_DECIMAL, '"1.50"', "1.50"),
    (BIG_INTEGER, "123456789012345678901234567890", "123456789012345678901234567890"),
    (BIG_INTEGER, "1.0", NONE),
    (CHAR, '"A"', 65),
    (CHAR, '"5"', 53),
    (CHAR, "66", 66),
    (CHAR, '"\u20ac"', 0x20AC),
    (CHAR, '"AB"', NONE),
    (CHAR, '"\U0001f600"', NONE),
    (DATE, "[2023,11,14]", 19675),
    (DATE, '"2023-11-14"', 19675),
    (DATE, '"-0005-01-01"', NONE),
    (DATE, "[-5,1,1]", NONE),
    (DATE, '"+12023-01-01"', NONE),
    (DATE, '"+9999-12-31"', 2932896),
    (DATE, "[1,1,1]", -719162),
    (DATE, '"12023-01-01"', NONE),
    (DATE, "[2023,2,29]", NONE),
    (DATE, '"2024-02-29"', 19782),
    (DATE, '"2023-11-14T00:00:00Z"', NONE),
    (DATE, '"20231114"', NONE),
    (DATE, "[2023,11]", NONE),
    (CLOCK, "[22,13]", 79_980_000_000),
    (CLOCK, "[22,13,20,123000000]", 80_000_123_000),
    (CLOCK, "[22,13,20,123]", NONE),  # nanoseconds or milliseconds
    (CLOCK, '"22:13:20.5"', 80_000_500_000),
    (CLOCK, '"22:13Z"', NONE),
    (CLOCK, '"1230"', NONE),
    (CLOCK, '"24:00"', NONE),
    (INSTANT, "1700000000.123456000", AT + 123456),
    (MILLIS, "1700000000.000000000", AT),
    (INSTANT, "0.0", 0),
    (INSTANT, "-1.000000000", -1_000_000),
    (INSTANT, "-1.999999999", NONE),  # Jackson's -1 s + 999,999,999 ns
    (INSTANT, "1700000000.123", NONE),  # seconds or milliseconds
    (INSTANT, "1.7e12", NONE),
    (INSTANT, '"2023-11-14T22:13:20Z"', AT),
    (INSTANT, '"2023-11-14T23:13:20.000001+01:00"', AT + 1),
    (INSTANT, '"2023-11-14 16:43:20-0530"', AT),
    (INSTANT, '"2023-11-14T22:13:20.123+00:00"', AT + 123000),
    (INSTANT, '"2023-11-14T22:13:20"', NONE),
    (INSTANT, '"1700000000000"', NONE),
    (INSTANT, "[2023,11,14,22,13]", NONE),
    (NANOS, "1700000000.123456789", AT * 1000 + 123456789),
    (NANOS, '"2023-11-14T22:13:20.123456789Z"', AT * 1000 + 123456789),
    (NANOS, '"2300-01-01T00:00Z"', NONE),
    (NANOS, '"2262-04-10T23:59:59-23:59"', NONE),
    (NANOS, '"2262-04-10T23:59:59Z"', 9223286399000000000),
    (LOCAL, "[2023,11,14,22,13,20,123000000]", AT + 123000),
    (LOCAL, "[2023,11,14,22,13]", AT - 20_000_000),
    (LOCAL, '"2023-11-14T22:13"', AT - 20_000_000),
    (LOCAL, '"2023-11-14T22:13:20Z"', NONE),
    (LOCAL, "[2023,11,14,22,13,20,5]", NONE),
    (LOCAL_NANOS, '"1969-12-31T23:59:59.999999999"', -1),
    (OBJECT, "5", "5"),
    (OBJECT, '"a b"', '"a b"'),
    (OBJECT, '"\\u00e4\\n\\/"', '"ä\\n/"'),
    (OBJECT, ' [ 1 , "a b" , { "k" : "\\u0001" } ] ', '[1,"a b",{"k":"\\u0001"}]'),
    (OBJECT, "true", "true"),
    (OBJECT, "1.500000000", "1.500000000"),
    (OBJECT, "NaN", NONE),
    (OBJECT, '{"a":NaN}', NONE),
    (OBJECT, "[1,[-Infinity]]", NONE),
    (OBJECT, '[{"a":1},{"b":[Infinity]}]', NONE),
    ({"type": "map", "values": OBJECT}, '{"a":1,"b":null,"c":{}}',
     [("a", "1"), ("b", None), ("c", "{}")]),
    (pairs("int"), '{"1":"a","-2":"b"}', [{"key": 1, "value": "a"}, {"key": -2, "value": "b"}]),
    (pairs("int"), '[{"key":1,"value":"a"}]', [{"key": 1, "value": "a"}]),
    (pairs("int"), "{}", []),
    (pairs("boolean", "int"), '{"true":1}', [{"key": True, "value": 1}]),
    (pairs(ENUM, "long"), '{"RED":1}', [{"key": "RED", "value": 1}]),
    (pairs(DATE, OBJECT), '{"2023-11-14":{"a":[1]}}', [{"key": 19675, "value": '{"a":[1]}'}]),
    (pairs(OBJECT), '{"x":"y"}', [{"key": '"x"', "value": "y"}]),
    (pairs("double", pairs("int"), "PairOfPairs"), '{"1.5":{"2":"c"}}',
     [{"key": 1.5, "value": [{"key": 2, "value": "c"}]}]),
    (["int", "boolean"], '"5"', NONE),
    (["boolean", OBJECT], '"5"', NONE),
    (["string", DATE], '"2023-11-14"', {"member0": "2023-11-14", "member1": None}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "column"), FORMS)
def test_form(kind: Any, text: str, column: Any) -> None:
    schema = record(kind, "int")
    payload = f'{{"f0":{text},"f1":7}}'.encode()
    (row,) = rows(found := decode(decoder(("JSON", schema)), [payload]))
    assert repr(row) == repr({"f0": None if column is NONE else column, "f1": 7})
    assert len(found.problems) == (column is NONE)
    # Values that are read are read by the compiled loop, except in unions and unusual characters.
    union, wide = isinstance(kind, list), kind is CHAR and not text.isascii()
    agrees(schema, [payload], deferred=None if column is NONE or union or wide else False)


@pytest.mark.parametrize(
    ("kind", "text", "column"),
    [
        (INSTANT, "1700000000.123456789", AT + 123456),
        (INSTANT, '"1969-12-31T23:59:59.9999999Z"', -1),
        (CLOCK, "[0,0,0,1001]", 1),
        (LOCAL, '"1970-01-01T00:00:00.000000001"', 0),
    ],
)
def test_nanoseconds_beyond_the_column_are_a_problem(kind: Any, text: str, column: int) -> None:
    schema = record(kind)
    payload = f'{{"f0":{text}}}'.encode()
    found = decode(decoder(("JSON", schema)), [payload])
    assert rows(found) == [{"f0": column}]
    assert found.problems == {0: f"field 'f0' {CUT}"}
    agrees(schema, [payload], deferred=False)


@pytest.mark.parametrize(
    ("fields", "payload", "row", "problem"),
    [
        (("id", "Name"), '{"ID":1,"name":2}', (1, 2), None),
        (("id", "x"), '{"id":1,"ID":2}', (1, None), "unknown field 'ID'"),
        (("id", "x"), '{"ID":2,"id":1}', (1, None), "unknown field 'ID'"),
        (("id", "x"), '{"ID":1,"Id":2}', (None, None), "unknown field 'ID'"),
        (("id", "iD"), '{"ID":1}', (None, None), "unknown field 'ID'"),
        (("id", "iD"), '{"iD":1,"id":2}', (2, 1), None),
        (("ki\u017f", "x"), '{"KIS":1}', (1, None), None),
        (("kis", "x"), '{"K\u0131\u017f":1}', (1, None), None),
        (("ähre", "x"), '{"Ähre":1}', (1, None), None),
    ],
)
def test_names_in_another_case(
    fields: tuple[str, str], payload: str, row: tuple[int, int], problem: str | None
) -> None:
    members = [{"name": name, "type": ["null", "int"]} for name in fields]
    schema = {"type": "record", "name": "R", "fields": members}
    found = decode(decoder(("JSON", schema)), [payload.encode()])
    assert [tuple(one.values()) for one in rows(found)] == [row]
    assert found.problems == ({} if problem is None else {0: problem})
    agrees(schema, [payload.encode()])


def test_names_in_another_case_stay_in_the_compiled_loop() -> None:
    fields = [{"name": f"field{i}", "type": "int"} for i in range(40)]
    members = ",".join(f'"Field{i}":{i}' for i in (*range(40),))
    turned = ",".join(f'"FIELD{i}":{i}' for i in reversed(range(40)))
    payloads = [f"{{{text}}}".encode() for text in (members, turned)]
    agrees({"type": "record", "name": "R", "fields": fields}, payloads, deferred=False)


INDENTED = '{{\n "f0": {},\n "f1": 7\n}}'


@pytest.mark.parametrize(
    ("kind", "json_bytes", "layout", "text", "column"),
    [
        ("bytes", "", '{{"f0":{},"f1":7}}', '"test"', b"\xb5\xeb-"),
        ("bytes", "", '{{"f0":{},"f1":7}}', '"hello"', NONE),
        ("bytes", "", INDENTED, '"test"', NONE),
        ("bytes", "", INDENTED, '"hello"', NONE),
        ("bytes", "", INDENTED, '""', b""),
        ("bytes", "text", INDENTED, '"test"', b"test"),
        ("bytes", "text", INDENTED, '"h\\u00e4llo"', "hällo".encode()),
        ("bytes", "base64", INDENTED, '"test"', b"\xb5\xeb-"),
        (java("bytes", "[B"), "", INDENTED, '"test"', b"\xb5\xeb-"),
        (java("bytes", "[B"), "text", INDENTED, '"test"', b"\xb5\xeb-"),
    ],
)
def test_bytes_are_base64_or_text(
    kind: Any, json_bytes: str, layout: str, text: str, column: Any
) -> None:
    info = SchemaInfo(0, "JSON", json.dumps(record(kind, "int")), json_bytes=json_bytes)
    fields = payload_fields([info])
    payload = layout.format(text).encode()
    spans = ByteSpans.of(pa.array([payload], pa.large_binary()))
    found = PayloadDecoder([info], fields).decode(spans, np.zeros(1, np.int64))
    assert rows(found) == [{"f0": None if column is NONE else column, "f1": 7}]
    assert len(found.problems) == (column is NONE)
    agrees(record(kind, "int"), [payload])


@pytest.mark.parametrize("before", ["double", DECIMAL])
def test_a_character_under_numbers_of_another_kind_is_null(before: Any) -> None:
    """A digit in quotes is the number of the character: "5" is 53."""
    made = decoder(
        ("JSON", json.dumps(record(before, "int"))), ("JSON", json.dumps(record(CHAR, "int")))
    )
    found = decode(made, [b'{"f0":"5","f1":7}'], 1)
    assert rows(found) == [{"f0": None, "f1": 7}]
    assert list(found.problems) == [0]
