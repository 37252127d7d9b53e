"""Columns of JSON text, for records within themselves: of the schema, in Avro and in JSON."""

import datetime
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reader.encode.payload.encoder import PayloadEncoder
from reader.errors import ConfigurationError
from reader.payload import PayloadDecoder, payload_fields
from tests.support.schemas import avro_record
from tests.unit.encode.writing import again, as_json, avro, column, info, refused
from tests.unit.payload.test_types import FIXED, FIXED_UUID, LINK, UUID, logical, named

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"v":1', "Expecting ',' delimiter"),
        ("[]", "it is not an object"),
        ('{"v":NaN}', "NaN is not a number of JSON"),
        ('{"v":1,"v":2}', "it has a key twice"),
    ],
)
def test_text_that_is_not_json(text: str, why: str) -> None:
    row = {"v": 1, "next": '{"v":2,"next":null}'}
    kind = pa.struct([("v", pa.int64()), ("next", pa.string())])
    for given in (avro(LINK), as_json(avro(LINK))):
        error = refused(given, column([row, row | {"next": text}], kind))
        assert error.message.startswith("column 'f0.next', row 1 of the batch: is not JSON text ")
        assert why in error.message


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{}", "int is an integer, not None"),
        ('{"v":null}', "int is an integer, not None"),
        ('{"v":1.0}', "int is an integer, not '1.0'"),
        ('{"v":2147483648}', "int has a range, not 2147483648"),
        ('{"v":1,"x":2}', "a record has only its fields"),
        ('{"v":1,"next":{"v":"a"}}', "no branch of a union takes {'v': 'a'}"),
        ('{"v":1,"next":{}}', "no branch of a union takes {}"),
    ],
)
def test_json_text_that_its_record_does_not_take(format_: str, text: str, why: str) -> None:
    kind = pa.struct([("v", pa.int64()), ("next", pa.string())])
    error = refused((format_, avro(LINK)[1]), column([{"v": 1, "next": text}], kind))
    assert why in error.message


def linked(kind: Any) -> Any:
    """A record of one value that may hold another of itself."""
    return named({"v": kind, "next": ["null", "L"]}, "L")


@pytest.mark.parametrize("format_", ["AVRO", "JSON"])
@pytest.mark.parametrize(
    ("kind", "good", "bad", "why"),
    [
        ("double", "0.1", '"x"', "double is a number that a double holds, not 'x'"),
        ("double", '"NaN"', "true", "double is a number, not True"),
        ("double", "9007199254740992", "9007199254740993",
         "double is a number that a double holds, not 9007199254740993"),
        ("double", "1e300", "1e400", "double is a number that a double holds, not '1e400'"),
        ("double", "5e-324", "1e-400", "double is a number that a double holds, not '1e-400'"),
        ("double", "1" + "0" * 22, "1" * 400, "double is a number that a double holds, not 1111"),
        ("float", "0.1", "1e39", "float has a range, which '1e39' is out of"),
        ("float", "1", "1" * 400, "float is a number that a double holds, not 1111"),
        (logical("int", "time-millis"), "86399999", "86400000",
         "time-millis is a time of a day, not 86400000"),
        (logical("long", "time-micros"), "86399999999", "-1",
         "time-micros is a time of a day, not -1"),
        (logical("string", "uuid"), f'"{UUID}"', '"a"', "a UUID is written as one, not 'a'"),
        (FIXED_UUID, f'"{UUID.upper()}"', f'"{{{UUID}}}"', "a UUID is written as one, not '{6ba7"),
        ("string", '"a"', r'"\ud800"', "surrogates not allowed"),
        (ENUM, '"B"', '"C"', "an enum has such symbols only, not 'C'"),
        (FIXED, '"aGk="', '"aA=="', "fixed takes 2 bytes, not 'aA=='"),
    ],
)  # fmt: skip
def test_values_in_json_text(format_: str, kind: Any, good: str, bad: str, why: str) -> None:
    given = (format_, json.dumps(named({"f0": linked(kind)})))
    fields = payload_fields([info(given)])
    own = fields.field("f0").type.field("v").type
    value = {pa.string(): UUID if "uuid" in why.lower() else "B", pa.binary(): b"hi"}.get(own, 1)

    def row(text: str) -> pa.RecordBatch:
        record = {"v": value, "next": f'{{"v":{text},"next":null}}'}
        return pa.RecordBatch.from_pylist([{"f0": record}], fields)

    assert again(given, row(good))[0]["f0"]["next"] is not None
    error = refused(given, row(bad))
    assert error.message.startswith(
        "column 'f0.next', row 0 of the batch: is not JSON text of its "
    )
    assert why in error.message


@pytest.mark.parametrize(("format_", "depth"), [("AVRO", 120), ("JSON", 250)])
def test_json_text_as_deep_as_readers_allow(format_: str, depth: int) -> None:
    text = '{"v":1,"next":' * depth + "null" + "}" * depth
    kind = pa.struct([("v", pa.int64()), ("next", pa.string())])
    [row] = again((format_, avro(LINK)[1]), column([{"v": 1, "next": text}], kind))
    assert row["f0"]["next"] == text


def test_unions_of_json_text_are_not_tried_again_at_each_level() -> None:
    """Which of two records of the same names it is, its last field alone would tell."""
    names = {"next": ["null", "A", "B"], "w": "int"}
    other = named(names, "B")
    first = named({"next": ["null", "A", other], "w": "string"}, "A")
    text = '{"next":' * 60 + "null" + ',"w":true}' * 60
    for format_ in ("AVRO", "JSON"):
        given = (format_, json.dumps(named({"f0": ["null", first]})))
        columns = payload_fields([info(given)])
        row = pa.RecordBatch.from_pylist([{"f0": {"next": {"member0": text}, "w": "x"}}], columns)
        assert "no branch of a union takes" in refused(given, row).message


@pytest.mark.parametrize("text", ['"a"', "5.50", "[1,null]", '{"a":{}}', "true"])
def test_a_record_without_fields_takes_any_json(text: str) -> None:
    given = as_json(avro(named({}, "Object")))
    assert again(given, column([text], pa.string())) == [{"f0": text}]
    for wrong in ("null", "x", "NaN"):
        error = refused(given, column([wrong], pa.string()))
        assert "is not JSON text of its field" in error.message


def test_bytes_are_written_as_the_topic_has_them() -> None:
    given = replace(info(as_json(avro("bytes"))), json_bytes="text")
    batch = column([b"test", 'h\u00e4llo"'.encode(), b""], pa.binary())
    written = PayloadEncoder(given, batch.schema).encode(batch).values
    assert [written[i] for i in range(3)] == [
        b'{"f0":"test"}', '{"f0":"h\u00e4llo\\""}'.encode(), b'{"f0":""}'
    ]  # fmt: skip
    made = PayloadDecoder([given], payload_fields([given]))
    found = made.decode(written, np.zeros(3, np.int64))
    assert found.arrays["f0"].to_pylist() == batch["f0"].to_pylist()
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        PayloadEncoder(given, batch.schema).encode(column([b"\xff"], pa.binary()))


def test_json_text_in_a_union_is_read_again_in_its_member() -> None:
    """Tree is text inside of itself. Times are numbers there, as only first forms count."""
    loop = avro_record("Loop", {"w": "string", "again": ["null", "Loop"]})
    tree = avro_record(
        "Tree", {"at": logical("long", "timestamp-millis"), "next": ["null", "Tree", loop]}
    )
    given = as_json(avro(tree))
    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    texts = [
        {"member0": '{"at":5,"next":null}', "member1": None},
        {"member0": '{"at":5,"next":{"w":"x"}}', "member1": None},
        {"member0": None, "member1": {"w": "x", "again": '{"w":"y","again":{"w":"z"}}'}},
        None,
    ]
    rows = column(
        [{"at": at, "next": text} for text in texts], payload_fields([info(given)])[0].type
    )
    assert [row["f0"]["next"] for row in again(given, rows)] == texts
    iso = {"member0": '{"at":"2024-01-01T00:00:00Z"}', "member1": None}
    error = refused(given, column([{"at": at, "next": iso}], rows.schema[0].type))
    assert "long is an integer" in error.message
