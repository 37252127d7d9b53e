"""Protobuf: docs/types.md row by row, presence, what would be lost, and schemas of no use."""

import json
import math
import re
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, struct_pb2

from reader.payload import payload_fields
from tests.unit.payload.cases import decode, decoder, rows, versions
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
    varint,
    written,
)

DOCS = Path(__file__).parents[3] / "docs" / "types.md"
LINK = {"message L": ["int32 v = 1", "L next = 2"]}
TREE = {"message L": ["map<string, L> children = 1", "bytes raw = 2", "uint64 n = 3"]}

# id in docs/types.md: the field, what it needs, Arrow type, what is written, value of the column.
MAPPING: dict[str, tuple[str, dict[str, list[str]], pa.DataType, Any, Any]] = {
    "bool": ("bool f = 1", {}, pa.bool_(), True, True),
    "int32": ("int32 f = 1", {}, pa.int64(), -5, -5),
    "sint32": ("sint32 f = 1", {}, pa.int64(), -(1 << 31), -(1 << 31)),
    "sfixed32": ("sfixed32 f = 1", {}, pa.int64(), -5, -5),
    "uint32": ("uint32 f = 1", {}, pa.int64(), (1 << 32) - 1, (1 << 32) - 1),
    "fixed32": ("fixed32 f = 1", {}, pa.int64(), (1 << 32) - 1, (1 << 32) - 1),
    "int64": ("int64 f = 1", {}, pa.int64(), -(1 << 63), -(1 << 63)),
    "sint64": ("sint64 f = 1", {}, pa.int64(), -(1 << 63), -(1 << 63)),
    "sfixed64": ("sfixed64 f = 1", {}, pa.int64(), -5, -5),
    "uint64": ("uint64 f = 1", {}, pa.string(), (1 << 64) - 1, "18446744073709551615"),
    "fixed64": ("fixed64 f = 1", {}, pa.string(), 1 << 63, "9223372036854775808"),
    "float": ("float f = 1", {}, pa.float64(), 0.1, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
    "double": ("double f = 1", {}, pa.float64(), -0.0, -0.0),
    "string": ("string f = 1", {}, pa.string(), "ä\0😀", "ä\0😀"),
    "bytes": ("bytes f = 1", {}, pa.binary(), b"\xff", b"\xff"),
    "enum": ("E f = 1", ENUM, pa.string(), 1, "B"),
    "message": ("I f = 1", INNER, pa.struct([("a", pa.int64()), ("s", pa.string())]),
                {"a": 1}, {"a": 1, "s": ""}),
    "message without fields": ("I f = 1", {"message I": []}, pa.string(), {}, "{}"),
    "message inside itself": ("L f = 1", LINK,
                              pa.struct([("v", pa.int64()), ("next", pa.string())]),
                              {"v": 1, "next": {"v": 2, "next": {}}},
                              {"v": 1, "next": '{"next":{},"v":2}'}),
    "repeated": ("repeated int32 f = 1", {}, pa.list_(pa.int64()), [1, 0], [1, 0]),
    "repeated message": ("repeated I f = 1", INNER,
                         pa.list_(pa.struct([("a", pa.int64()), ("s", pa.string())])),
                         [{"a": 1}, {}], [{"a": 1, "s": ""}, {"a": 0, "s": ""}]),
    "map": ("map<string, I> f = 1", INNER,
            pa.map_(pa.string(), pa.struct([("a", pa.int64()), ("s", pa.string())])),
            {"k": {"a": 1}}, [("k", {"a": 1, "s": ""})]),
    "map of integer keys": ("map<int64, bool> f = 1", {}, pa.map_(pa.string(), pa.bool_()),
                            {-7: True}, [("-7", True)]),
    "map of bool keys": ("map<bool, E> f = 1", ENUM, pa.map_(pa.string(), pa.string()),
                         {True: -1}, [("true", "N")]),
    "oneof": ("oneof o string f = 1", {}, pa.string(), "", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPING)
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_protobuf_mapping(name: str, syntax: str) -> None:
    line, others, arrow, value, column = MAPPING[name]
    file = proto_file({**others, "message M": [line, "int32 last = 9"]}, syntax=syntax)
    fields = payload_fields(versions(native(file)))
    assert fields == pa.schema([("f", arrow), ("last", pa.int64())])
    if syntax == "proto2":
        # Everything but lists and maps has presence there.
        column = _without_defaults(column)
    payload = written(message_class(file), f=value, last=3)
    found = decode(decoder(native(file)), [None, payload, payload])
    assert not found.problems
    assert repr(rows(found)[1]) == repr({"f": column, "last": 3})
    assert rows(found)[0] == {"f": None, "last": None}


def _without_defaults(column: Any) -> Any:
    if isinstance(column, list):
        return [_without_defaults(item) for item in column]
    if isinstance(column, tuple):
        return column[0], _without_defaults(column[1])
    if isinstance(column, dict):
        return {name: item or None for name, item in column.items()}
    return column


def test_every_row_of_the_document_has_its_test_and_the_other_way_round() -> None:
    documented = re.findall(r"`test_protobuf_mapping\[(.+?)\]`", DOCS.read_text("utf-8"))
    assert sorted(documented) == sorted(MAPPING)


PRESENCE = ["int32 i = 1", "string s = 2", "E e = 3", "I m = 4", "repeated int32 r = 5",
            "map<string, string> p = 6", "oneof x int32 a = 8", "oneof x I b = 9", "bool z = 10",
            "bytes y = 11", "optional int32 o = 7"]  # fmt: skip


@pytest.mark.parametrize(
    ("syntax", "implicit"),
    [("proto3", {"i": 0, "s": "", "e": "A", "z": False, "y": b""}), ("proto2", {})],
)
def test_presence(syntax: str, implicit: dict[str, Any]) -> None:
    file = proto_file({**ENUM, **INNER, "message M": PRESENCE}, syntax=syntax)
    made = message_class(file)
    inner = (implicit and {"a": 0, "s": ""}) or {"a": None, "s": None}
    payloads = [b"", written(made, o=0, a=0, m={}), written(made, b={}, i=0, s="")]
    found = decode(decoder(native(file)), payloads)
    assert not found.problems
    none = dict.fromkeys("ismoabe") | {"r": [], "p": [], "z": None, "y": None}
    assert rows(found) == [
        none | implicit,
        none | implicit | {"o": 0, "a": 0, "m": inner},
        none | implicit | {"b": inner, "i": 0, "s": ""},
    ]


WIDE2 = proto_file(
    {**ENUM, **INNER, "message G": ["int32 a = 1"],
     "message M": ["int32 i = 1", "E e = 5", "repeated E es = 6", "map<string, E> pe = 15",
                   "group G g = 16", "repeated string s = 17", "map<string, int32> ms = 18"]},
    syntax="proto2",
)  # fmt: skip
ENTRY = sized(1, b"k")


@pytest.mark.parametrize(
    ("file", "payload", "columns", "problem"),
    [
        (WIDE, b"\x08\x01" + UNKNOWN, {"i": 1}, "unknown field 99 of t.M"),
        (WIDE, sized(99, b"x") + b"\x08\x01", {"i": 1}, "unknown field 99 of t.M"),
        (WIDE, sized(2, b"\x08\x01" + UNKNOWN), {"m": {"a": 1, "s": ""}},
         "unknown field 99 of t.I"),
        (WIDE, sized(3, UNKNOWN), {"l": [{"a": 0, "s": ""}]}, "unknown field 99 of t.I"),
        (WIDE, sized(4, ENTRY + sized(2, UNKNOWN)), {"p": [("k", {"a": 0, "s": ""})]},
         "unknown field 99 of t.I"),
        (WIDE, sized(4, ENTRY + UNKNOWN), {}, "unknown field 99 of t.M.PEntry"),
        (WIDE, sized(1, b"x"), {"i": 0}, "field 't.M.i' is written as another type"),
        (WIDE, b"\x28\x07", {"e": None}, "field 'e' is 7, which its enum does not name"),
        (WIDE, sized(6, b"\x00\x07"), {"es": ["A", None]},
         "field 'es[]' is 7, which its enum does not name"),
        (WIDE, sized(15, ENTRY + b"\x10\x07"), {"pe": [("k", None)]},
         "field 'pe[]' is 7, which its enum does not name"),
        (WIDE2, b"\x08\x01\x28\x07", {"i": 1, "e": None},
         "field 't.M.e' is 7, which its enum does not name"),
        (WIDE2, b"\x30\x00\x30\x07", {"es": ["A"]},
         "field 't.M.es' is 7, which its enum does not name"),
        (WIDE2, sized(15, ENTRY + b"\x10\x07"), {"pe": []},
         "field 't.M.PeEntry.value' is 7, which its enum does not name"),
        (WIDE2, tag(16, 3) + b"\x08\x01" + UNKNOWN + tag(16, 4), {"g": {"a": 1}},
         "unknown field 99 of t.G"),
        (WIDE2, sized(17, b"\xff"), {"s": [None]}, "field 's[]' is not UTF-8"),
        (WIDE2, sized(18, sized(1, b"\xff")) + sized(18, ENTRY) + b"\x08\x01", {"ms": None, "i": 1},
         "field 'ms' has a key that is not UTF-8"),
        (WIDE, b"\x08\x01\x08\x02", {"i": 2}, "field 't.M.i' is there more than once"),
        (WIDE, sized(2, b"\x08\x01") + sized(2, sized(2, b"x")), {"m": {"a": 1, "s": "x"}},
         "field 't.M.m' is there more than once"),
        (WIDE, b"\x38\x01" + sized(8, b"x"), {"a": None, "b": "x"},
         "field 't.M.b' is there more than once"),
        (WIDE, sized(4, ENTRY) + sized(4, ENTRY + sized(2, b"\x08\x01")),
         {"p": [("k", {"a": 1, "s": ""})]}, "field 't.M.p' is there more than once"),
        (WIDE, sized(14, b"\x10\x01") + sized(14, b"\x0d\0\0\0\0\x10\x01"), {"q": [("0", True)]},
         "field 't.M.q' is there more than once"),
        (WIDE, sized(4, ENTRY + ENTRY), {"p": [("k", {"a": 0, "s": ""})]},
         "field 't.M.PEntry.key' is there more than once"),
        (WIDE, b"\x08" + varint(1 << 32), {"i": 0}, "field 't.M.i' has more bits than its type"),
        (WIDE, b"\x50" + varint(1 << 32), {"u": 0}, "field 't.M.u' has more bits than its type"),
        (WIDE, b"\x58\x02", {"z": True}, "field 't.M.z' has more bits than its type"),
        (WIDE, b"\x60" + varint(1 << 33), {"t": 0}, "field 't.M.t' has more bits than its type"),
        (WIDE, sized(9, varint(1 << 32)), {"n": [0]}, "field 't.M.n' has more bits than its type"),
    ],
)  # fmt: skip
def test_what_the_columns_do_not_show_is_a_problem(
    file: descriptor_pb2.FileDescriptorProto, payload: bytes, columns: Any, problem: str
) -> None:
    found = decode(decoder(native(file)), [payload])
    assert found.problems == {0: problem}
    row = rows(found)[0]
    assert {name: row[name] for name in columns} == columns
    for wanted in ([], ["i"]):
        assert decode(decoder(native(file), wanted=wanted), [payload]).problems == found.problems


@pytest.mark.parametrize(
    ("payload", "columns"),
    [
        # Written otherwise than Google's serializer would, but nothing is lost.
        (b"\x08\x00", {"i": 0}),
        (b"\x08\x81\x00", {"i": 1}),
        (b"\x08" + varint(-1), {"i": -1}),
        (sized(9, b"\1") + b"\x48\2" + sized(9, b"\3\4"), {"n": [1, 2, 3, 4]}),
        (sized(2, b"") + b"\x08\x01", {"i": 1, "m": {"a": 0, "s": ""}}),
        (sized(4, ENTRY) + sized(4, sized(1, b"j")) + sized(4, b""), {"p": ["k", "j", ""]}),
        (sized(4, sized(2, b"") + ENTRY), {"p": ["k"]}),
        (sized(14, b"\x10\x01") + sized(14, b"\x0d\0\1\0\0\x10\x01")
         + sized(14, b"\x0d\1\0\0\0"), {"q": ["0", "256", "1"]}),
    ],
)  # fmt: skip
def test_other_ways_to_write_the_same(payload: bytes, columns: Any) -> None:
    found = decode(decoder(native(WIDE)), [payload])
    assert not found.problems
    row = rows(found)[0]
    for name, value in columns.items():
        shown = row[name] if name not in "pq" else [key for key, _ in row[name]]
        assert shown == value if name not in "pq" else set(shown) == set(value)


@pytest.mark.parametrize(
    "payload",
    [b"\x08", b"\xff" * 20, sized(1, b"x")[:-1], sized(8, b"\xff"), b"\x00", tag(99, 3),
     tag(99, 4), tag(1, 7), sized(2, b"\x08"), sized(9, b"\x80")],
)  # fmt: skip
def test_malformed(payload: bytes) -> None:
    good = b"\x08\x07"
    found = decode(decoder(native(WIDE)), [good, payload, good])
    assert [row["i"] for row in rows(found)] == [7, None, 7]
    assert all(value is None for value in rows(found)[1].values())
    assert list(found.problems) == [1]
    assert found.problems[1].startswith("malformed Protobuf: ")


def test_nesting_is_bounded() -> None:
    file = proto_file({**LINK, "message M": ["L f = 1"]})
    payloads = []
    for depth in (50, 98, 101, 5000):
        payload = b""
        for _ in range(depth):
            payload = sized(2, payload)
        payloads.append(sized(1, payload))
    found = decode(decoder(native(file)), payloads)
    assert list(found.problems) == [2, 3]
    text = rows(found)[1]["f"]["next"]
    assert text.count("next") == 97


def test_json_text_is_protojson() -> None:
    file = proto_file({**TREE, "message M": ["L f = 1"]})
    leaf = {"raw": b"hi", "n": (1 << 64) - 1, "children": {"é": {}}}
    payload = written(message_class(file), f={"children": {"x": leaf}})
    found = decode(
        decoder(native(file)), [payload, payload + sized(1, sized(1, sized(2, UNKNOWN)))]
    )
    ((key, text),) = rows(found)[0]["f"]["children"]
    assert key == "x"
    assert json.loads(text) == {
        "children": {"é": {}}, "raw": "aGk=", "n": "18446744073709551615"
    }  # fmt: skip
    assert list(found.problems) == [1]


def test_maps_are_in_the_order_of_their_keys() -> None:
    """Google's parser gives them in an order that is another in each process."""
    file = proto_file({**TREE, "message M": ["map<string, bool> s = 1", "map<sint32, bool> i = 2",
                                             "map<bool, bool> b = 3", "L t = 4"]})  # fmt: skip
    texts = [chr(ord("a") + 7 * i % 26) for i in range(26)]
    payload = written(
        message_class(file),
        s=dict.fromkeys(texts, True),
        i=dict.fromkeys([7, -20, 100, 0, 15, -3], True),
        b={True: True, False: True},
        t={"children": {"x": {"children": {text: {} for text in texts}}}},
    )
    (row,) = rows(decode(decoder(native(file)), [payload]))
    assert [key for key, _ in row["s"]] == sorted(texts)
    assert [key for key, _ in row["i"]] == ["-20", "-3", "0", "7", "15", "100"]
    assert [key for key, _ in row["b"]] == ["false", "true"]
    assert list(json.loads(row["t"]["children"][0][1])["children"]) == sorted(texts)


def struct_file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    struct_pb2.DESCRIPTOR.CopyToProto(file)
    return file


def test_googles_json_messages_are_their_json() -> None:
    known = struct_file()
    file = proto_file(
        {"message M": ["google.protobuf.Struct f = 1", "repeated google.protobuf.Value v = 2"]},
        imports=(known.name,),
    )
    schema = native(known, file)
    assert payload_fields(versions(schema)) == pa.schema(
        [("f", pa.string()), ("v", pa.list_(pa.string()))]
    )
    value = struct_pb2.Struct()
    value.update({"a": [1, None, {"b": "ä"}]})
    payload = sized(1, value.SerializeToString()) + sized(2, b"\x20\x01")
    found = decode(decoder(schema), [payload, sized(2, tag(2, 1) + struct.pack("<d", math.nan))])
    assert rows(found)[0] == {"f": '{"a":[1.0,null,{"b":"ä"}]}', "v": ["true"]}
    assert rows(found)[1] == {"f": None, "v": [None]}
    assert found.problems[1].startswith("field 'v[]' cannot be written as JSON: ")
    whole = native(known, root="google.protobuf.Struct")
    assert rows(decode(decoder(whole), [value.SerializeToString()])) == [
        {"value": '{"a":[1.0,null,{"b":"ä"}]}'}
    ]


def test_extensions_are_unknown_fields() -> None:
    file = proto_file({"message M": ["int32 i = 1"]}, syntax="proto2")
    file.message_type[0].extension_range.add(start=100, end=200)
    file.extension.add(name="x", number=100, type=5, label=1, extendee=".t.M")
    found = decode(decoder(native(file)), [b"\x08\x01" + varint(800) + b"\x01", b"\x08\x01"])
    assert [row["i"] for row in rows(found)] == [1, 1]
    assert found.problems == {0: "unknown field 100 of t.M"}
