"""KEY_VALUE: inner schemas of all kinds, both encodings, nulls, Debezium, and broken bytes."""

import base64
import itertools
import json
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from reader.model import SchemaInfo
from reader.payload import payload_fields
from tests.support.schemas import avro_record
from tests.unit.payload.cases import (
    Given,
    avro_bytes,
    decode,
    decoder,
    json_bytes,
    key_value,
    rows,
    versions,
)


def record(**fields: Any) -> dict[str, Any]:
    return avro_record("R", fields)


def inline(key: bytes | None, value: bytes | None) -> bytes:
    return b"".join(
        struct.pack(">i", -1) if half is None else struct.pack(">i", len(half)) + half
        for half in (key, value)
    )


REC = record(a="int", b=["null", "string"])
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
LIST = {"type": "array", "items": "int"}
# Inner schema, Arrow type, bytes, value.
HALVES: dict[str, tuple[Given, pa.DataType, bytes, Any]] = {
    "avro": (("AVRO", REC), STRUCT, avro_bytes(REC, {"a": 1, "b": "x"}), {"a": 1, "b": "x"}),
    "json": (("JSON", REC), STRUCT, b'{"b":"x","a":1}', {"a": 1, "b": "x"}),
    "avro list": (("AVRO", LIST), pa.list_(pa.int64()), b"\x02\x04\0", [2]),
    "json list": (("JSON", LIST), pa.list_(pa.int64()), b"[2]", [2]),
    "avro text": (("AVRO", '"string"'), pa.string(), b"\x04hi", "hi"),
    "json text": (("JSON", '"string"'), pa.string(), b'"hi"', "hi"),
    "string": (("STRING", ""), pa.string(), b"hi", "hi"),
    "bytes": (("BYTES", ""), pa.binary(), b"\xff", b"\xff"),
    "none": (("NONE", ""), pa.binary(), b"", b""),
    "int32": (("INT32", ""), pa.int64(), b"\0\0\0\7", 7),
    "boolean": (("BOOLEAN", ""), pa.bool_(), b"\1", True),
    "local date": (("LOCAL_DATE", ""), pa.date32(), struct.pack(">q", 3), 3),
}


@pytest.mark.parametrize(("key", "value"), [*itertools.product(HALVES, HALVES)])
def test_every_pair_of_schemas(key: str, value: str) -> None:
    (key_schema, key_type, k, key_column), (value_schema, value_type, v, value_column) = (
        HALVES[key],
        HALVES[value],
    )
    expected = [
        {"key": key_column, "value": value_column},
        {"key": None, "value": value_column},
        {"key": key_column, "value": None},
        {"key": None, "value": None},
    ]
    pairs = [(k, v), (None, v), (k, None), (None, None)]
    for encoding in ("INLINE", "SEPARATED", None):
        schema = key_value(key_schema, value_schema, encoding)
        assert payload_fields(versions(schema)) == pa.schema(
            [("key", key_type), ("value", value_type)]
        )
        made = decoder(schema)
        if encoding == "SEPARATED":
            assert made.needs_keys
            found = decode(made, [v for _, v in pairs], keys=[k for k, _ in pairs])
        else:
            assert not made.needs_keys
            found = decode(made, [inline(*pair) for pair in pairs] + [None])
            assert rows(found)[-1] == {"key": None, "value": None}
        assert rows(found)[:4] == expected
        assert not found.problems


def test_halves_are_read_and_pruned_one_by_one() -> None:
    schema = key_value(("AVRO", REC), ("JSON", REC))
    payloads = [
        inline(b"\x02", b'{"a":1}'),
        inline(b"\x02\0", b'{"a":"x"}'),
        inline(b"\x02", b"{"),
        inline(b"\x02\0", b'{"a":3}'),
    ]
    found = decode(decoder(schema), payloads)
    assert rows(found) == [
        {"key": None, "value": {"a": 1, "b": None}},
        {"key": {"a": 1, "b": None}, "value": {"a": None, "b": None}},
        {"key": None, "value": None},
        {"key": {"a": 1, "b": None}, "value": {"a": 3, "b": None}},
    ]
    assert found.problems[0] == "malformed Avro at key.b: the payload ends too early"
    assert found.problems[1] == "field 'value.a' is not an integer of 64 bits"
    assert list(found.problems) == [0, 1, 2]
    for wanted in (["key"], ["value"], []):
        some = decode(decoder(schema, wanted=wanted), payloads)
        assert some.problems == found.problems
        assert dict(some.arrays) == {name: found.arrays[name] for name in wanted}


GOOD = inline(b"k", b"v")
RANGE = "malformed KeyValue: a length is out of range"


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (b"", RANGE),
        (GOOD[:3], RANGE),
        (GOOD[:5], RANGE),
        (GOOD[:8], RANGE),
        (GOOD[:-1], RANGE),
        (struct.pack(">i", -2) + GOOD[5:], RANGE),
        (struct.pack(">i", 0x7FFFFFFF) + GOOD[4:], RANGE),
        (struct.pack(">i", -0x80000000) + GOOD[4:], RANGE),
        (struct.pack(">i", 4) + GOOD[4:], RANGE),
        (inline(b"k", None)[:-1], RANGE),
    ],
)
def test_broken_inline(payload: bytes, problem: str) -> None:
    made = decoder(key_value(("STRING", ""), ("STRING", "")))
    found = decode(made, [GOOD, payload, GOOD])
    both = {"key": "k", "value": "v"}
    assert rows(found) == [both, {"key": None, "value": None}, both]
    assert found.problems == {1: problem}


def test_bytes_after_an_inline_value_are_kept() -> None:
    made = decoder(key_value(("STRING", ""), ("STRING", "")))
    found = decode(made, [GOOD + b"!", inline(None, None) + b"!"])
    assert rows(found) == [{"key": "k", "value": "v"}, {"key": None, "value": None}]
    assert set(found.problems.values()) == {"malformed KeyValue: bytes follow the value"}


@pytest.mark.parametrize(
    ("definition", "properties"),
    [
        ("", {}),
        ("[]", {}),
        ('{"key":""}', {}),
        ('{"key":"","value":""}', {"kv.encoding.type": "OTHER"}),
        ('{"key":"","value":""}', {"key.schema.properties": "[]"}),
        ('{"key":"","value":""}', {"key.schema.properties": "{"}),
        ("[" * 100_000, {}),
    ],
)
def test_what_is_no_key_value_schema(definition: str, properties: dict[str, str]) -> None:
    infos = [SchemaInfo(4, "KEY_VALUE", definition, properties)]
    assert not payload_fields(infos).names
    found = decode(decoder(("KEY_VALUE", definition, properties)), [b"x", None])
    assert list(found.problems) == [0]
    assert found.problems[0].startswith("schema version 0: not a KeyValue schema")


def test_an_inner_schema_that_cannot_be_used_leaves_the_other() -> None:
    made = decoder(key_value(("STRING", ""), ("KEY_VALUE", "")))
    found = decode(made, [GOOD, inline(b"k", None)])
    assert rows(found) == [{"key": "k"}, {"key": "k"}]
    assert found.problems == {0: "schema type KEY_VALUE is not supported"}


def test_without_types_both_are_bytes() -> None:
    made = decoder(("KEY_VALUE", '{"key":"","value":""}'))
    assert rows(decode(made, [GOOD])) == [{"key": b"k", "value": b"v"}]


def test_without_a_version_nothing_is_guessed() -> None:
    other = key_value(("STRING", ""), ("STRING", ""))
    found = decode(decoder(("JSON", REC), other), [inline(b"{}", b"{}"), None], -1)
    assert found.problems == {0: "the message has no schema version"}
    # Where there has been one version alone, and both halves are wholly values of it:
    assert rows(decode(decoder(other), [inline(b"k", b"v")], -1)) == [{"key": "k", "value": "v"}]


def test_keys_that_were_not_read_are_a_problem() -> None:
    found = decode(decoder(key_value(("STRING", ""), ("STRING", ""), "SEPARATED")), [b"v"])
    assert rows(found) == [{"key": None, "value": "v"}]
    assert found.problems == {0: "the message's key was not read"}


def test_versions_of_both_encodings_share_their_columns() -> None:
    wider = record(a="long", c="string")
    schemas = [
        key_value(("INT32", ""), ("AVRO", REC), "INLINE"),
        key_value(("INT64", ""), ("JSON", wider), "SEPARATED"),
        key_value(("STRING", ""), ("AVRO", wider), "SEPARATED"),
    ]
    value = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.string())])
    assert payload_fields(versions(*schemas)) == pa.schema([("key", pa.int64()), ("value", value)])
    payloads = [
        inline(b"\0\0\0\1", avro_bytes(REC, {"a": 1, "b": "x"})),
        json_bytes({"a": 2, "c": "y"}),
        avro_bytes(wider, {"a": 3, "c": "z"}),
        None,
    ]
    found = decode(
        decoder(*schemas), payloads, [0, 1, 2, 1], [b"no", b"\0" * 7 + b"\2", b"k", None]
    )
    assert rows(found) == [
        {"key": 1, "value": {"a": 1, "b": "x", "c": None}},
        {"key": 2, "value": {"a": 2, "b": None, "c": "y"}},
        {"key": None, "value": {"a": 3, "b": None, "c": "z"}},
        {"key": None, "value": None},
    ]
    assert found.problems == {2: "key is string, its column is another type"}


def test_a_topic_that_changes_its_kind_has_a_column_of_each() -> None:
    """AUTO_PRODUCE: a record, text, a KeyValue, and a record with fields named like its halves."""
    schemas: list[Given] = [
        ("AVRO", REC),
        ("STRING", ""),
        key_value(("AVRO", REC), ("JSON", REC), "SEPARATED"),
        ("JSON", record(key="int", value="string", a="int")),
        key_value(("AVRO", REC), ("BYTES", "")),
    ]
    fields = payload_fields(versions(*schemas))
    assert fields == pa.schema(
        [("a", pa.int64()), ("b", pa.string()), ("value", pa.string()), ("key", STRUCT),
         ("value_2", STRUCT), ("key_2", pa.int64()), ("value_3", pa.string())]
    )  # fmt: skip
    none = dict.fromkeys(fields.names)
    rec = avro_bytes(REC, {"a": 1, "b": "x"})
    found = decode(
        decoder(*schemas),
        [rec, b"text", b'{"a":2}', b'{"key":3,"value":"w","a":4}', inline(rec, b"v"), b"?"],
        [0, 1, 2, 3, 4, 9],
        [None, b"\xff", rec, b"\xff", None, None],
    )
    assert rows(found) == [
        none | {"a": 1, "b": "x"},
        none | {"value": "text"},
        none | {"key": {"a": 1, "b": "x"}, "value_2": {"a": 2, "b": None}},
        none | {"key_2": 3, "value_3": "w", "a": 4},
        none | {"key": {"a": 1, "b": "x"}},
        none,
    ]
    assert found.problems == {
        4: "value is binary, its column is another type",
        5: "schema version 9 is not in the registry",
    }


def debezium(columns: list[dict[str, Any]]) -> Given:
    """What Pulsar's Debezium sources register: JSON in Kafka Connect's layout, SEPARATED."""
    row = {"type": "record", "name": "Value", "namespace": "db.inventory.t", "fields": columns}
    source = {"type": "record", "name": "Source", "namespace": "io.debezium.connector.mysql",
              "fields": [{"name": "version", "type": "string"},
                         {"name": "ts_ms", "type": "long"},
                         {"name": "snapshot", "type": [
                             {"type": "string", "connect.version": 1, "connect.default": "false",
                              "connect.parameters": {"allowed": "true,last,false"},
                              "connect.name": "io.debezium.data.Enum"}, "null"],
                          "default": "false"}],
              "connect.name": "io.debezium.connector.mysql.Source"}  # fmt: skip
    envelope = {"type": "record", "name": "Envelope", "namespace": "db.inventory.t", "fields": [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ], "connect.name": "db.inventory.t.Envelope"}  # fmt: skip
    key = {
        "type": "record",
        "name": "Key",
        "namespace": "db.inventory.t",
        "fields": [{"name": "id", "type": "int"}],
        "connect.name": "db.inventory.t.Key",
    }
    return key_value(("JSON", key), ("JSON", envelope), "SEPARATED")


def connect_decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "scale": scale, "precision": precision, "connect.version": 1,
            "connect.parameters": {"scale": str(scale)}, "logicalType": "decimal",
            "connect.name": "org.apache.kafka.connect.data.Decimal"}  # fmt: skip


def test_decimals_of_kafka_connect() -> None:
    schema = debezium(
        [
            {"name": "p", "type": connect_decimal(10, 2)},
            {"name": "w", "type": connect_decimal(64, 1)},
        ]
    )
    cases: list[tuple[str, str, Any, Any]] = [
        ('"MDk="', '"AQ=="', Decimal("123.45"), "0.1"),
        ('"/w=="', "-12.5", Decimal("-0.01"), "-12.5"),
        ("1.5", '"' + base64.b64encode(b"\x7f" * 26).decode() + '"', Decimal("1.50"),
         str(int.from_bytes(b"\x7f" * 26, "big"))[:-1] + "."
         + str(int.from_bytes(b"\x7f" * 26, "big"))[-1]),
        ('""', '"' + base64.b64encode(b"\x7f" * 27).decode() + '"', None, None),
        ('"AlQL5AA="', '"x"', None, None),
        ('"AlQL4/8="', "true", Decimal("99999999.99"), None),
        ('"123.45"', '"AR=="', None, None),
    ]  # fmt: skip
    payloads = [f'{{"after":{{"p":{p},"w":{w}}}}}'.encode() for p, w, _, _ in cases]
    found = decode(decoder(schema), payloads, keys=[b'{"id":7}'] * len(cases))
    after = [row["value"]["after"] for row in rows(found)]
    assert after == [{"p": p, "w": w} for _, _, p, w in cases]
    assert list(found.problems) == [3, 4, 5, 6]


def test_debezium() -> None:
    schema = debezium([{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}])
    row = pa.struct([("id", pa.int64()), ("name", pa.string())])
    source = pa.struct([("version", pa.string()), ("ts_ms", pa.int64()), ("snapshot", pa.string())])
    assert payload_fields(versions(schema)) == pa.schema(
        [
            ("key", pa.struct([("id", pa.int64())])),
            (
                "value",
                pa.struct(
                    [("before", row), ("after", row), ("source", source), ("op", pa.string()),
                     ("ts_ms", pa.int64())]
                ),
            ),
        ]
    )  # fmt: skip
    change = {
        "before": None,
        "after": {"id": 7, "name": "ä"},
        "source": {"version": "2.7", "ts_ms": 5, "snapshot": "false"},
        "op": "c",
        "ts_ms": 6,
    }
    # A deletion is followed by a tombstone: a null value.
    payloads = [json.dumps(change).encode(), None]
    found = decode(decoder(schema), payloads, keys=[b'{"id":7}', b'{"id":7}'])
    assert rows(found) == [{"key": {"id": 7}, "value": change}, {"key": {"id": 7}, "value": None}]
    assert not found.problems
