"""The versions of a topic's schema, and the one set of columns that serves them all."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from reader.errors import UnsupportedError
from reader.model import SchemaInfo
from reader.model.columns import METADATA_NAMES
from reader.payload import column_types
from reader.payload.avro_schema import Record, Schema, parse_schema
from reader.payload.keyvalue import two_schemas
from reader.payload.primitive import PRIMITIVES
from reader.payload.protobuf.schema import ProtobufSchema, native_schema, plain_schema
from reader.payload.remembered.origins import fields_of, layout_of_fields
from reader.payload.remembered.union import ColumnUnion, count_columns

Kind = Literal["avro", "json", "protobuf", "primitive", "unsupported"]

MOST_PARSED = 65_536
"""The maximum number of columns of all definitions that a process keeps parsed; 64 bytes of text
count as one. A column takes some 700 bytes, so they are 45 MB."""

_KINDS: Mapping[str, Kind] = {
    "AVRO": "avro",
    "JSON": "json",
    "PROTOBUF": "protobuf",
    "PROTOBUF_NATIVE": "protobuf",
}


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """How a byte string is decoded: ``schema`` of a record, ``type`` of a primitive.

    ``member_name``: of the one member of ``layout``; None if the fields of a record are members.
    "unsupported" has no members and a ``reason``.
    """

    kind: Kind
    type: str
    member_name: str | None
    layout: column_types.Struct
    schema: Schema | ProtobufSchema | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """One version of a topic's schema; ``key`` is that of a KeyValue, None for all others.

    ``separated``: the key is the message's; otherwise both are in the payload.
    """

    version: int
    value: PayloadSchema
    key: PayloadSchema | None = None
    separated: bool = False

    @property
    def schemas(self) -> Iterator[PayloadSchema]:
        if self.key is not None:
            yield self.key
        yield self.value


@dataclass(frozen=True, slots=True)
class Registry:
    """Versions ascending, and the union of their layouts: the payload columns."""

    versions: tuple[SchemaVersion, ...]
    layout: column_types.Struct


def payload_fields(schemas: Sequence[SchemaInfo], known: pa.Schema | None = None) -> pa.Schema:
    """Return the payload columns of a topic: every field of every version, all nullable.

    A topic without any schema has the one column ``value`` (binary); one whose versions are all
    of unsupported types has none. Appending versions only appends columns (and struct members):
    names and types of earlier ones stay. The mapping is in docs/types.md. Each column has its
    origin in its metadata (``remembered.origins``).

    ``known``: the columns of a table, which stay; they and their structs grow by what is new.
    """
    return pa.schema(fields_of(registry_of(schemas, known).layout))


def registry_of(schemas: Sequence[SchemaInfo], known: pa.Schema | None = None) -> Registry:
    """Return the versions, ascending, and the columns that ``known`` and they have together."""
    versions = tuple(version_of(info) for info in sorted(schemas, key=_age))
    union = ColumnUnion(layout_of_fields(known or ()), METADATA_NAMES)
    for version in versions or [BYTES_VERSION]:
        for schema in version.schemas:
            union.add(schema.layout)
    return Registry(versions, union.layout())


def _age(info: SchemaInfo) -> tuple[int, int]:
    return info.life, info.version


def version_of(info: SchemaInfo) -> SchemaVersion:
    """Return the schema of a definition."""
    if info.type != "KEY_VALUE":
        return SchemaVersion(info.version, _payload_schema(info, None))
    try:
        key, value, separated = two_schemas(info)
    except UnsupportedError as error:
        reason = f"schema version {info.version}: {error.message}"
        return SchemaVersion(info.version, _unsupported(info, None, reason))
    return SchemaVersion(
        info.version,
        _payload_schema(value, column_types.VALUE),
        _payload_schema(key, column_types.KEY),
        separated,
    )


def _payload_schema(info: SchemaInfo, member_name: str | None) -> PayloadSchema:
    """``member_name``: None for a payload: `PAYLOAD` or `BARE`, unless it is a record."""
    kind = "BYTES" if info.type == "NONE" else info.type
    if kind in PRIMITIVES:
        if member_name is None:
            # Text is no plain bytes: after messages without a schema it is a column of its own.
            member_name = column_types.BARE if kind == "BYTES" else column_types.PAYLOAD
        return PayloadSchema(
            "primitive", kind, member_name, _one(member_name, PRIMITIVES[kind].leaf)
        )
    if kind not in _KINDS:
        return _unsupported(info, member_name, f"schema type {kind} is not supported")
    try:
        schema, layout, fields = DEFINITIONS.get(info)
    except UnsupportedError as error:
        return _unsupported(info, member_name, f"schema version {info.version}: {error.message}")
    if member_name is None and not fields:
        member_name = column_types.PAYLOAD
    if member_name is not None:
        layout = _one(member_name, layout)
    elif not isinstance(layout, column_types.Struct):
        # A record without fields.
        layout = column_types.Struct(())
    return PayloadSchema(_KINDS[kind], kind, member_name, layout, schema)


_Parsed = tuple[Schema | ProtobufSchema, column_types.Layout, bool]


class ParsedDefinitions:
    """Definitions of AVRO and JSON that were parsed, by their content. Thread-safe.

    Each decoder needs the versions that occur, and one of JSON all versions: a process parses them
    once. ``most``: as MOST_PARSED; those used last are kept. ``kept``: the columns that are.
    """

    def __init__(self, most: int = MOST_PARSED) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._parsed: OrderedDict[tuple[str, str, str], tuple[_Parsed, int]] = OrderedDict()
        self.kept = 0

    def get(self, info: SchemaInfo) -> _Parsed:
        """Return the parsed definition. Raises UnsupportedError."""
        if info.type not in ("AVRO", "JSON"):
            return _parsed(info)
        key = (info.type, info.definition, info.json_bytes)
        with self._lock:
            if key in self._parsed:
                self._parsed.move_to_end(key)
                return self._parsed[key][0]
        found = _parsed(info)
        size = count_columns(found[1]) + len(info.definition) // 64
        with self._lock:
            if key not in self._parsed:
                self._parsed[key] = found, size
                self.kept += size
                while self.kept > self._most:
                    self.kept -= self._parsed.popitem(last=False)[1][1]
        return found


def _parsed(info: SchemaInfo) -> _Parsed:
    """The schema, its layout, and whether a payload of it has fields for columns."""
    if info.type in ("AVRO", "JSON"):
        schema = parse_schema(info.definition, info.json_bytes if info.type == "JSON" else "")
        return schema, column_types.layout_of(schema.root), isinstance(schema.root, Record)
    if info.type == "PROTOBUF_NATIVE":
        protobuf = native_schema(info.definition)
    else:
        protobuf = plain_schema(info.properties.get("__PARSING_INFO__"))
    empty = not protobuf.descriptor.fields
    return protobuf, protobuf.layout, empty or isinstance(protobuf.layout, column_types.Struct)


def _one(member_name: str, layout: column_types.Layout) -> column_types.Struct:
    return column_types.Struct(
        (column_types.Member(member_name, column_types.column_name(member_name), layout),)
    )


def _unsupported(info: SchemaInfo, member_name: str | None, reason: str) -> PayloadSchema:
    return PayloadSchema(
        "unsupported", info.type, member_name, column_types.Struct(()), None, reason
    )


DEFINITIONS = ParsedDefinitions()

BYTES_VERSION = version_of(SchemaInfo(-1, "BYTES", ""))
"""The schema of messages that have none."""
