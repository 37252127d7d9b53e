"""The decoders of one place: byte strings of any schema versions -> the columns of that place.

A place is where what is read goes. A record that is a payload has none: its fields are columns.
Everything else is one member, and so one column: `WHOLE`, or `KEY` and `VALUE` of a KeyValue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.spans import Spans
from reader.payload.avro.decoder import AvroDecoder
from reader.payload.column_types import Struct, label
from reader.payload.json.decoder import JsonDecoder
from reader.payload.primitive import PRIMITIVES, decode_primitive
from reader.payload.protobuf.decoder import ProtobufDecoder
from reader.payload.registry import Reading

__all__ = ["Part", "PlaceDecoder"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Part:
    """Arrays and problems of the rows ``rows``, in their order; problems by place in ``rows``."""

    rows: Rows
    arrays: Mapping[str, pa.Array]
    problems: Mapping[int, str]


class _Decoder(Protocol):
    def decode(
        self, spans: Spans, versions: Rows
    ) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]: ...


_DECODERS: Mapping[str, Callable[..., _Decoder]] = {
    "avro": AvroDecoder,
    "json": JsonDecoder,
    "protobuf": ProtobufDecoder,
}


class PlaceDecoder:
    """Decodes what goes to ``place``, each by the reading of its version."""

    def __init__(
        self,
        place: str | None,
        readings: Sequence[tuple[int, Reading]],
        fields: pa.Schema,
        layout: Struct,
        wanted: Collection[str],
    ) -> None:
        mine = {m.name: m.column for _, reading in readings for m in reading.layout.members}
        columns = {m.column for m in layout.members if m.name in mine} & set(wanted)
        self._decoders: list[tuple[Rows, _Decoder]] = []
        for kind, make in _DECODERS.items():
            some = [(v, r.schema) for v, r in readings if r.kind == kind]
            if some:
                decoder = make(some, fields, layout, columns, place)
                self._decoders.append((_versions(v for v, _ in some), decoder))
        for version, reading in readings:
            if reading.kind == "primitive":
                self._decoders.append((_versions([version]), _Primitive(reading, layout)))
            elif reading.kind == "unsupported":
                self._decoders.append((_versions([version]), _Unsupported(reading.reason)))

    def decode(self, spans: Spans, versions: Rows) -> list[Part]:
        """What is present and of one of this place's versions; the other rows are left out."""
        parts = []
        for known, decoder in self._decoders:
            rows = np.flatnonzero(spans.present & np.isin(versions, known))
            if len(rows) == len(spans):
                parts.append(Part(rows, *decoder.decode(spans, versions)))
            elif len(rows):
                parts.append(Part(rows, *decoder.decode(spans.take(rows), versions[rows])))
        return parts


def _versions(numbers: Iterable[int]) -> Rows:
    return np.array(list(numbers), np.int64)


class _Primitive:
    """One version of a primitive schema."""

    def __init__(self, reading: Reading, layout: Struct) -> None:
        (self._member,) = reading.layout.members
        self._column = layout.member(self._member.name)
        self._type = reading.type

    def decode(
        self, spans: Spans, versions: Rows
    ) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]:
        array, problems = decode_primitive(self._type, spans)
        leaf = PRIMITIVES[self._type].leaf
        if self._column is not None and self._column.layout == leaf:
            return {self._column.column: array}, problems
        why = f"{label(self._member.name)} is {leaf.type}, its column is another type"
        present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        return {}, {**dict.fromkeys(present.tolist(), why), **problems}


class _Unsupported:
    """One version that nothing can be read of."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def decode(
        self, spans: Spans, versions: Rows
    ) -> tuple[Mapping[str, pa.Array], Mapping[int, str]]:
        return {}, dict.fromkeys(range(len(versions)), self._reason)
