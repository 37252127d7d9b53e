"""JSON that Java's classes read as the value that was written: times, and maps of other keys."""

import datetime
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from reader.encode.payload.encoder import PayloadEncoder
from reader.errors import ConfigurationError
from reader.payload import payload_fields
from tests.unit.encode.writing import again, as_json, avro, column, info, payloads, refused
from tests.unit.payload.cases import Given
from tests.unit.payload.test_types import LINK, logical, named

NOON = datetime.datetime(2023, 11, 14, 22, 13, 20, 123456, datetime.UTC)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
US = 80_000_123_456


def pair(key: Any, value: Any = "string") -> dict[str, Any]:
    """A Java map, as Avro's reflection describes it."""
    name = "PairKeyValue"
    fields = [{"name": "key", "type": key}, {"name": "value", "type": value}]
    record = {"type": "record", "name": name, "namespace": "org.apache.avro.reflect",
              "fields": fields}  # fmt: skip
    return {"type": "array", "items": record, "java-class": "java.util.Map"}


def type_of(given: Given) -> pa.DataType:
    """The type of the column f0."""
    return payload_fields([info(given)]).field(0).type


def as_read(value: Any) -> Any:
    """Dates and instants as the decoder's rows count them."""
    if isinstance(value, list):
        return [as_read(item) for item in value]
    if isinstance(value, dict):
        return {name: as_read(item) for name, item in value.items()}
    if isinstance(value, datetime.datetime):
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    return (value - EPOCH.date()).days if isinstance(value, datetime.date) else value


# Each text has been read by Pulsar 4.2.4's Schema.JSON of a class with such a field.
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (logical("long", "timestamp-millis"), NOON, '"2023-11-14T22:13:20.123456Z"'),
        (logical("long", "timestamp-micros"), NOON, '"2023-11-14T22:13:20.123456Z"'),
        (logical("long", "timestamp-nanos"), -1, '"1969-12-31T23:59:59.999999999Z"'),
        (logical("int", "time-millis"), US, '"22:13:20.123456"'),
        (logical("long", "time-micros"), 0, '"00:00:00.000000"'),
        (logical("long", "local-timestamp-millis"), 0, '"1970-01-01T00:00:00.000000"'),
        (logical("long", "local-timestamp-micros"), 2**63 - 1,
         '"+294247-01-10T04:00:54.775807"'),
        (logical("long", "local-timestamp-micros"), -(2**63),
         '"-290308-12-21T19:59:05.224192"'),
        (logical("long", "local-timestamp-nanos"), 1, '"1970-01-01T00:00:00.000000001"'),
        (logical("int", "date"), datetime.date(2023, 11, 14), "19675"),
    ],
)  # fmt: skip
def test_times_are_text_that_java_reads(kind: Any, value: Any, text: str) -> None:
    given = as_json(avro(["null", kind]))
    rows = column([value, None], type_of(given))
    assert payloads(given, rows) == [f'{{"f0":{text}}}'.encode(), b"{}"]
    assert again(given, rows) == as_read(rows.to_pylist())


def test_times_are_numbers_if_the_settings_say_so() -> None:
    given = as_json(avro(logical("long", "timestamp-millis")))
    rows = column([NOON], pa.timestamp("us", "UTC"))
    schema = replace(info(given), json_times="numbers")
    assert PayloadEncoder(schema, rows.schema).encode(rows).values[0] == b'{"f0":1700000000123}'


def test_times_in_a_union_of_several_branches_are_numbers() -> None:
    """Text there would be the branch of text."""
    given = as_json(avro(["string", logical("long", "timestamp-micros")]))
    kind = type_of(given)
    rows = column([{"member0": None, "member1": NOON}], kind)
    assert payloads(given, rows) == [b'{"f0":1700000000123456}']
    assert again(given, rows) == as_read(rows.to_pylist())


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("int", 5, "5"),
        ("long", -(2**63), "-9223372036854775808"),
        ({"type": "int", "java-class": "java.lang.Character"}, 34, '\\"'),
        ("double", 1.5, "1.5"),
        ("double", float("inf"), "Infinity"),
        ("boolean", True, "true"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        (logical("int", "date"), datetime.date(2023, 11, 14), "2023-11-14"),
        (logical("long", "timestamp-micros"), NOON, "2023-11-14T22:13:20.123456Z"),
        (logical("int", "time-millis"), US, "22:13:20.123456"),
    ],
)
def test_java_maps_are_objects(key: Any, value: Any, text: str) -> None:
    given = as_json(avro(["null", pair(key)]))
    rows = column([[{"key": value, "value": "a"}], [], None], type_of(given))
    expected = [f'{{"f0":{{"{text}":"a"}}}}'.encode(), b'{"f0":{}}', b"{}"]
    assert payloads(given, rows) == expected
    assert again(given, rows) == as_read(rows.to_pylist())


def test_java_maps_of_times() -> None:
    given = as_json(avro(pair("int", ["null", logical("long", "timestamp-micros")])))
    entries = [{"key": 1, "value": NOON}, {"key": 2, "value": None}]
    rows = column([entries], type_of(given))
    assert payloads(given, rows) == [b'{"f0":{"1":"2023-11-14T22:13:20.123456Z","2":null}}']
    assert again(given, rows) == as_read(rows.to_pylist())


def test_java_maps_that_jackson_could_not_read() -> None:
    given = as_json(avro(pair("int")))
    kind = type_of(given)
    twice = [{"key": 1, "value": "a"}, {"key": 1, "value": "b"}]
    assert "has the same key twice" in refused(given, column([twice], kind)).message
    none = [{"key": None, "value": "a"}]
    assert refused(given, column([none], kind)).context["row"] == 0
    given = as_json(avro(pair({"type": "int", "java-class": "java.lang.Character"})))
    half = [{"key": 0xD800, "value": "a"}]
    assert "half of a character" in refused(given, column([half], kind)).message


TREE = named(
    {
        "at": ["null", logical("long", "timestamp-millis")],
        "day": ["null", logical("int", "date")],
        "map": ["null", pair("int", logical("int", "time-millis"))],
        "x": ["null", "double"],
        "next": ["null", "L"],
    },
    "L",
)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('{ "x":1e3 }', None),
        ('{"at":1700000000123}', '{"at":"2023-11-14T22:13:20.123000Z"}'),
        ('{"at":"2023-11-14T22:13:20.123456789Z","x":1e3}', None),
        ('{"at":1700000000.123456789}', None),
        ('{"day":19675}', None),
        ('{"day":[2023,11,14]}', None),
        ('{"map":[{"key":1,"value":5}]}', '{"map":{"1":"00:00:00.005000"}}'),
        ('{"map":{"1":5}}', '{"map":{"1":"00:00:00.005000"}}'),
        ('{"map":{"1":"22:13"},"next":{"x":1}}', None),
    ],
)
def test_json_text_of_records_has_the_same_forms(text: str, written: str | None) -> None:
    given = as_json(avro(TREE))
    rows = column([{"next": text}], pa.struct([("next", pa.string())]))
    found = json.loads(payloads(given, rows)[0] or b"", parse_float=str)["f0"]["next"]
    expected = json.loads(written or text, parse_float=str)
    assert {name: value for name, value in found.items() if value is not None} == expected


@pytest.mark.parametrize(
    "text", ['{"at":"2023-11-14T22:13:20"}', '{"at":1.5}', '{"map":{"x":5}}', '{"at":[2023]}']
)
def test_json_text_of_uncertain_times_is_refused(text: str) -> None:
    given = as_json(avro(TREE))
    rows = column([{"next": text}], pa.struct([("next", pa.string())]))
    assert "is not JSON text of its field" in refused(given, rows).message


@pytest.mark.parametrize(
    ("kind", "default", "text"),
    [
        (logical("long", "timestamp-micros"), 0, '"1970-01-01T00:00:00.000000Z"'),
        (logical("int", "time-millis"), 5, '"00:00:00.005000"'),
        (logical("int", "date"), 10, "10"),
        ("float", 0.1, "0.1"),
        ("double", "NaN", '"NaN"'),
        ("bytes", "\u00ff", '"/w=="'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "\u00ff",
         "-0.01"),
        (pair("int"), [{"key": 1, "value": "a"}], '{"1":"a"}'),
        ({"type": "array", "items": "int"}, [1, 2], "[1,2]"),
    ],
)  # fmt: skip
def test_defaults_are_written_like_values(kind: Any, default: Any, text: str) -> None:
    given = as_json(avro(kind, "int", default=default))
    rows = column([1], pa.int64(), "f1")
    assert payloads(given, rows) == [f'{{"f0":{text},"f1":1}}'.encode()]


def test_default_bytes_are_text_where_the_settings_say_so() -> None:
    given = as_json(avro("bytes", "int", default="h\u00c3\u00a4"))
    rows = column([1], pa.int64(), "f1")
    schema = replace(info(given), json_bytes="text")
    found = PayloadEncoder(schema, rows.schema).encode(rows).values[0]
    assert found == '{"f0":"hä","f1":1}'.encode()


def test_a_default_that_is_no_time_of_a_day() -> None:
    given = as_json(avro(logical("int", "time-millis"), "int", default=-1))
    with pytest.raises(ConfigurationError, match="is not of its type"):
        PayloadEncoder(info(given), pa.schema([("f1", pa.int64())]))


@pytest.mark.parametrize(
    ("kind", "default", "written"),
    [
        (["null", "int"], 5, 5),
        (["int", "null"], 5, 5),
        (["null", "int"], None, None),
        (["null", "string"], "x", "x"),
        (["null", "int"], 2**40, None),
        (["null", {"type": "array", "items": "int"}], [1], None),
        ([{"type": "array", "items": "int"}, "null"], [1], None),
        ({"type": "array", "items": "int"}, [1], [1]),
    ],
)
@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
def test_one_rule_for_defaults(format_: str, kind: Any, default: Any, written: Any) -> None:
    """A column that may be null has a default only if SQL can fill it in: a plain value."""
    given = (format_, avro(kind, "int", default=default)[1])
    assert again(given, column([1], pa.int64(), "f1")) == [{"f0": written, "f1": 1}]


def test_link_is_as_before() -> None:
    """JSON text without times is written as it is."""
    rows = column([{"v": 1, "next": ' {"next":null, "v":2} '}],
                  pa.struct([("v", pa.int64()), ("next", pa.string())]))  # fmt: skip
    expected = b'{"f0":{"v":1,"next":{"next":null, "v":2}}}'
    assert payloads(as_json(avro(LINK)), rows) == [expected]
