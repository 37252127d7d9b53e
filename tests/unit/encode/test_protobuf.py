"""PROTOBUF_NATIVE: what Google's runtime writes is written again, byte by byte."""

import json
from typing import Any

import pyarrow as pa
import pytest

from reader.encode.payload import PayloadEncoder
from tests.unit.encode.writing import again, column, info, payloads, refused, refused_columns, table
from tests.unit.payload.cases import decode, decoder, key_value, rows
from tests.unit.payload.protobuf_cases import (
    ENUM,
    INNER,
    WIDE,
    message_class,
    native,
    proto_file,
    sized,
    written,
)
from tests.unit.payload.test_protobuf import LINK, MAPPING, PRESENCE, struct_file

DEFAULTS: dict[str, Any] = {"bool": False, "string": "", "bytes": b"", "oneof": "", "enum": 0}


@pytest.mark.parametrize("name", MAPPING)
@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_what_is_read_is_written_again(name: str, syntax: str) -> None:
    line, others, _, value, _ = MAPPING[name]
    file = proto_file({**others, "message M": ["int32 last = 9", line]}, syntax=syntax)
    made = message_class(file)
    values = [written(made, f=value, last=3), written(made, last=-1)]
    if not isinstance(value, list | dict):
        values.append(written(made, f=DEFAULTS.get(name, 0)))
    given = native(file)
    found = decode(decoder(given), values)
    assert not found.problems
    batch = pa.record_batch(list(found.arrays.values()), names=list(found.arrays))
    assert payloads(given, batch) == values
    assert payloads(given, batch.slice(1)) == values[1:]


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_presence(syntax: str) -> None:
    file = proto_file({**ENUM, **INNER, "message M": PRESENCE}, syntax=syntax)
    made = message_class(file)
    values = [b"", written(made, o=0, a=0, m={}), written(made, b={}, i=0, s=""),
              written(made, i=5, s="x", e=-1, m={"a": 1, "s": ""}, r=[1, 0], p={"k": ""}, z=True,
                      y=b"\0")]  # fmt: skip
    found = decode(decoder(native(file)), values)
    batch = pa.record_batch(list(found.arrays.values()), names=list(found.arrays))
    assert payloads(native(file), batch) == values


def test_numbers_of_every_encoding() -> None:
    kinds = {
        "int32": (-(1 << 31), (1 << 31) - 1),
        "sint32": (-(1 << 31), (1 << 31) - 1),
        "sfixed32": (-(1 << 31), (1 << 31) - 1),
        "uint32": (0, (1 << 32) - 1),
        "fixed32": (0, (1 << 32) - 1),
        "int64": (-(1 << 63), (1 << 63) - 1),
        "sint64": (-(1 << 63), (1 << 63) - 1),
        "sfixed64": (-(1 << 63), (1 << 63) - 1),
    }
    for kind, bounds in kinds.items():
        for label in ("", "repeated ", "optional "):
            file = proto_file({"message M": [f"{label}{kind} f = 1"]})
            made, given = message_class(file), native(file)
            values: list[Any] = [*bounds, 0, 1]
            some = [[one, 0] if label == "repeated " else one for one in values]
            batch = column(some, pa.list_(pa.int64()) if label == "repeated " else pa.int64(), "f")
            assert payloads(given, batch) == [written(made, f=one) for one in some]
            for wrong in (bounds[0] - 1, bounds[1] + 1):
                if -(1 << 63) <= wrong < 1 << 63 and not label:
                    error = refused(given, column([0, wrong], pa.int64(), "f"))
                    assert error.message == (
                        f"column 'f', row 1 of the batch: {wrong} is out of the range of {kind}"
                    )
    for kind in ("uint64", "fixed64"):
        file = proto_file({"message M": [f"{kind} f = 1", f"map<{kind}, bool> m = 2"]})
        made, given = message_class(file), native(file)
        most = (1 << 64) - 1
        texts = column([str(most), "0", "9223372036854775808"], pa.string(), "f")
        assert payloads(given, texts) == [written(made, f=one) for one in (most, 0, 1 << 63)]
        assert payloads(given, column([7], pa.int64(), "f")) == [written(made, f=7)]
        for wrong_text in ("", "-1", "01", "+1", "1.0", str(most + 1), "9" * 25, " 1"):
            error = refused(given, column(["1", None, wrong_text][::2], pa.string(), "f"))
            assert error.message == (
                f"column 'f', row 1 of the batch: {wrong_text!r} is not a number in the range of "
                f"{kind}"
            )


def test_packed_as_the_descriptor_says() -> None:
    for syntax in ("proto2", "proto3"):
        file = proto_file({**ENUM, "message M": ["repeated sint64 f = 1", "repeated E e = 2"]},
                          syntax=syntax)  # fmt: skip
        for packed in (None, True, False):
            if packed is not None:
                for field in file.message_type[0].field:
                    field.options.packed = packed
            made = message_class(file)
            values: list[dict[str, Any]] = [
                {"f": [1, -2], "e": ["A", "B", "N"]},
                {"f": [], "e": ["A"]},
            ]
            numbers = {"A": 0, "B": 1, "N": -1}
            expected = [
                written(made, f=v["f"], e=[numbers[str(e)] for e in v["e"]]) for v in values
            ]
            assert payloads(native(file), table(native(file), values)) == expected


def test_maps_and_messages_within_messages() -> None:
    file = proto_file({**INNER, "message N": ["map<int32, I> m = 1", "repeated I l = 2",
                                              "map<bool, string> b = 3"],
                       "message M": ["repeated N n = 1", "map<string, N> p = 1000"]})  # fmt: skip
    made, given = message_class(file), native(file)
    one = {"m": {-1: {"a": 1, "s": ""}, 0: {"a": 0, "s": "x"}}, "l": [{"a": 0, "s": ""}],
           "b": {True: "t"}}  # fmt: skip
    none: dict[str, Any] = {"m": {}, "l": [], "b": {}}
    row = {"m": [("-1", {"a": 1, "s": ""}), ("0", {"a": 0, "s": "x"})],
           "l": [{"a": 0, "s": ""}], "b": [("true", "t")]}  # fmt: skip
    empty: dict[str, Any] = {"m": [], "l": [], "b": []}
    values: list[dict[str, Any]] = [
        {"n": [row, empty], "p": [("", empty), ("k", row)]},
        {"n": [], "p": []},
    ]
    batch = table(given, values)
    found = payloads(given, batch)
    parsed = made()
    parsed.ParseFromString(found[0] or b"")
    assert parsed == made(n=[one, none], p={"": none, "k": one})
    assert found[1] == b""
    assert again(given, batch) == values


def test_groups() -> None:
    file = proto_file({"message G": ["int32 a = 1"],
                       "message M": ["group G g = 16", "repeated group G gs = 2"]},
                      syntax="proto2")  # fmt: skip
    made, given = message_class(file), native(file)
    batch = table(given, [{"g": {"a": 5}, "gs": [{"a": 1}, {"a": None}]}, {"g": None, "gs": []}])
    assert payloads(given, batch) == [written(made, g={"a": 5}, gs=[{"a": 1}, {}]), b""]


def test_fields_that_have_no_column() -> None:
    assert again(native(WIDE), column([4], pa.int8(), "I"))[0] == {
        "i": 4, "m": None, "l": [], "p": [], "e": "A", "es": [], "a": None, "b": None, "n": [],
        "u": 0, "z": False, "t": 0, "w": 0, "q": [], "pe": [],
    }  # fmt: skip
    file = proto_file({"message M": ["required int32 a = 1", "optional int32 b = 2"]},
                      syntax="proto2")  # fmt: skip
    error = refused_columns(native(file), pa.schema([("b", pa.int64())]))
    assert error.message == (
        "field 'a' of the schema (required int32) has no column, and neither a default nor null"
    )
    error = refused(native(file), column([1, None], pa.int64(), "a"))
    assert error.message == (
        "column 'a', row 1 of the batch: is NULL, and required int32 has no null"
    )


def test_json_text() -> None:
    file = proto_file({**LINK, "message M": ["L f = 1", "E e = 2"], "message E": []})
    given = native(file)
    made = message_class(file)
    text = '{"next":{},"v":2}'
    batch = pa.RecordBatch.from_pylist(
        [{"f": {"v": 1, "next": text}, "e": "{}"}, {"f": None, "e": None}],
        pa.schema([("f", pa.struct([("v", pa.int64()), ("next", pa.string())])),
                   ("e", pa.string())]),
    )  # fmt: skip
    assert payloads(given, batch) == [
        written(made, f={"v": 1, "next": {"v": 2, "next": {}}}, e={}), b""
    ]  # fmt: skip
    for text, why in (("x", "Expecting value"), ('{"w":1}', 'no field named "w"'),
                      ("[]", "it is not an object"), ('{"v":1e99}', "")):  # fmt: skip
        bad = column([{"v": 1, "next": text}], pa.struct([("v", pa.int64()),
                                                          ("next", pa.string())]), "f")  # fmt: skip
        error = refused(given, bad)
        assert error.message.startswith(
            "column 'f.next', row 0 of the batch: is not JSON text of its field: "
        )
        assert why in error.message


def test_googles_json_messages() -> None:
    known = struct_file()
    whole = native(known, root="google.protobuf.Struct")
    text = '{"a":[1.0,null,{"b":"ä"}]}'
    assert again(whole, column([text], pa.string(), "value")) == [{"value": text}]


def test_halves_of_a_key_value() -> None:
    file = proto_file({"message M": ["int32 i = 1"]})
    given = key_value(native(file), native(file))
    batch = pa.RecordBatch.from_pylist(
        [{"key": {"i": 1}, "value": {"i": 0}}, {"key": None, "value": None}],
        pa.schema([(name, pa.struct([("i", pa.int64())])) for name in ("key", "value")]),
    )
    assert payloads(given, batch) == [b"\0\0\0\2\x08\1\0\0\0\0", b"\xff" * 8]
    assert again(given, batch) == batch.to_pylist()


INTS = pa.map_(pa.string(), pa.bool_())


@pytest.mark.parametrize(
    ("name", "arrow", "good", "bad", "path", "why"),
    [
        ("i", pa.int64(), 1, None, "i",
         "is NULL, and a field without presence: int32 has no null"),
        ("n", pa.list_(pa.int64()), [], None, "n", "is NULL, and repeated int32 has no null"),
        ("n", pa.list_(pa.int64()), [1], [None], "n[]",
         "is NULL, and an item of int32 has no null"),
        ("p", pa.map_(pa.string(), pa.struct([("a", pa.int64())])), [("k", {"a": 1})],
         [("k", None)], "p[]", "is NULL, and a map's value of message t.I has no null"),
        ("q", INTS, [("0", True)], [("-1", True)], "q",
         "'-1' is not a number in the range of a map's key of type fixed32"),
        ("q", INTS, [("7", True)], [("07", True)], "q",
         "'07' is not a number in the range of a map's key of type fixed32"),
        ("e", pa.string(), "C", "D", "e", "'D' is not a symbol of enum t.E"),
        ("m", pa.struct([("a", pa.int64())]), {"a": 1}, {"a": 1 << 31}, "m.a",
         "2147483648 is out of the range of int32"),
        ("l", pa.list_(pa.struct([("s", pa.string())])), [], [{"s": "x"}, {"s": None}], "l[].s",
         "is NULL, and a field without presence: string has no null"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_stored(
    name: str, arrow: pa.DataType, good: Any, bad: Any, path: str, why: str
) -> None:
    array = pa.array([bad, good, good, bad, bad], arrow).slice(1)
    error = refused(native(WIDE), pa.record_batch([array], names=[name]))
    assert error.message == f"column {path!r}, row 2 of the batch: {why}"
    assert error.context == {"row": 2, "column": path}


def test_two_members_of_a_oneof() -> None:
    columns = pa.schema([("b", pa.string()), ("a", pa.int64())])
    good = [{"a": 1}, {"b": ""}, {}]
    batch = pa.RecordBatch.from_pylist([*good, {"a": 0, "b": ""}], columns)
    assert len(payloads(native(WIDE), batch.slice(0, 3))) == 3
    error = refused(native(WIDE), batch)
    assert error.message == (
        "column 'b', row 3 of the batch: is set, as is 'a', and oneof 'o' takes one of them"
    )


@pytest.mark.parametrize(
    ("name", "arrow", "error"),
    [
        ("i", pa.string(), "string, which its field of type int32 cannot store"),
        ("m", pa.string(), "string, which its field of type message t.I cannot store"),
        ("l", pa.struct([("a", pa.int64())]), "struct<a: bigint>, which its field of type repeat"),
        ("q", pa.map_(pa.int64(), pa.bool_()), "map<bigint, boolean>, which its field of type map"),
        ("e", pa.int64(), "bigint, which its field of type enum t.E cannot store"),
    ],
)
def test_a_column_of_another_type(name: str, arrow: pa.DataType, error: str) -> None:
    found = refused_columns(native(WIDE), pa.schema([(name, arrow)]))
    assert found.message.startswith(f"column {name!r} is {error}")


def test_proto2_text_and_closed_enums() -> None:
    file = proto_file({**ENUM, "message M": ["optional E e = 1", "optional string s = 2"]},
                      syntax="proto2")  # fmt: skip
    batch = table(native(file), [{"e": "C", "s": "ä"}, {"e": "N", "s": None}])
    assert payloads(native(file), batch) == [
        b"\x08\1" + sized(2, "ä".encode()), b"\x08" + b"\xff" * 9 + b"\1"
    ]  # fmt: skip


def test_a_message_without_fields() -> None:
    given = native(proto_file({"message M": []}))
    assert json.loads(given[1])["rootMessageTypeName"] == "t.M"
    none = pa.schema([])
    assert PayloadEncoder(info(given), none) is not None
    assert rows(decode(decoder(given), [b""])) == []
