"""Avro: the kernel against fastavro's writer, and against bytes that no writer made."""

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reader.payload.avro.kernel import MAX_DEPTH
from reader.payload.budget import OutputBudget, value_bytes
from tests.support.schemas import avro_record
from tests.unit.payload.cases import Kind, Value, avro_bytes, decode, decoder, rows, shown, topics
from tests.unit.payload.json.agreement import record

PATIENT = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@PATIENT
@given(topics())
def test_what_fastavro_writes_is_read(topic: tuple[Kind, list[Value]]) -> None:
    kind, values = topic
    payloads = [avro_bytes(kind.schema, value.avro) for value in values]
    found = decode(decoder(("AVRO", kind.schema)), payloads)
    assert not found.problems
    assert [array.type for array in found.arrays.values()] == [field.type for field in kind.arrow]
    assert rows(found) == [value.column for value in values]


@PATIENT
@given(topics(), st.data())
def test_damaged_bytes_are_problems_whatever_is_wanted(
    topic: tuple[Kind, list[Value]], data: st.DataObject
) -> None:
    kind, values = topic
    seed = data.draw(st.integers(0, 1 << 32))
    payloads = [
        _damaged(avro_bytes(kind.schema, value.avro), random.Random(seed + i))
        for i, value in enumerate(values * 4)
    ]
    full = decode(decoder(("AVRO", kind.schema)), payloads)
    for row, reason in full.problems.items():
        if reason.startswith("malformed"):
            assert not any(array[row].is_valid for array in full.arrays.values())
    names = [field.name for field in kind.arrow]
    wanted = data.draw(st.lists(st.sampled_from(names), unique=True))
    some = decode(decoder(("AVRO", kind.schema), wanted=wanted), payloads)
    assert some.problems == full.problems
    assert set(some.arrays) == set(wanted)
    for name in wanted:
        # Not ==: a damaged double may be NaN.
        assert repr(shown(some.arrays[name])) == repr(shown(full.arrays[name]))


def _damaged(payload: bytes, dice: random.Random) -> bytes:
    raw = bytearray(payload)
    for _ in range(dice.randint(0, 3)):
        match dice.randint(0, 3):
            case 0 if raw:
                raw[dice.randrange(len(raw))] = dice.randrange(256)
            case 1 if raw:
                del raw[dice.randrange(len(raw)) :]
            case 2:
                raw.insert(dice.randint(0, len(raw)), dice.choice([0, 1, 2, 0x7F, 0x80, 0xFF]))
            case 3 if raw:
                del raw[dice.randrange(len(raw))]
    return bytes(raw)


LIST = {"type": "array", "items": "int"}
TOO_LARGE = "too many values, or too large ones, for its size"
# Of a payload of three bytes.
NULL_ITEMS = OutputBudget().of_message(3) // value_bytes(pa.string())
NULLS = {"type": "array", "items": "null"}
MAP = {"type": "map", "values": "int"}
ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
LINK = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        ("int", b"", "f0: the payload ends too early"),
        ("int", b"\x80", "f0: the payload ends too early"),
        ("int", b"\x02\x00", "the end: bytes follow the datum"),
        ("int", varint(1 << 31), "f0: not an integer of its size"),
        ("int", b"\x82\x80\x80\x80\x80\x00", "f0: not an integer of its size"),
        ("long", b"\xff" * 9 + b"\x02", "f0: not an integer of its size"),
        ("long", b"\xff" * 11, "f0: not an integer of its size"),
        ("boolean", b"\x02", "f0: not a boolean"),
        ("boolean", b"", "f0: the payload ends too early"),
        ("float", b"\0\0\0", "f0: the payload ends too early"),
        ("double", b"\0" * 7, "f0: the payload ends too early"),
        ("string", b"\x04a", "f0: a length is out of range"),
        ("string", b"\x01", "f0: a length is out of range"),
        ("string", varint((1 << 63) - 1), "f0: a length is out of range"),
        ("bytes", varint(-(1 << 63)), "f0: a length is out of range"),
        ("string", b"\x02\xff", "f0: not UTF-8"),
        ("string", b"\x06\xed\xa0\x80", "f0: not UTF-8"),
        ("string", b"\x04\xc0\x80", "f0: not UTF-8"),
        ("string", b"\x08\xf4\x90\x80\x80", "f0: not UTF-8"),
        ("string", b"\x12abcdefgh\x80", "f0: not UTF-8"),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab", "f0: the payload ends too early"),
        (ENUM, b"\x04", "f0: no such enum symbol or union branch"),
        (ENUM, b"\x01", "f0: no such enum symbol or union branch"),
        (["null", "int"], b"\x04\x02", "f0: no such enum symbol or union branch"),
        (LIST, varint(1 << 40), "f0: a length is out of range"),
        (LIST, b"\x04\x02", "f0: a length is out of range"),
        (LIST, b"\x02\x02", "f0: the payload ends too early"),
        (LIST, varint(-(1 << 63)) + b"\x02", "f0: a length is out of range"),
        (LIST, varint(-1) + varint(100) + b"\x02\0", "f0: a length is out of range"),
        (LIST, varint(-1) + varint(2) + b"\x02\0\0", "f0: a block does not have its stated size"),
        (NULLS, varint(NULL_ITEMS + 1) + b"\0", f"f0: {TOO_LARGE}"),
        (NULLS, varint(1 << 62) + b"\0", f"f0: {TOO_LARGE}"),
        (NULLS, (varint(NULL_ITEMS // 2) * 3) + b"\0", f"f0: {TOO_LARGE}"),
        (MAP, b"\x04\x02a\x02\x02a\x04\0", "f0: a map has a duplicate key"),
        (MAP, b"\x02\x02\xff\x02\0", "f0: not UTF-8"),
        (LINK, b"\x02" * (MAX_DEPTH + 2) + b"\0", "L.next: nested too deeply"),
    ],
)
@pytest.mark.parametrize("wanted", [None, []])
def test_malformed(schema: Any, payload: bytes, reason: str, wanted: list[str] | None) -> None:
    made = decoder(("AVRO", record(schema)), wanted=wanted)
    found = decode(made, [payload])
    assert found.problems == {0: f"malformed Avro at {reason}"}
    assert rows(found) == ([{"f0": None}] if wanted is None else [])


@pytest.mark.parametrize(
    ("schema", "payload", "column"),
    [
        # What is legal, though fastavro does not write it.
        (LIST, varint(-2) + varint(2) + b"\x02\x04\x02\x06\0", [1, 2, 3]),
        ("int", b"\x82\x00", 1),
        (NULLS, varint(NULL_ITEMS) + b"\0", [None] * NULL_ITEMS),
        ("long", b"\xff" * 9 + b"\x01", -(1 << 63)),
        ("null", b"", None),
        (["null"], b"\0", None),
        ([{"type": "array", "items": ["null", "null"]}], b"\0\x02\x02\0", [None]),
        ({"type": "fixed", "name": "F", "size": 0}, b"", b""),
        ({"type": "record", "name": "X", "fields": []}, b"", "{}"),
    ],
)
def test_unusual_but_right(schema: Any, payload: bytes, column: Any) -> None:
    found = decode(decoder(("AVRO", record(schema))), [payload])
    assert not found.problems
    assert rows(found) == [{"f0": column}]


def test_many_keys_and_items_make_room() -> None:
    schema = record(MAP, {"type": "array", "items": MAP})
    small: dict[str, Any] = {"f0": {}, "f1": []}
    large = {"f0": {str(i): i for i in range(5000)}, "f1": [{"x": i, "y": i} for i in range(3000)]}
    found = decode(
        decoder(("AVRO", schema)), [avro_bytes(schema, value) for value in (small, large, small)]
    )
    assert not found.problems
    first, second, third = rows(found)
    assert first == third == {"f0": [], "f1": []}
    assert dict(second["f0"]) == large["f0"]
    assert [dict(item) for item in second["f1"]] == large["f1"]


def test_a_damaged_row_leaves_its_neighbours_alone() -> None:
    schema = record({"type": "array", "items": "string"}, "int")
    good = avro_bytes(schema, {"f0": ["a", "b"], "f1": 1})
    found = decode(decoder(("AVRO", schema)), [good, good[:-1], None, good])
    assert rows(found) == [
        {"f0": ["a", "b"], "f1": 1},
        {"f0": None, "f1": None},
        {"f0": None, "f1": None},
        {"f0": ["a", "b"], "f1": 1},
    ]
    assert list(found.problems) == [1]


TENTHS = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
TREE = avro_record(
    "T",
    {
        "n": "double",
        "s": ["null", "string", {"type": "fixed", "name": "F", "size": 2}],
        "e": ENUM,
        "m": {"type": "map", "values": "T"},
        "d": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
    },
)


def test_a_record_inside_itself_is_json_text() -> None:
    leaf = {"n": float("inf"), "s": b"hi", "e": "B", "m": {}, "d": b"\xff"}
    inner = {"n": 1.5, "s": '"\n', "e": "A", "m": {"ä": leaf}, "d": b"\x0f"}
    outer = {"n": 0.5, "s": None, "e": "A", "m": {"x": inner}, "d": b""}
    found = decode(decoder(("AVRO", TREE)), [avro_bytes(TREE, outer)])
    (row,) = rows(found)
    ((key, text),) = row["m"]
    assert key == "x"
    assert json.loads(text) == {
        "n": 1.5,
        "s": '"\n',
        "e": "A",
        "m": {"ä": {"n": "Infinity", "s": "aGk=", "e": "B", "m": {}, "d": -0.1}},
        "d": 1.5,
    }
    assert found.problems == {0: "field 'd' is not a decimal of 4 digits"}


@pytest.mark.parametrize("depth", [1, MAX_DEPTH - 1])
def test_nesting_up_to_the_bound(depth: int) -> None:
    payload = b"\x02" * depth + b"\0"
    found = decode(decoder(("AVRO", LINK)), [payload])
    assert not found.problems
    (row,) = rows(found)
    assert row["next"].count("next") == depth


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
SMALL = {"type": "fixed", "name": "F", "size": 20, "logicalType": "decimal", "precision": 3}
WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}


@pytest.mark.parametrize(
    ("schema", "payload", "column"),
    [
        (DECIMAL, (10**38 - 1).to_bytes(16, "big"), 10**38 - 1),
        (DECIMAL, (-(10**38) + 1).to_bytes(16, "big", signed=True), -(10**38) + 1),
        (DECIMAL, (10**38).to_bytes(16, "big"), None),
        (DECIMAL, (-(10**38)).to_bytes(16, "big", signed=True), None),
        (DECIMAL, b"\x80" + b"\0" * 15, None),
        (DECIMAL, b"\0\0\0" + b"\xff" * 15, int.from_bytes(b"\xff" * 15, "big")),
        (DECIMAL, b"\0" + b"\xff" * 16, None),
        (DECIMAL, b"\xff\xff\xff\xfe", -2),
        (DECIMAL, b"\xff" * 17, -1),
        (DECIMAL, b"\xff" + b"\0" * 16, None),
        (DECIMAL, b"", None),
        (SMALL, (-999).to_bytes(20, "big", signed=True), -999),
        (SMALL, (1000).to_bytes(20, "big"), None),
        (WIDE, (10**50).to_bytes(25, "big"), "1" + "0" * 48 + ".00"),
        (WIDE, b"\xff", "-0.01"),
        (WIDE, b"", None),
        (WIDE, b"\1" * 100, None),
    ],
)
def test_decimals_to_the_edge(schema: Any, payload: bytes, column: Any) -> None:
    before = b"" if schema is SMALL else varint(len(payload))
    found = decode(decoder(("AVRO", record(schema, "int"))), [before + payload + b"\x02"])
    # The other columns stay.
    assert rows(found) == [{"f0": column, "f1": 1}]
    assert bool(found.problems) == (column is None)


@pytest.mark.parametrize(
    ("logical", "least", "most"),
    [
        ("timestamp-millis", -62_135_596_800_000, 253_402_300_799_999),
        ("local-timestamp-millis", -(((1 << 63) - 1) // 1000), ((1 << 63) - 1) // 1000),
    ],
)
def test_a_time_out_of_range_costs_only_its_column(logical: str, least: int, most: int) -> None:
    schema = record({"type": "long", "logicalType": logical}, "int")
    payloads = [varint(v) + b"\x02" for v in (most, least, most + 1, (1 << 63) - 1)]
    found = decode(decoder(("AVRO", schema)), payloads)
    assert [row["f0"] for row in rows(found)] == [most * 1000, least * 1000, None, None]
    assert [row["f1"] for row in rows(found)] == [1, 1, 1, 1]
    assert found.problems == dict.fromkeys((2, 3), "field 'f0' is out of the range of its column")


def test_enum_symbols_cannot_blow_up() -> None:
    long = "S" * 200_000
    schema = record(
        {"type": "array", "items": {"type": "enum", "name": "E", "symbols": [long]}}, "int"
    )
    payload = varint(1000) + b"\0" * 1000 + b"\0\x02"
    found = decode(decoder(("AVRO", schema)), [payload])
    assert found.problems == {0: f"malformed Avro at f0[]: {TOO_LARGE}"}
