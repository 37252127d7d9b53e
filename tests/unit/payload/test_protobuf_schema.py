"""Protobuf schemas: how files are put together, versions, and those of no use."""

import json
import struct
from typing import Any

import pyarrow as pa
import pytest

from reader.payload import payload_fields
from reader.payload.protobuf.schema import MAX_NODES
from tests.unit.payload.cases import Given, decode, decoder, key_value, rows, versions
from tests.unit.payload.protobuf_cases import (
    ENUM,
    INNER,
    UNKNOWN,
    WIDE,
    message_class,
    native,
    proto_file,
    sized,
    tag,
    written,
)


def test_imports_of_any_order_and_nested_roots() -> None:
    base = proto_file({**ENUM, **INNER}, package="b", name="b.proto", syntax="proto2")
    middle = proto_file({"message J": ["b.I i = 1"]}, package="c", name="c.proto",
                        imports=("b.proto",))  # fmt: skip
    top = proto_file({"message M": ["c.J j = 1", "b.I i = 2"]}, imports=("c.proto", "b.proto"))
    made = message_class(base, middle, top)
    payload = written(made, j={"i": {"a": 1}}, i={"s": "x"})
    for files in ((base, middle, top), (middle, base, top)):
        assert rows(decode(decoder(native(*files)), [payload])) == [
            {"j": {"i": {"a": 1, "s": None}}, "i": {"a": None, "s": "x"}}
        ]
    top.message_type[0].nested_type.add().CopyFrom(base.message_type[0])
    nested = native(base, middle, top, root="t.M.I")
    assert rows(decode(decoder(nested), [b"\x08\x05"])) == [{"a": 5, "s": ""}]


GOOD = json.loads(native(proto_file({"message M": ["int32 i = 1"]}))[1])
LOOP = [proto_file({"message M": []}, name=a, package=a[0], imports=(b,))
        for a, b in (("a.proto", "b.proto"), ("b.proto", "a.proto"))]  # fmt: skip


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (("PROTOBUF_NATIVE", ""), "not a Protobuf schema"),
        (("PROTOBUF_NATIVE", "[]"), "not a Protobuf schema"),
        (("PROTOBUF_NATIVE", "{}"), "not a Protobuf schema"),
        (("PROTOBUF_NATIVE", {**GOOD, "fileDescriptorSet": "?"}), "not a Protobuf schema"),
        (("PROTOBUF_NATIVE", {**GOOD, "fileDescriptorSet": "/w=="}), "not a Protobuf schema"),
        (("PROTOBUF_NATIVE", {**GOOD, "rootMessageTypeName": "x"}), "not a Protobuf schema"),
        (("PROTOBUF_NATIVE", {**GOOD, "rootFileDescriptorName": "x"}), "not a Protobuf schema"),
        (native(proto_file({"message M": ["X x = 1"]})), "not a Protobuf schema"),
        (native(proto_file({"message M": []}, imports=("x.proto",))), "not a Protobuf schema"),
        (native(*LOOP, root="b.M"), "not a Protobuf schema"),
        (("PROTOBUF", "{}"), "the Protobuf schema does not have the numbers"),
        (("PROTOBUF", "{}", {"__PARSING_INFO__": "{"}), "not a Protobuf schema"),
        (("PROTOBUF", "{}", {"__PARSING_INFO__": "[1]"}), "not a Protobuf schema"),
        (("PROTOBUF", "{}", {"__PARSING_INFO__": '[{"name":"a"}]'}), "not a Protobuf schema"),
    ],
)
def test_schemas_that_cannot_be_used(schema: Given, reason: str) -> None:
    found = decode(decoder(schema), [b"\0", None, b""])
    assert not found.arrays
    assert list(found.problems) == [0, 2]
    assert found.problems[0].startswith(f"schema version 0: {reason}")


def test_a_message_without_fields() -> None:
    found = decode(decoder(native(proto_file({"message M": []}))), [b"", UNKNOWN, None])
    assert not found.arrays
    assert found.problems == {1: "unknown field 99 of t.M"}


def test_a_tree_of_types_stops_at_its_bound() -> None:
    wide = {f"message S{i}": [f"int32 g{j} = {j + 1}" for j in range(200)] for i in range(90)}
    root = {"message M": [f"S{i} s{i} = {i + 1}" for i in range(90)]}
    assert len(payload_fields(versions(native(proto_file(wide | root))))) == 90
    assert MAX_NODES < 200 * 110


def parsing_info(*fields: tuple[int, str, str, str]) -> Given:
    """The PROTOBUF schema of fields (number, name, type, label), as ProtobufSchema writes it."""
    info = [
        {"number": number, "name": name, "type": kind, "label": f"LABEL_{label}",
         "definition": None}
        for number, name, kind, label in fields
    ]  # fmt: skip
    avro = {"type": "record", "name": "M", "fields": []}
    return "PROTOBUF", avro, {"__PARSING_INFO__": json.dumps(info)}


def test_protobuf_with_nothing_but_its_top_level_fields() -> None:
    schema = parsing_info(
        (1, "i", "INT32", "OPTIONAL"), (2, "m", "MESSAGE", "OPTIONAL"),
        (3, "l", "MESSAGE", "REPEATED"), (5, "e", "ENUM", "OPTIONAL"),
        (6, "es", "ENUM", "REPEATED"), (9, "n", "INT32", "REPEATED"), (10, "u", "UINT64",
        "REQUIRED"), (11, "s", "STRING", "OPTIONAL"), (16, "g", "GROUP", "OPTIONAL"),
    )  # fmt: skip
    assert payload_fields(versions(schema)) == pa.schema(
        [("i", pa.int64()), ("m", pa.binary()), ("l", pa.list_(pa.binary())), ("e", pa.int64()),
         ("es", pa.list_(pa.int64())), ("n", pa.list_(pa.int64())), ("u", pa.string()),
         ("s", pa.string())]
    )  # fmt: skip
    none = dict.fromkeys("imleus") | {"l": [], "es": [], "n": []}
    payload = written(message_class(WIDE), i=-1, m={"a": 1}, l=[{"s": "x"}, {}], e=1, n=[1, 2])
    found = decode(
        decoder(schema),
        [b"", payload, b"\x28\x07", UNKNOWN, tag(16, 3) + tag(16, 4), sized(11, b"\xff"),
         sized(2, b"a") + sized(2, b"b"), b"\x08"],
    )  # fmt: skip
    assert rows(found) == [
        none,
        none | {"i": -1, "m": b"\x08\x01", "l": [sized(2, b"x"), b""], "e": 1, "n": [1, 2]},
        none | {"e": 7},
        none,
        none,
        none,
        none | {"m": b"b"},
        dict.fromkeys(none),
    ]
    assert found.problems == {
        3: "unknown field 99 of Payload",
        4: "unknown field 16 of Payload",
        5: "field 's' is not UTF-8",
        6: "field 'Payload.m' is there more than once",
        7: found.problems[7],
    }


def test_versions_make_one_set_of_columns() -> None:
    v0 = proto_file({**INNER, "message M": ["int32 i = 1", "I m = 2", "int32 gone = 3"]})
    v1 = proto_file(
        {"message I": ["int64 a = 1", "double d = 3"],
         "message M": ["uint32 i = 1", "I m = 2", "string added = 4", "string gone = 3"]}
    )  # fmt: skip
    numbers = [{"name": "i", "type": "double"}, {"name": "added", "type": ["null", "string"]}]
    avro = {"type": "record", "name": "R", "fields": numbers}
    schemas: list[Given] = [native(v0), native(v1), ("AVRO", avro)]
    inner = pa.struct([("a", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
    assert payload_fields(versions(*schemas)) == pa.schema(
        [("i", pa.int64()), ("m", inner), ("gone", pa.int64()), ("added", pa.string())]
    )
    payloads = [
        written(message_class(v0), i=1, m={"a": 2}, gone=3),
        written(message_class(v1), i=4, m={"d": 0.5}, added="x"),
        written(message_class(v1), gone="lost"),
    ]
    found = decode(decoder(*schemas), payloads, [0, 1, 1])
    assert rows(found) == [
        {"i": 1, "m": {"a": 2, "s": "", "d": None}, "gone": 3, "added": None},
        {"i": 4, "m": {"a": 0, "s": None, "d": 0.5}, "gone": None, "added": "x"},
        {"i": 0, "m": None, "gone": None, "added": ""},
    ]
    # It is "" in the second message, too.
    why = "field 'gone' is string in schema version 1, its column is int64"
    assert found.problems == {1: why, 2: why}


def test_an_integer_fits_a_column_of_doubles() -> None:
    file = proto_file({"message M": ["int64 f = 1"]})
    fields = pa.schema([("f", pa.float64())])
    made = decoder(native(proto_file({"message M": ["double f = 1"]})), native(file), fields=fields)
    payloads = [written(message_class(file), f=v) for v in (7, 1 << 53, (1 << 53) + 1)]
    found = decode(made, payloads, 1)
    assert rows(found) == [{"f": 7.0}, {"f": 2.0**53}, {"f": None}]
    assert found.problems == {2: "field 'f' is out of the range of its column"}


def test_a_table_with_other_columns_than_the_registry() -> None:
    table = pa.schema(
        [("a", pa.string()), ("m", pa.struct([("s", pa.string()), ("old", pa.int64())]))]
    )
    made = decoder(native(WIDE), fields=table)
    values: list[dict[str, Any]] = [
        {"a": 1}, {"m": {"a": 1, "s": "x"}}, {"m": {"s": "y"}}, {"l": [{}]}, {}
    ]  # fmt: skip
    found = decode(made, [written(message_class(WIDE), **value) for value in values])
    assert rows(found) == [
        {"a": None, "m": None},
        {"a": None, "m": {"s": "x", "old": None}},
        {"a": None, "m": {"s": "y", "old": None}},
        {"a": None, "m": None},
        {"a": None, "m": None},
    ]
    assert found.problems == {
        0: "field 'a' is int64 in schema version 0, its column is string",
        1: "field 'm.a' of schema version 0 has no column",
        3: "field 'l' of schema version 0 has no column",
    }


@pytest.mark.parametrize("encoding", ["INLINE", "SEPARATED"])
def test_in_a_key_value(encoding: str) -> None:
    schema = key_value(native(proto_file(INNER), root="t.I"), parsing_info(
        (1, "a", "INT32", "OPTIONAL"), (2, "s", "STRING", "OPTIONAL")), encoding)  # fmt: skip
    kind = pa.struct([("a", pa.int64()), ("s", pa.string())])
    assert payload_fields(versions(schema)) == pa.schema([("key", kind), ("value", kind)])
    halves = [(b"\x08\x01", sized(2, b"x")), (b"", b""), (None, UNKNOWN)]
    if encoding == "SEPARATED":
        found = decode(decoder(schema), [v for _, v in halves], keys=[k for k, _ in halves])
    else:
        packed = [
            b"".join(struct.pack(">i", -1 if h is None else len(h)) + (h or b"") for h in pair)
            for pair in halves
        ]
        found = decode(decoder(schema), packed)
    empty = {"a": None, "s": None}
    assert rows(found) == [
        {"key": {"a": 1, "s": ""}, "value": {"a": None, "s": "x"}},
        {"key": {"a": 0, "s": ""}, "value": empty},
        {"key": None, "value": empty},
    ]
    assert found.problems == {2: "unknown field 99 of Payload"}


def test_empty_messages_cannot_blow_up() -> None:
    file = proto_file(
        {"message W": [f"int32 g{j} = {j + 1}" for j in range(500)],
         "message M": ["repeated W l = 1", "int32 i = 2"]}
    )  # fmt: skip
    small, large = b"\x0a\0" * 10 + b"\x10\x05", b"\x0a\0" * 100_000 + b"\x10\x05"
    found = decode(decoder(native(file)), [small, large])
    assert [row["i"] for row in rows(found)] == [5, None]
    assert found.problems == {1: "more than 33554432 bytes of values"}
    assert decode(decoder(native(file), wanted=["i"]), [small, large]).problems == found.problems
