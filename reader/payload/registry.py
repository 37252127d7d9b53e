"""The versions of a topic's schema, and the one set of columns that serves them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from reader.errors import UnsupportedError
from reader.model import SchemaInfo
from reader.model.columns import METADATA_NAMES
from reader.payload.avro_schema import Record, Schema, parse_schema
from reader.payload.column_types import (
    KEY,
    VALUE,
    WHOLE,
    Layout,
    Member,
    Struct,
    arrow_type,
    column_name,
    grown_fields,
    layout_of,
    merge,
)
from reader.payload.keyvalue import two_schemas
from reader.payload.primitive import PRIMITIVES
from reader.payload.protobuf.schema import ProtobufSchema, native_schema, plain_schema

__all__ = ["Reading", "Registry", "Version", "payload_fields", "registry_of"]

Kind = Literal["avro", "json", "protobuf", "primitive", "unsupported"]

_KINDS: Mapping[str, Kind] = {
    "AVRO": "avro",
    "JSON": "json",
    "PROTOBUF": "protobuf",
    "PROTOBUF_NATIVE": "protobuf",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a byte string is read: ``schema`` of a record, ``type`` of a primitive.

    It goes to ``place``: None if the fields of a record are columns, else the one member that
    ``layout`` has. "unsupported" has no members and a ``reason``.
    """

    kind: Kind
    type: str
    place: str | None
    layout: Struct
    schema: Schema | ProtobufSchema | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """One version: of a payload as a whole, or with ``key`` of a KeyValue.

    ``separated``: the key is the message's; otherwise both lie in the payload.
    """

    version: int
    value: Reading
    key: Reading | None = None
    separated: bool = False

    @property
    def readings(self) -> Iterator[Reading]:
        if self.key is not None:
            yield self.key
        yield self.value


@dataclass(frozen=True, slots=True)
class Registry:
    """Versions ascending, and the union of their layouts: the payload columns."""

    versions: tuple[Version, ...]
    layout: Struct

    def without_version(self) -> Version | str:
        """How to read a message that names no version, or why it cannot be read.

        Producers of bytes name none. JSON and text show by themselves whether they are read
        right; Avro read by the wrong version gives wrong values.
        """
        if not self.versions:
            return _version(SchemaInfo(-1, "BYTES", ""))
        alone = [version for version in self.versions if version.key is None]
        for version in alone:
            if version.value.type == "BYTES":
                return version
        shows = [v.value.kind == "json" or v.value.type == "STRING" for v in alone]
        if len(shows) == len(self.versions) and all(shows):
            return self.versions[-1]
        return "the message has no schema version"


def payload_fields(schemas: Sequence[SchemaInfo], known: pa.Schema | None = None) -> pa.Schema:
    """The payload columns of a topic: every field of every version, all nullable.

    A topic without any schema has the one column ``value`` (binary); one whose versions are all
    of unsupported types has none. Appending versions only appends columns (and struct members):
    names and types of earlier ones stay. The mapping is in docs/types.md.

    ``known``: the columns of a table, which stay; they and their structs grow by what is new, just
    as delta-rs adds columns.
    """
    layout = registry_of(schemas).layout
    fields = [pa.field(m.column, arrow_type(m.layout)) for m in layout.members]
    return pa.schema(fields if known is None else grown_fields(list(known), fields))


def registry_of(schemas: Sequence[SchemaInfo]) -> Registry:
    versions = tuple(_version(info) for info in sorted(schemas, key=lambda info: info.version))
    layout = Struct(())
    for version in versions or [_version(SchemaInfo(-1, "BYTES", ""))]:
        for reading in version.readings:
            merged = merge(layout, reading.layout, METADATA_NAMES)
            assert isinstance(merged, Struct)
            layout = merged
    return Registry(versions, layout)


def _version(info: SchemaInfo) -> Version:
    if info.type != "KEY_VALUE":
        return Version(info.version, _reading(info, None))
    try:
        key, value, separated = two_schemas(info)
    except UnsupportedError as error:
        reason = f"schema version {info.version}: {error.message}"
        return Version(info.version, _unsupported(info, None, reason))
    return Version(info.version, _reading(value, VALUE), _reading(key, KEY), separated)


def _reading(info: SchemaInfo, place: str | None) -> Reading:
    """``place``: None for a payload, which may turn out to be a record, or `WHOLE`."""
    kind = "BYTES" if info.type == "NONE" else info.type
    if kind in PRIMITIVES:
        place = WHOLE if place is None else place
        return Reading("primitive", kind, place, _one(place, PRIMITIVES[kind].leaf))
    if kind not in _KINDS:
        return _unsupported(info, place, f"schema type {kind} is not supported")
    try:
        schema, layout, fields = _parsed(info)
    except UnsupportedError as error:
        return _unsupported(info, place, f"schema version {info.version}: {error.message}")
    if place is None and not fields:
        place = WHOLE
    if place is not None:
        layout = _one(place, layout)
    elif not isinstance(layout, Struct):
        # A record without fields.
        layout = Struct(())
    return Reading(_KINDS[kind], kind, place, layout, schema)


def _parsed(info: SchemaInfo) -> tuple[Schema | ProtobufSchema, Layout, bool]:
    """The schema, its layout, and whether that of a payload is one of fields."""
    if info.type in ("AVRO", "JSON"):
        schema = parse_schema(info.definition)
        return schema, layout_of(schema.root), isinstance(schema.root, Record)
    if info.type == "PROTOBUF_NATIVE":
        protobuf = native_schema(info.definition)
    else:
        protobuf = plain_schema(info.properties.get("__PARSING_INFO__"))
    empty = not protobuf.descriptor.fields
    return protobuf, protobuf.layout, empty or isinstance(protobuf.layout, Struct)


def _one(place: str, layout: Layout) -> Struct:
    return Struct((Member(place, column_name(place, ()), layout),))


def _unsupported(info: SchemaInfo, place: str | None, reason: str) -> Reading:
    return Reading("unsupported", info.type, place, Struct(()), None, reason)
