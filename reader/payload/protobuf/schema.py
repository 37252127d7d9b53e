"""PROTOBUF_NATIVE and PROTOBUF definitions to message classes, and the columns of their fields.

PROTOBUF_NATIVE (``ProtobufNativeSchemaUtils``) has the descriptors of the message and of all that
it uses. PROTOBUF (``ProtobufSchema``) has an Avro schema, which does not describe the wire format,
and in the property ``__PARSING_INFO__`` number, type and label of the top-level fields alone: of a
nested message only its bytes are known, of an enum only its number.
"""

import base64
import json
from dataclasses import dataclass

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from reader.errors import UnsupportedError
from reader.model.column_names import ColumnNames
from reader.payload import column_types
from reader.payload.avro_schema import MALFORMED

# A message used twice is copied, so few descriptors can make a huge tree.
MAX_NODES = 20_000
CUT_NODES = 2_000
MAX_DEPTH = 64
MESSAGES = (FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_GROUP)
_LEAVES = {
    FieldDescriptor.TYPE_BOOL: column_types.BOOLEAN,
    FieldDescriptor.TYPE_BYTES: column_types.BINARY,
    FieldDescriptor.TYPE_DOUBLE: column_types.DOUBLE,
    FieldDescriptor.TYPE_ENUM: column_types.TEXT,
    FieldDescriptor.TYPE_FIXED64: column_types.UNSIGNED,
    FieldDescriptor.TYPE_FLOAT: column_types.DOUBLE,
    FieldDescriptor.TYPE_STRING: column_types.TEXT,
    FieldDescriptor.TYPE_UINT64: column_types.UNSIGNED,
}
# These carry JSON, and contain themselves.
_JSON = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")}
_Files = dict[str, descriptor_pb2.FileDescriptorProto]
_FIELD = descriptor_pb2.FieldDescriptorProto
# What a top-level field is read as where its descriptor is not known.
_OPAQUE = {"MESSAGE": _FIELD.TYPE_BYTES, "ENUM": _FIELD.TYPE_INT32}


@dataclass(frozen=True, slots=True)
class ProtobufSchema:
    """``layout`` of the message as a whole: a `Struct`, or JSON text where it cannot be one.

    ``proto3``: the files of that syntax, whose strings the parser requires to be UTF-8.
    """

    message: type[Message]
    descriptor: Descriptor
    layout: column_types.Layout
    proto3: frozenset[str] = frozenset()


def native_schema(definition: str) -> ProtobufSchema:
    """Raises UnsupportedError for a definition that is not valid, or is too large."""
    try:
        parsed = json.loads(definition)
        raw = base64.b64decode(parsed["fileDescriptorSet"], validate=True)
        files = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(raw).file}
        proto3 = frozenset(name for name, file in files.items() if file.syntax == "proto3")
        pool = descriptor_pool.DescriptorPool()
        _add(pool, files, parsed["rootFileDescriptorName"])
        found = pool.FindMessageTypeByName(parsed["rootMessageTypeName"])
        return _schema(found, proto3)
    except (*MALFORMED, DecodeError) as error:
        raise _unusable(error) from error


def plain_schema(parsing_info: str | None) -> ProtobufSchema:
    """``parsing_info``: the property ``__PARSING_INFO__``. Raises UnsupportedError."""
    if parsing_info is None:
        raise UnsupportedError("the Protobuf schema does not have the numbers of its fields")
    file = descriptor_pb2.FileDescriptorProto(name="payload.proto", syntax="proto2")
    message = file.message_type.add(name="Payload")
    try:
        for info in json.loads(parsing_info):
            kind = _OPAQUE.get(info["type"]) or _FIELD.Type.Value(f"TYPE_{info['type']}")
            if kind != _FIELD.TYPE_GROUP:
                repeated = info["label"] == "LABEL_REPEATED"
                label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
                message.field.add(name=info["name"], number=info["number"], type=kind, label=label)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        return _schema(pool.FindMessageTypeByName("Payload"))
    except MALFORMED as error:
        raise _unusable(error) from error


def message_of(field: FieldDescriptor) -> Descriptor:
    """Of a field of type message or group."""
    assert field.message_type is not None
    return field.message_type


def enum_of(field: FieldDescriptor) -> EnumDescriptor:
    assert field.enum_type is not None
    return field.enum_type


def is_entry(message: Descriptor) -> bool:
    """Whether it is the entry, key and value, of a map."""
    return bool(message.GetOptions().map_entry)


def is_map(field: FieldDescriptor) -> bool:
    return field.type in MESSAGES and is_entry(message_of(field))


def field_file(field: FieldDescriptor) -> str:
    """The name of the file that declares it."""
    assert field.containing_type is not None
    return str(field.containing_type.file.name)


def _unusable(error: Exception) -> UnsupportedError:
    return UnsupportedError(f"not a Protobuf schema: {type(error).__name__} {error}")


def _add(pool: descriptor_pool.DescriptorPool, files: _Files, name: str) -> None:
    """Move ``name`` from ``files`` to ``pool``, after the files that it imports."""
    file = files.pop(name)
    # The pool does not find a file that imports itself, which is the error to report.
    for dependency in file.dependency:
        if dependency in files:
            _add(pool, files, dependency)
    # Extensions in messages have to be unknown fields, and not silently read.
    del file.extension[:]
    todo = list(file.message_type)
    while todo:
        message = todo.pop()
        del message.extension[:]
        todo += message.nested_type
    pool.AddSerializedFile(file.SerializeToString())


def _schema(descriptor: Descriptor, proto3: frozenset[str] = frozenset()) -> ProtobufSchema:
    try:
        layout = _Layouts(MAX_DEPTH, MAX_NODES).message(descriptor, ())
    except _TooLargeError:
        layout = _cut(descriptor)
    made = message_factory.GetMessageClass(descriptor)
    return ProtobufSchema(made, descriptor, layout, proto3)


def _cut(descriptor: Descriptor) -> column_types.Layout:
    """Return the columns of as many levels of messages as there is room for, text below."""
    levels, layout = 1, _Layouts(1, 1 << 30).message(descriptor, ())
    while levels < MAX_DEPTH:
        try:
            layout = _Layouts(levels + 1, CUT_NODES).message(descriptor, ())
        except _TooLargeError:
            break
        levels += 1
    return layout


class _TooLargeError(Exception):
    """There are more nodes than there may be."""


class _Layouts:
    """The columns of messages, ``levels`` within each other and ``most`` nodes, at most."""

    def __init__(self, levels: int, most: int) -> None:
        self.nodes = 0
        self.levels, self.most = levels, most

    def message(self, descriptor: Descriptor, path: tuple[str, ...]) -> column_types.Layout:
        self.nodes += 1
        if self.nodes > self.most:
            raise _TooLargeError
        name = descriptor.full_name
        # Neither Parquet nor Delta has a struct without members, or one inside itself.
        below = name in path or len(path) >= self.levels
        if below or name in _JSON or not descriptor.fields:
            return column_types.JSON_TEXT
        columns = ColumnNames()
        return column_types.Struct(
            tuple(
                column_types.Member(
                    f.name,
                    columns.add(column_types.column_name(f.name)),
                    self.field(f, (*path, name)),
                )
                for f in descriptor.fields
            )
        )

    def field(self, field: FieldDescriptor, path: tuple[str, ...]) -> column_types.Layout:
        if is_map(field):
            return column_types.MapOf(self.value(message_of(field).fields_by_name["value"], path))
        value = self.value(field, path)
        return column_types.ListOf(value) if field.is_repeated else value

    def value(self, field: FieldDescriptor, path: tuple[str, ...]) -> column_types.Layout:
        self.nodes += 1
        if field.type in MESSAGES:
            return self.message(message_of(field), path)
        return _LEAVES.get(field.type, column_types.NUMBER)
