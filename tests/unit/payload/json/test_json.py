"""JSON: what each payload means, and that the compiled path agrees with the one in Python."""

import json
import random
import re
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reader.payload.json.numbers import exact_double
from reader.payload.json.values import MAX_JSON_DEPTH
from tests.support.examples import examples
from tests.support.schemas import avro_record
from tests.unit.payload.cases import Kind, Value, decode, decoder, json_bytes, rows, shown, topics
from tests.unit.payload.json.agreement import agrees, record

PATIENT = settings(
    max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@PATIENT
@given(topics(), st.booleans())
def test_what_json_says_is_read(topic: tuple[Kind, list[Value]], leave_nulls_out: bool) -> None:
    kind, values = topic
    payloads = [json_bytes(_sparse(v.json) if leave_nulls_out else v.json) for v in values]
    found = decode(decoder(("JSON", kind.schema)), payloads)
    assert not found.problems
    assert rows(found) == [value.column for value in values]
    agrees(kind.schema, payloads)


def _sparse(value: dict[str, Any]) -> dict[str, Any]:
    """Without members that are null at the top, as Jackson writes them."""
    return {name: item for name, item in value.items() if item is not None}


# What goes wrong, and what merely looks odd, in JSON.
PIECES = [
    b"null", b"true", b"false", b"0", b"-0", b"-0.0", b"1.0", b"1e3", b"1E+2", b"1e400", b"01",
    b"-", b".5", b"1.", b"+1", b"NaN", b"Infinity", b'"NaN"', b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775808", b"9007199254740993", b"0.1", b"2.50",
    b"0.10000000000000001", b"1234567890.1234567890123", b"5e-324", b"3e-324", b'""', b'"a"',
    b'"\\u00e4"', b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\x"', b'"\\u12"',
    b'"a\\"b\\\\"', b'"\\/\\b\\f\\n\\r\\t"', b'"\n"', b'"\xc3\xa4"', b'"\xff"', b'"aGk="',
    b'"aGl="', b'"aGk"', b"[]", b"[1,2]", b"[1,]", b"[null]", b"{}", b'{"a":1}',
    b'{"a":1,"a":2}', b'{"a":{"b":1,"b":2}}', b'{"\\u0061":1}', b'{"f0":1}', b"{1:2}", b"[[[]]]",
    b" 1 ", b"\t[ 1 , 2 ]\n", b"nul", b"tru", b"\xef\xbb\xbf1", b"", b"123456789012345678901234",
    b'"0123456789abcdef"', b"0.1234567890123456", b"4.9406564584124654e-324", b"-17",
    b"Infinit", b"-Infinity", b'"-Infinity"', b'"1.5e1"', b'"True"', b'"2023-11-14"', b'"22:13"',
    b'"2023-11-14T22:13:20.123456789Z"', b'"2023-11-14 22:13:20+01:30"', b"[2023,11,14,1,2,3,4000]",
    b"[22,13]", b"1700000000.123456789", b"0.0", b'"1"', b'"12345678"', b"1.5e1", b"[{},{ }]",
    b"9999999999999999999",  b"-0e9", b'[1,"a b"]',
    b'{"a":"\\u0009\\u001f\\/\\u00e4"}', b'{"F0":1}',
    b"1.7976931348623157e308", b"1.7976931348623159e308", b"100000000000000000000000",
]  # fmt: skip


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(topics(), st.data())
def test_the_compiled_path_agrees_on_anything(
    topic: tuple[Kind, list[Value]], data: st.DataObject
) -> None:
    kind, values = topic
    dice = random.Random(data.draw(st.integers(0, 1 << 32)))
    payloads = []
    for value in values * 3:
        payload = json_bytes(value.json)
        for _ in range(dice.randint(0, 2)):
            payload = _damaged(payload, dice)
        payloads.append(payload)
    agrees(kind.schema, payloads)


def _damaged(payload: bytes, dice: random.Random) -> bytes:
    tokens = re.findall(rb'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\[\]{},:"]+|.', payload, re.DOTALL)
    at = dice.randrange(len(tokens)) if tokens else 0
    match dice.randint(0, 5):
        case 0:
            tokens[at : at + 1] = [dice.choice(PIECES)]
        case 1:
            tokens.insert(at, dice.choice(PIECES))
        case 2:
            del tokens[at : at + 1]
        case 3:
            tokens[at:at] = tokens[at : at + dice.randint(1, 5)]
        case 4:
            tokens[at:at] = [b'"extra":', dice.choice(PIECES), b","]
        case 5:
            return payload[: dice.randint(0, len(payload))]
    return b"".join(tokens)


ANYTHING = record(
    "long", "double", "string", "boolean", "bytes",
    {"type": "int", "logicalType": "date"},
    {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
    {"type": "array", "items": "double"},
    {"type": "map", "values": "long"},
    {"type": "record", "name": "S", "fields": [{"name": "a", "type": "long"}]},
    ["null", "boolean", "string"],
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-nanos"},
    {"type": "record", "name": "Object", "fields": []},
    {"type": "string", "java-class": "java.math.BigDecimal"},
    {"type": "int", "java-class": "java.lang.Character"},
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_the_compiled_path_agrees_on_each_piece_in_each_place(piece: bytes) -> None:
    names = [field["name"].encode() for field in ANYTHING["fields"]]
    payloads = [b'{"f2":"x","' + name + b'":' + piece + b"}" for name in names]
    payloads += [
        piece,
        b'{"extra":' + piece + b',"f0":1}',
        b'{"f0":1}' + piece,
        b'{"f7":[' + piece + b'],"f8":{"k":' + piece + b"}}",
        b'{"f9":{"b":' + piece + b"}}",
        b"{" + piece + b":1}",
    ]
    agrees(ANYTHING, payloads)


def test_names_of_any_length_and_place() -> None:
    """Names are compared by words of 16 bytes, and nothing lies behind the last payload."""
    names = ["x", *("n" * n for n in (13, 14, 15, 16, 30, 31, 32)), "n" * 14 + "m", "ñ" * 9]
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in names]
    schema = {"type": "record", "name": "R", "fields": fields}
    payloads = []
    for turn in range(len(names)):
        turned = names[turn:] + names[:turn]
        for gap in ("", " ", "\n\t "):
            pairs = [f'{gap}"{name}"{gap}:{gap}{n}{gap}' for n, name in enumerate(turned)]
            payloads.append(f"{gap}{{{','.join(pairs)}}}{gap}".encode())
    payloads += [b'{"x":1}', b'{"x":1', b'{"x":', b'{"x"', b'{"x', b'{"', b"{"]
    payloads += [b'{"nnnnnnnnnnnnnn":1}', b'{"nnnnnnnnnnnnn', b'{"x":1,"x":2}', b'{"X":1}']
    for cut in range(1, len(payloads) + 1):
        agrees(schema, payloads[:cut])


def test_common_payloads_never_leave_the_compiled_path() -> None:
    schema = record("long", "double", "string", "bytes", {"type": "array", "items": "string"})
    value = {"f0": -5, "f2": 'ä "quoted"\n \U0001f600', "f3": "aGk=", "f4": ["", "x"]}
    dice = random.Random(1)
    doubles = [dice.random() * 10 ** dice.randint(-15, 15) for _ in range(2000)]
    payloads = [json.dumps({**value, "f1": v}).encode() for v in (0.1, 1, -2.5e-7, *doubles)]
    payloads.append(json.dumps({**value, "extra": {"a": [1, "x", None, True]}}).encode())
    agrees(schema, payloads, deferred=False)


LONG, DOUBLE = record("long"), record("double")
STRUCT = record(
    {"type": "record", "name": "S", "fields": [{"name": "a", "type": ["null", "int"]}]}, "int"
)
DATE = record({"type": "int", "logicalType": "date"})
MILLIS = record({"type": "long", "logicalType": "timestamp-millis"})
DECIMAL = record({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2})
WIDE = record({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2})
BYTES = record({"type": "fixed", "name": "F", "size": 2})
ENUM = record({"type": "enum", "name": "E", "symbols": ["A"]})
LIST = record({"type": "array", "items": "int"})
MAP = record({"type": "map", "values": "int"})
UNION = record(["int", "string", {"type": "array", "items": "int"}])
LINK = avro_record("L", {"f0": ["null", "L"], "v": "double"})
NO_INTEGER = "field 'f0' is not an integer of 64 bits"
NO_DATE = "field 'f0' is not certain to be a date of the years 1 to 9999"
NO_INSTANT = "field 'f0' is not certain to be a point in time of the years 1 to 9999"
NO_DOUBLE = "field 'f0' is not a number of double range"
NO_DECIMAL = "field 'f0' is not a decimal of 5 digits, 2 after the point"


@pytest.mark.parametrize(
    ("schema", "payload", "column", "problem"),
    [
        (LONG, '{"f0":1}', 1, None),
        (LONG, ' \r\n{ "f0" :\t1 } \n', 1, None),
        (LONG, "{}", None, None),
        (LONG, '{"f0":null}', None, None),
        (LONG, '{"f0":-0}', 0, None),
        (LONG, '{"f0":9223372036854775807}', (1 << 63) - 1, None),
        (LONG, '{"f0":-9223372036854775808}', -(1 << 63), None),
        (LONG, '{"f0":9223372036854775808}', None, NO_INTEGER),
        (LONG, '{"f0":1.5}', None, NO_INTEGER),
        (LONG, '{"f0":1e19}', None, NO_INTEGER),
        (LONG, '{"f0":"1x"}', None, NO_INTEGER),
        (LONG, '{"f0":true}', None, NO_INTEGER),
        (LONG, '{"f0":1,"f0":2}', 2, "duplicate key 'f0'"),
        (LONG, '{"f0":1,"x":{"b":1,"b":1}}', 1, "unknown field 'x'"),
        (LONG, '{"f0":1,"ä\\n":0}', 1, "unknown field '\\xe4\\n'"),
        (LONG, '{"x":0,"f0":1,"y":0}', 1, "unknown field 'x'"),
        (LONG, "", None, "not JSON: Expecting value: line 1 column 1 (char 0)"),
        (LONG, "[]", None, "not a JSON object"),
        (LONG, "null", None, "not a JSON object"),
        (LONG, '{"f0":1}x', None, "not JSON: Extra data: line 1 column 9 (char 8)"),
        (LONG, '{"f0":NaN}', None, NO_INTEGER),
        (DOUBLE, '{"f0":1}', 1.0, None),
        (DOUBLE, '{"f0":-0.0}', -0.0, None),
        (DOUBLE, '{"f0":-0}', -0.0, None),
        (DOUBLE, '{"f0":0.1}', 0.1, None),
        (DOUBLE, '{"f0":1E-7}', 1e-7, None),
        (DOUBLE, '{"f0":"Infinity"}', float("inf"), None),
        (DOUBLE, '{"f0":9007199254740992}', 2.0**53, None),
        (DOUBLE, '{"f0":9007199254740993}', None, NO_DOUBLE),
        (DOUBLE, '{"f0":1e400}', None, NO_DOUBLE),
        (DOUBLE, '{"f0":1e-400}', None, NO_DOUBLE),
        (DOUBLE, '{"f0":0.12345678901234567891}', None, NO_DOUBLE),
        (DOUBLE, '{"f0":"x"}', None, NO_DOUBLE),
        (STRUCT, '{"f0":{"a":1},"f1":2}', {"a": 1}, None),
        (STRUCT, '{"f0":{},"f1":2}', {"a": None}, None),
        (STRUCT, '{"f0":{"a":1,"b":2}}', {"a": 1}, "unknown field 'f0.b'"),
        (STRUCT, '{"f0":{"a":"x"}}', {"a": None}, "field 'f0.a' is not an integer of 64 bits"),
        (STRUCT, '{"f0":[1]}', None, "field 'f0' is not an object"),
        (STRUCT, '{"f0":{"a":1,"a":2}}', {"a": 2}, "duplicate key 'a'"),
        (DATE, '{"f0":19000}', 19000, None),
        (DATE, '{"f0":2147483648}', None, NO_DATE),
        (MILLIS, '{"f0":1500}', 1_500_000, None),
        (MILLIS, '{"f0":9223372036854775807}', None, NO_INSTANT),
        (DECIMAL, '{"f0":123.45}', Decimal("123.45"), None),
        (DECIMAL, '{"f0":-1.500}', Decimal("-1.50"), None),
        (DECIMAL, '{"f0":1.5E+2}', Decimal("150.00"), None),
        (DECIMAL, '{"f0":0E-9}', Decimal("0.00"), None),
        (DECIMAL, '{"f0":1000}', None, NO_DECIMAL),
        (DECIMAL, '{"f0":0.001}', None, NO_DECIMAL),
        (DECIMAL, '{"f0":1e999999}', None, NO_DECIMAL),
        (DECIMAL, '{"f0":"1000.00"}', None, NO_DECIMAL),
        (WIDE, '{"f0":-1e40}', "-1" + "0" * 40 + ".00", None),
        (BYTES, '{"f0":"aGk="}', b"hi", None),
        (BYTES, '{"f0":"aGl="}', None, "field 'f0' is not base64"),
        (BYTES, '{"f0":"hi"}', None, "field 'f0' is not base64"),
        (ENUM, '{"f0":"B"}', "B", None),
        (ENUM, '{"f0":0.5}', None, "field 'f0' is not a string"),
        (ENUM, '{"f0":"\\ud800"}', None, "field 'f0' is not a string"),
        (LIST, '{"f0":[1,null,2]}', [1, None, 2], None),
        (LIST, '{"f0":[1,"x"]}', [1, None], "field 'f0[]' is not an integer of 64 bits"),
        (MAP, '{"f0":{"a":1,"b":null}}', [("a", 1), ("b", None)], None),
        (MAP, '{"f0":{"a":1,"a":2}}', [("a", 2)], "duplicate key 'a'"),
        (MAP, '{"f0":{"\\ud800":1}}', None, "field 'f0' is not an object of Unicode keys"),
        (UNION, '{"f0":5}', {"member0": 5, "member1": None, "member2": None}, None),
        (UNION, '{"f0":"x"}', {"member0": None, "member1": "x", "member2": None}, None),
        (UNION, '{"f0":[1]}', {"member0": None, "member1": None, "member2": [1]}, None),
        (UNION, '{"f0":["x"]}', None, "field 'f0' matches no branch of its union"),
        (UNION, '{"f0":null}', None, None),
        (LINK, '{"f0":{"v":1.50,"f0":{"x":"ä"}}}', '{"v":1.50,"f0":{"x":"ä"}}', None),
        (LINK, '{"f0":5}', None, "field 'f0' is not an object"),
    ],
)
def test_meaning(schema: Any, payload: str, column: Any, problem: str | None) -> None:
    found = decode(decoder(("JSON", schema)), [payload.encode()])
    assert repr(rows(found)[0]["f0"]) == repr(column)
    assert found.problems == ({} if problem is None else {0: problem})
    agrees(schema, [payload.encode()])


def test_not_utf8() -> None:
    found = decode(decoder(("JSON", LONG)), [b'{"f0":1,"x":"\xff"}', b'{"f0":1}'])
    assert rows(found) == [{"f0": None}, {"f0": 1}]
    assert found.problems == {0: "not UTF-8"}


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_nesting_is_bounded(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    deep = [
        b'{"x":' + opening * n + b"1" + closing * n + b"}"
        for n in (MAX_JSON_DEPTH - 1, MAX_JSON_DEPTH, 100_000)
    ]
    found = decode(decoder(("JSON", LONG)), [*deep, b'{"x":"' + b"[" * 100_000 + b'","f0":1}'])
    assert list(found.problems.values()) == [
        "unknown field 'x'",
        "nested too deeply",
        "nested too deeply",
        "unknown field 'x'",
    ]
    assert rows(found)[3] == {"f0": 1}


@pytest.mark.parametrize("literal", ["1" * 100_000, "0." + "1" * 100_000, "1e" + "9" * 1000])
def test_huge_numbers_cost_only_their_column(literal: str) -> None:
    schema = record("long", "double", "string")
    payload = f'{{"f0":{literal},"f1":{literal},"f2":"x","f9":{literal}}}'.encode()
    found = decode(decoder(("JSON", schema)), [payload])
    assert rows(found) == [{"f0": None, "f1": None, "f2": "x"}]
    assert found.problems == {0: NO_INTEGER}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=5) | st.floats().map(repr))
@settings(max_examples=examples(300), deadline=None)
def test_exact_doubles(number: Decimal | str) -> None:
    text = str(number)
    if text in ("nan", "inf", "-inf"):
        return
    value = exact_double(text)
    if isinstance(number, str):
        assert repr(value) == text
        return
    _, digits, exponent = number.normalize(Context(prec=200)).as_tuple()
    assert isinstance(exponent, int)
    gap = abs(Fraction(float(number)) - Fraction(number))
    exact = gap * 2 <= (Fraction(10) ** exponent if len(digits) <= 18 else 0)
    assert value == (float(number) if exact else None)


def test_eighteen_digits_of_an_older_java() -> None:
    """``Double.toString`` is not the shortest before Java 19."""
    found = decode(decoder(("JSON", record("double"))), [b'{"f0":-1.07479497119299891E18}'])
    assert rows(found) == [{"f0": -1.0747949711929989e18}]
    assert not found.problems


@PATIENT
@given(topics(), st.data())
def test_pruning_changes_neither_values_nor_problems(
    topic: tuple[Kind, list[Value]], data: st.DataObject
) -> None:
    kind, values = topic
    dice = random.Random(data.draw(st.integers(0, 1 << 32)))
    payloads = [_damaged(json_bytes(value.json), dice) for value in values * 2]
    wanted = data.draw(st.lists(st.sampled_from([f.name for f in kind.arrow]), unique=True))
    full = decode(decoder(("JSON", kind.schema)), payloads)
    some = decode(decoder(("JSON", kind.schema), wanted=wanted), payloads)
    assert some.problems == full.problems
    assert set(some.arrays) == set(wanted)
    for name in wanted:
        assert repr(shown(some.arrays[name])) == repr(shown(full.arrays[name]))
