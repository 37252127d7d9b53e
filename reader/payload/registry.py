"""The versions of a topic's schema, and the one set of columns that serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from reader.columns import METADATA_NAMES
from reader.errors import UnsupportedError
from reader.model import SchemaInfo
from reader.payload.avro_schema import Record, Schema, parse_schema
from reader.payload.layout import BINARY, Leaf, Member, Struct, arrow_type, layout_of, merge
from reader.payload.primitive import PRIMITIVES

__all__ = ["Registry", "Version", "payload_fields", "registry_of"]

Kind = Literal["avro", "json", "primitive", "unsupported"]


@dataclass(frozen=True, slots=True)
class Version:
    """One version: ``schema`` for avro and json, ``type`` for primitive, else the ``reason``."""

    version: int
    kind: Kind
    type: str
    layout: Struct
    schema: Schema | None = None
    reason: str = ""


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
        for version in self.versions:
            if version.kind == "primitive" and version.type == "BYTES":
                return version
        if all(v.kind == "json" or v.type == "STRING" for v in self.versions):
            return self.versions[-1]
        return "the message has no schema version"


def payload_fields(schemas: Sequence[SchemaInfo]) -> pa.Schema:
    """The payload columns of a topic: every field of every version, all nullable.

    A topic without any schema has the one column ``value`` (binary); one whose versions are all
    of unsupported types has none. Appending versions only appends columns (and struct members):
    names and types of earlier ones stay. The mapping is in docs/types.md.
    """
    layout = registry_of(schemas).layout
    return pa.schema([(member.column, arrow_type(member.layout)) for member in layout.members])


def registry_of(schemas: Sequence[SchemaInfo]) -> Registry:
    versions = tuple(_version(info) for info in sorted(schemas, key=lambda info: info.version))
    layout = Struct(())
    for later in [v.layout for v in versions] or [_value(BINARY)]:
        merged = merge(layout, later, METADATA_NAMES)
        assert isinstance(merged, Struct)
        layout = merged
    return Registry(versions, layout)


def _value(leaf: Leaf) -> Struct:
    return Struct((Member("", "value", leaf),))


def _version(info: SchemaInfo) -> Version:
    kind = "BYTES" if info.type == "NONE" else info.type
    if kind in PRIMITIVES:
        return Version(info.version, "primitive", kind, _value(PRIMITIVES[kind].leaf))
    if kind not in ("AVRO", "JSON"):
        return _unsupported(info, f"schema type {kind} is not supported yet")
    try:
        schema = parse_schema(info.definition)
    except UnsupportedError as error:
        return _unsupported(info, f"schema version {info.version}: {error.message}")
    if not isinstance(schema.root, Record):
        if kind == "JSON":
            return _unsupported(info, f"schema version {info.version} is not of a record")
        # A record of one field is written as that field alone.
        schema = Schema(Record("", (("", schema.root),)), schema.records)
    layout = layout_of(schema.root)
    if not isinstance(layout, Struct):
        layout = Struct(())
    return Version(info.version, "avro" if kind == "AVRO" else "json", kind, layout, schema)


def _unsupported(info: SchemaInfo, reason: str) -> Version:
    return Version(info.version, "unsupported", info.type, Struct(()), None, reason)
