"""The decoders of one member of a topic's payload: byte strings of any version to its columns.

A record that is a payload has no member of its own: its fields are columns. Everything else is one
member, and so one column: `PAYLOAD`, or `KEY` and `VALUE` of a KeyValue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.payload.avro.decoder import AvroDecoder
from reader.payload.column_types import Struct, label
from reader.payload.json.decoder import JsonDecoder
from reader.payload.primitive import PRIMITIVES, decode_primitive
from reader.payload.protobuf.decoder import ProtobufDecoder
from reader.payload.registry import PayloadSchema

__all__ = ["DecodedRows", "MemberDecoder"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """Arrays and problems of ``rows``, in their order; problems by index in ``rows``."""

    rows: Int64s
    arrays: Mapping[str, pa.Array]
    problems: Mapping[int, str]


class _Decoder(Protocol):
    def decode(
        self, spans: ByteSpans, versions: Int64s
    ) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]: ...


_DECODERS: Mapping[str, Callable[..., _Decoder]] = {
    "avro": AvroDecoder,
    "json": JsonDecoder,
    "protobuf": ProtobufDecoder,
}


class MemberDecoder:
    """Decodes the member ``member_name`` (None: a record's fields), each row by its version."""

    def __init__(
        self,
        member_name: str | None,
        schemas: Sequence[tuple[int, PayloadSchema]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
    ) -> None:
        mine = {m.name: m.column for _, schema in schemas for m in schema.layout.members}
        columns = {m.column for m in layout.members if m.name in mine} & set(wanted)
        self._decoders: list[tuple[Int64s, _Decoder]] = []
        for kind, make in _DECODERS.items():
            some = [(v, s.schema) for v, s in schemas if s.kind == kind]
            if some:
                decoder = make(some, fields, layout, columns, member_name)
                self._decoders.append((_versions(v for v, _ in some), decoder))
        for version, schema in schemas:
            if schema.kind == "primitive":
                self._decoders.append((_versions([version]), _Primitive(schema, layout)))
            elif schema.kind == "unsupported":
                self._decoders.append((_versions([version]), _Unsupported(schema.reason)))

    def decode(self, spans: ByteSpans, versions: Int64s) -> list[DecodedRows]:
        """Rows that are present and of one of this member's versions; others are left out."""
        parts = []
        for known, decoder in self._decoders:
            rows = np.flatnonzero(spans.present & np.isin(versions, known))
            if len(rows) == len(spans):
                parts.append(DecodedRows(rows, *decoder.decode(spans, versions)))
            elif len(rows):
                parts.append(DecodedRows(rows, *decoder.decode(spans.take(rows), versions[rows])))
        return parts


def _versions(numbers: Iterable[int]) -> Int64s:
    return np.array(list(numbers), np.int64)


class _Primitive:
    """One version of a primitive schema."""

    def __init__(self, schema: PayloadSchema, layout: Struct) -> None:
        (self._member,) = schema.layout.members
        self._column = layout.member(self._member.name)
        self._type = schema.type

    def decode(
        self, spans: ByteSpans, versions: Int64s
    ) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]:
        array, problems = decode_primitive(self._type, spans)
        leaf = PRIMITIVES[self._type].leaf
        if self._column is not None and self._column.layout == leaf:
            return {self._column.column: array}, problems
        why = f"{label(self._member.name)} is {leaf.type}, its column is another type"
        present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        return {}, {**dict.fromkeys(present.tolist(), why), **problems}


class _Unsupported:
    """One version whose schema is not supported."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def decode(
        self, spans: ByteSpans, versions: Int64s
    ) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]:
        return {}, dict.fromkeys(range(len(versions)), self._reason)
