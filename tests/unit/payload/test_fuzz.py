"""Any bytes under any schemas are rows: nothing raises, hangs or grows, and no row harms another.

And a row without a problem has lost nothing: of Protobuf, whose other tests are by example, the
message can be built again from the columns.
"""

import itertools
import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reader.kernels.byte_spans import ByteSpans
from reader.payload import payload_fields
from reader.payload.protobuf.schema import is_map
from tests.support.examples import examples
from tests.unit.payload import cases
from tests.unit.payload.protobuf_cases import message_class, native, proto_file, sized, tag, varint

BOUNDED = settings(
    max_examples=examples(150),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
PRIMITIVES = ("BYTES", "STRING", "BOOLEAN", "INT8", "INT64", "DOUBLE", "INSTANT", "LOCAL_DATE_TIME")
SCALARS = ("bool", "int32", "sint64", "fixed32", "uint64", "sfixed64", "float", "double", "string",
           "bytes", "E")  # fmt: skip
KEYS = ("bool", "int32", "uint64", "sint64", "fixed32", "string")
Payloads = st.SearchStrategy[bytes]


@st.composite
def protobuf_files(draw: st.DrawFn) -> descriptor_pb2.FileDescriptorProto:
    """Messages M, A and B, which may contain one another and themselves."""
    declarations = {"enum E": ["Z = 0", "P = 1", "N = -5"]}
    for message in "ABM":
        lines = []
        for i, number in enumerate(draw(st.lists(st.integers(1, 20), max_size=5, unique=True))):
            kind = draw(st.sampled_from([*SCALARS, "A", "B"]))
            shape = draw(st.sampled_from(["", "", "repeated ", "map", "oneof o "]))
            if shape == "map":
                shape, kind = "", f"map<{draw(st.sampled_from(KEYS))}, {kind}>"
            lines.append(f"{shape}{kind} f{i} = {number}")
        declarations[f"message {message}"] = lines
    return proto_file(declarations, syntax=draw(st.sampled_from(["proto2", "proto3"])))


@st.composite
def wire(draw: st.DrawFn, depth: int = 4) -> bytes:
    """Bytes that are likely a message, whatever of."""
    out = b""
    for _ in range(draw(st.integers(0, 4))):
        number = draw(st.integers(1, 21))
        match draw(st.integers(0, 7)):
            case 0 | 1:
                value = draw(st.sampled_from([0, 1, 2, -1, -5, 1 << 31, 1 << 32, 1 << 63]))
                out += tag(number, 0) + varint(value)
            case 2:
                out += tag(number, 1) + draw(st.sampled_from([bytes(8), b"\1" + bytes(7)]))
            case 3:
                out += tag(number, 5) + draw(st.sampled_from([bytes(4), b"\1" + bytes(3)]))
            case 4:
                out += sized(number, draw(st.sampled_from([b"", b"a", b"\xff", b"\0\1\2"])))
            case 5 | 6 if depth:
                out += sized(number, draw(wire(depth - 1)))
            case _:
                out += draw(st.binary(max_size=3))
    return out


_VARINTS = (0, 1, 1, 2, 127, -1, -5, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 63)
_FIXED = {FieldDescriptor.TYPE_FIXED32: 4, FieldDescriptor.TYPE_FLOAT: 4,
          FieldDescriptor.TYPE_SFIXED64: 8, FieldDescriptor.TYPE_DOUBLE: 8}  # fmt: skip
_SIZED = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_MESSAGE)


@st.composite
def messages(draw: st.DrawFn, descriptor: Any, depth: int = 3) -> bytes:
    """The bytes of a message, in one of the ways that there are to write it."""
    out = b""
    indices = st.integers(0, max(len(descriptor.fields) - 1, 0))
    chosen = st.lists(indices, max_size=3, unique=draw(st.sampled_from([True, True, False])))
    for field in [descriptor.fields[i] for i in draw(chosen) if descriptor.fields]:
        contents = []
        for _ in range(draw(st.integers(0, 3)) if field.is_repeated else 1):
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                inner = messages(field.message_type, depth - 1) if depth else st.just(b"")
                contents.append(draw(inner))
            elif field.type in _SIZED:
                contents.append(draw(st.sampled_from([b"", b"a", b"\xc3\xa4", b"1"])))
            elif field.type in _FIXED:
                size = _FIXED[field.type]
                contents.append(draw(st.binary(min_size=size, max_size=size)))
            else:
                contents.append(varint(draw(st.sampled_from(_VARINTS))))
        if field.is_repeated and field.type not in _SIZED and draw(st.booleans()):
            out += sized(field.number, b"".join(contents))
            continue
        for content in contents:
            if field.type in _SIZED:
                out += sized(field.number, content)
            else:
                kind = {4: 5, 8: 1}.get(_FIXED.get(field.type, 0), 0)
                out += tag(field.number, kind) + content
    return out


@st.composite
def protobuf_topics(draw: st.DrawFn) -> tuple[descriptor_pb2.FileDescriptorProto, Payloads]:
    file = draw(protobuf_files())
    good = messages(message_class(file).DESCRIPTOR)
    return file, good | good | damaged(good) | damaged(wire())


@st.composite
def schemas(draw: st.DrawFn, depth: int = 1) -> tuple[cases.Given, Payloads]:
    """Any schema, and payloads some of which are of it."""
    choice = draw(st.integers(0, 6 if depth else 5))
    junk = st.binary(max_size=24)
    if choice == 0:
        return (draw(st.sampled_from(PRIMITIVES)), ""), junk
    if choice == 1:
        kind = draw(cases.records(cases.Names(), 2))
        good = kind.values.map(lambda v: cases.avro_bytes(kind.schema, v.avro))
        return ("AVRO", json.dumps(kind.schema)), damaged(good) | junk
    if choice == 2:
        kind = draw(cases.records(cases.Names(), 2))
        good = kind.values.map(lambda v: cases.json_bytes(v.json))
        return ("JSON", json.dumps(kind.schema)), damaged(good) | junk
    if choice == 3:
        file, payloads = draw(protobuf_topics())
        return native(file), payloads | junk
    if choice == 4:
        types = ["INT32", "STRING", "MESSAGE", "ENUM", "GROUP", "UINT64", "FIXED32", "BOOL"]
        info = [
            {"number": n, "name": f"p{n}", "type": draw(st.sampled_from(types)),
             "label": draw(st.sampled_from(["LABEL_OPTIONAL", "LABEL_REPEATED"]))}
            for n in draw(st.lists(st.integers(1, 20), max_size=4, unique=True))
        ]  # fmt: skip
        return ("PROTOBUF", "{}", {"__PARSING_INFO__": json.dumps(info)}), damaged(wire()) | junk
    if choice == 5:
        kinds = ["AVRO", "JSON", "PROTOBUF", "PROTOBUF_NATIVE", "KEY_VALUE", "AUTO", "?"]
        definitions = st.sampled_from(["", "{}", "[]", '"int"', "null", '{"key":"","value":""}'])
        return (draw(st.sampled_from(kinds)), draw(definitions | st.text(max_size=9))), junk
    (key, keys), (value, values) = draw(schemas(0)), draw(schemas(0))
    lengths = st.sampled_from([0, 0, 0, 0, -1, 1, 1 << 20])
    halves = st.tuples(keys, lengths, values, lengths).map(_inline)
    encoding = draw(st.sampled_from(["INLINE", "SEPARATED", None]))
    return cases.key_value(key, value, encoding), halves | values


def _inline(halves: tuple[bytes, int, bytes, int]) -> bytes:
    key, more, value, still_more = halves
    lengths = [-1 if extra < 0 else len(half) + extra
               for half, extra in ((key, more), (value, still_more))]  # fmt: skip
    return struct.pack(">i", lengths[0]) + key + struct.pack(">i", lengths[1]) + value


@st.composite
def damaged(draw: st.DrawFn, good: Payloads) -> bytes:
    raw = bytearray(draw(good))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at = draw(st.integers(0, len(raw)))
        match draw(st.integers(0, 2)):
            case 0:
                raw[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                del raw[at : at + 2]
            case 2:
                raw[at:at] = draw(st.sampled_from([b"\0", b"\x7f", b"\x80", b"\xff", b'"', b"{"]))
    return bytes(raw)


@st.composite
def topics(draw: st.DrawFn) -> tuple[list[cases.Given], list[bytes | None], list[int], list[Any]]:
    """Schema versions, and messages: payloads, versions, keys."""
    made = draw(st.lists(schemas(), min_size=1, max_size=4))
    # Of their own version, of another, of one that is not there, of none.
    which = st.sampled_from([-1, len(made), *4 * list(range(len(made)))])
    numbers = draw(st.lists(which, min_size=1, max_size=8))
    payloads: list[bytes | None] = []
    for number in numbers:
        own = made[number % len(made)][1]
        payloads.append(draw(st.none() | own | own | own | own | made[0][1]))
    keys = [draw(st.none() | made[n % len(made)][1] | st.binary(max_size=9)) for n in numbers]
    return [given for given, _ in made], payloads, numbers, keys


@BOUNDED
@given(topics(), st.data())
def test_anything_is_rows(
    topic: tuple[list[cases.Given], list[bytes | None], list[int], list[Any]], data: st.DataObject
) -> None:
    given, payloads, numbers, keys = topic
    fields = payload_fields(cases.versions(*given))
    made = cases.decoder(*given)
    found = cases.decode(made, payloads, numbers, keys)
    assert [array.type for array in found.arrays.values()] == fields.types
    assert sum(array.nbytes for array in found.arrays.values()) < 1 << 20
    # Alone, in another order and with other columns each row is the same.
    for i in range(len(payloads)):
        alone = cases.decode(made, payloads[i : i + 1], numbers[i : i + 1], keys[i : i + 1])
        assert alone.problems.get(0) == found.problems.get(i)
        for name, array in found.arrays.items():
            assert repr(cases.shown(alone.arrays[name])) == repr(cases.shown(array.slice(i, 1)))
    wanted = data.draw(st.lists(st.sampled_from(fields.names), unique=True) if len(fields) else
                       st.just([]))  # fmt: skip
    some = cases.decode(cases.decoder(*given, wanted=wanted), payloads, numbers, keys)
    assert some.problems == found.problems
    for name in wanted:
        assert repr(cases.shown(some.arrays[name])) == repr(cases.shown(found.arrays[name]))


@settings(BOUNDED, max_examples=examples(400))
@given(protobuf_topics(), st.data())
def test_protobuf_without_a_problem_has_lost_nothing(
    topic: tuple[descriptor_pb2.FileDescriptorProto, Payloads], data: st.DataObject
) -> None:
    file, strategy = topic
    payloads = data.draw(st.lists(strategy, min_size=1, max_size=6))
    schema, made = native(file), message_class(file)
    found = cases.decode(cases.decoder(schema), payloads)
    columns = cases.rows(found)
    for i, payload in enumerate(payloads):
        message = made()
        try:
            message.ParseFromString(payload)
        except DecodeError:
            assert found.problems[i].startswith("malformed Protobuf")
            continue
        if i in found.problems:
            continue
        before = message.ByteSize()
        message.DiscardUnknownFields()
        assert message.ByteSize() == before
        again = made()
        if columns:
            _fill(again, columns[i])
        assert again.SerializePartialToString(deterministic=True) == (
            message.SerializePartialToString(deterministic=True)
        )


def _fill(message: Any, row: dict[str, Any]) -> None:
    for field in message.DESCRIPTOR.fields:
        value = row[field.name]
        if value is None:
            continue
        if is_map(field):
            entry = field.message_type.fields_by_name
            target = getattr(message, field.name)
            for key, item in value:
                typed = key if entry["key"].type == FieldDescriptor.TYPE_STRING else (
                    key == "true" if entry["key"].type == FieldDescriptor.TYPE_BOOL else int(key)
                )  # fmt: skip
                if entry["value"].message_type is None:
                    target[typed] = _scalar(entry["value"], item)
                else:
                    _fill_message(target[typed], item)
        elif field.is_repeated and field.message_type is not None:
            for item in value:
                _fill_message(getattr(message, field.name).add(), item)
        elif field.is_repeated:
            getattr(message, field.name).extend(_scalar(field, item) for item in value)
        elif field.message_type is not None:
            getattr(message, field.name).SetInParent()
            _fill_message(getattr(message, field.name), value)
        else:
            setattr(message, field.name, _scalar(field, value))


def _fill_message(message: Any, value: Any) -> None:
    if isinstance(value, str):
        json_format.Parse(value, message)
    else:
        _fill(message, value)


def _scalar(field: Any, value: Any) -> Any:
    if field.enum_type is not None:
        return field.enum_type.values_by_name[value].number
    if field.type in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64):
        return int(value)
    return value


LARGE = 1 << 16


@pytest.mark.parametrize(
    "payload",
    [b"", b"\0", b"\xff", b"[", b"{", b'{"a":', b"\x0a\0", b"\x0b", b"\x80", b"\2", b"\x0a\xff"],
)
def test_large_payloads_of_one_kind(payload: bytes) -> None:
    """64 KiB of the same; within pytest's time limit and without an error."""
    tree = {"type": "record", "name": "T", "fields": [
        {"name": "a", "type": {"type": "array", "items": "T"}},
        {"name": "m", "type": ["null", {"type": "map", "values": "T"}]}]}  # fmt: skip
    file = proto_file({"message M": ["repeated M a = 1", "map<string, M> m = 2", "int32 i = 3"]},
                      syntax="proto2")  # fmt: skip
    kinds: Sequence[cases.Given] = [("AVRO", tree), ("JSON", tree), native(file), ("STRING", ""),
                              ("INT32", ""), ("BYTES", "")]  # fmt: skip
    content = payload * (LARGE // max(len(payload), 1))
    for one, other in itertools.product(kinds, kinds[-1:]):
        packed = struct.pack(">i", len(content)) + content + struct.pack(">i", -1)
        made = cases.decoder(
            one, cases.key_value(one, other), cases.key_value(other, one, "SEPARATED")
        )
        found = cases.decode(made, [content, packed, content], [0, 1, 2], [b"k", None, content])
        assert sum(array.nbytes for array in found.arrays.values()) < 100 * LARGE


def test_an_empty_batch() -> None:
    file = proto_file({"message M": ["int32 i = 1"]})
    made = cases.decoder(native(file), cases.key_value(native(file), ("STRING", ""), "SEPARATED"))
    none = pa.array([], pa.large_binary())
    found = made.decode(ByteSpans.of(none), np.empty(0, np.int64), none)
    assert [len(array) for array in found.arrays.values()] == [0, 0, 0]
