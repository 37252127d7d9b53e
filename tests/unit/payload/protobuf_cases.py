"""Protobuf schemas and payloads for the tests, written as in a .proto file but without protoc."""

import base64
import json
import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from tests.unit.payload.cases import Given

_FIELD = re.compile(r"(?:(repeated|optional|required|oneof \w+) )?(.+?) (\w+) = (-?\d+)$")
_MAP = re.compile(r"map<(\w+), ?([\w.]+)>")
_F = descriptor_pb2.FieldDescriptorProto
_LABELS = {"repeated": _F.LABEL_REPEATED, "required": _F.LABEL_REQUIRED}


def proto_file(
    declarations: dict[str, list[str]],
    *,
    syntax: str = "proto3",
    package: str = "t",
    name: str = "t.proto",
    imports: tuple[str, ...] = (),
) -> descriptor_pb2.FileDescriptorProto:
    """``{"message M": ["int32 a = 1", "oneof o string s = 2"], "enum E": ["A = 0"]}`` as a file.

    Types that are not scalar are full names, or names of this file.
    """
    file = descriptor_pb2.FileDescriptorProto(name=name, package=package, syntax=syntax)
    file.dependency.extend(imports)
    enums = {title.split()[1] for title in declarations if title.startswith("enum")}
    for title, lines in declarations.items():
        kind, own = title.split()
        if kind == "enum":
            enum = file.enum_type.add(name=own)
            for line in lines:
                symbol, number = line.split(" = ")
                enum.value.add(name=symbol, number=int(number))
            numbers = [value.number for value in enum.value]
            enum.options.allow_alias = len(set(numbers)) < len(numbers)
            continue
        message = file.message_type.add(name=own)
        for line in lines:
            _field(message, line, f".{package}.{own}", f".{package}", enums, syntax)
    return file


def _field(message: Any, line: str, full: str, package: str, enums: set[str], syntax: str) -> None:
    found = _FIELD.match(line)
    assert found is not None, line
    label, kind, name, number = found.groups()
    field = message.field.add(name=name, number=int(number), label=_F.LABEL_OPTIONAL)
    field.label = _LABELS.get(label, _F.LABEL_OPTIONAL)
    if label is not None and label.startswith("oneof"):
        oneofs = [oneof.name for oneof in message.oneof_decl]
        if label[6:] not in oneofs:
            message.oneof_decl.add(name=label[6:])
            oneofs.append(label[6:])
        field.oneof_index = oneofs.index(label[6:])
    elif label == "optional" and syntax == "proto3":
        field.proto3_optional = True
        field.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{name}")
    as_map = _MAP.match(kind)
    if as_map is not None:
        entry_name = "".join(part.capitalize() for part in name.split("_")) + "Entry"
        entry = message.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        for i, half in enumerate(("key", "value")):
            _field(entry, f"{as_map[i + 1]} {half} = {i + 1}", full, package, enums, syntax)
        field.label, field.type = _F.LABEL_REPEATED, _F.TYPE_MESSAGE
        field.type_name = f"{full}.{entry_name}"
    elif f"TYPE_{kind.upper()}" in dict(_F.Type.items()):
        field.type = _F.Type.Value(f"TYPE_{kind.upper()}")
    else:
        group, kind = kind.startswith("group "), kind.removeprefix("group ")
        field.type = _F.TYPE_GROUP if group else _F.TYPE_MESSAGE
        if kind in enums:
            field.type = _F.TYPE_ENUM
        field.type_name = f".{kind}" if "." in kind else f"{package}.{kind}"


def native(*files: descriptor_pb2.FileDescriptorProto, root: str = "t.M") -> Given:
    """The PROTOBUF_NATIVE schema of ``root``, which the last file declares."""
    packed = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
    definition = {
        "fileDescriptorSet": base64.b64encode(packed).decode(),
        "rootMessageTypeName": root,
        "rootFileDescriptorName": files[-1].name,
    }
    return "PROTOBUF_NATIVE", json.dumps(definition)


def message_class(*files: descriptor_pb2.FileDescriptorProto, root: str = "t.M") -> type[Message]:
    """To write payloads with."""
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(root))


def written(message: type[Message], **values: Any) -> bytes:
    return message(**values).SerializePartialToString(deterministic=True)


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def sized(number: int, content: bytes) -> bytes:
    """A field of wire type 2: text, bytes, a message, packed numbers."""
    return tag(number, 2) + varint(len(content)) + content


ENUM = {"enum E": ["A = 0", "B = 1", "C = 1", "N = -1"]}
INNER = {"message I": ["int32 a = 1", "string s = 2"]}
UNKNOWN = varint(99 << 3) + b"\x05"
WIDE = proto_file(
    {**ENUM, **INNER,
     "message M": ["int32 i = 1", "I m = 2", "repeated I l = 3", "map<string, I> p = 4",
                   "E e = 5", "repeated E es = 6", "oneof o int32 a = 7", "oneof o string b = 8",
                   "repeated int32 n = 9", "uint32 u = 10", "bool z = 11", "sint32 t = 12",
                   "int64 w = 13", "map<fixed32, bool> q = 14", "map<string, E> pe = 15"]},
)  # fmt: skip
