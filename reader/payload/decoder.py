"""Payloads of a topic -> its payload columns, whatever schema each message was written with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.spans import Spans
from reader.model import SchemaInfo
from reader.payload.column_types import KEY, Struct, fit
from reader.payload.keyvalue import split
from reader.payload.members import Part, PlaceDecoder
from reader.payload.registry import Reading, Version, registry_of

__all__ = ["DecodedPayload", "PayloadDecoder"]

Rows = npt.NDArray[np.int64]


# No version, not even -1: a row that no decoder has to read.
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class DecodedPayload:
    """``arrays``: each wanted column, n long, of exactly its field's type.

    ``problems``: row -> one line on why the columns do not reproduce its payload. Its columns
    are all NULL if nothing could be decoded, otherwise those are filled that could be.
    """

    arrays: Mapping[str, pa.Array]
    problems: Mapping[int, str]


class PayloadDecoder:
    """Decodes messages of one topic.

    ``schemas`` are the versions of the registry, ``fields`` the payload columns of the table (as
    of `payload_fields`, perhaps of other versions: what has no column there is a problem of its
    row). ``wanted`` names the columns to build, all by default. Which rows are problems does not
    depend on it. Not for use by several threads at once.
    """

    def __init__(
        self,
        schemas: Sequence[SchemaInfo],
        fields: pa.Schema,
        *,
        wanted: Collection[str] | None = None,
    ) -> None:
        self._fields = [f for f in fields if wanted is None or f.name in wanted]
        names = {f.name for f in self._fields}
        registry = registry_of(schemas)
        layout = fit(registry.layout, pa.struct(list(fields)))
        assert isinstance(layout, Struct)
        nameless = registry.without_version()
        self._versions: dict[int, Version | str] = {v.version: v for v in registry.versions}
        if isinstance(nameless, Version):
            self._versions.setdefault(nameless.version, nameless)
        self._versions[-1] = nameless
        readings: dict[str | None, dict[int, Reading]] = {}
        for version in self._versions.values():
            if isinstance(version, Version):
                for reading in version.readings:
                    readings.setdefault(reading.place, {})[version.version] = reading
        places = {
            place: PlaceDecoder(place, list(found.items()), fields, layout, names)
            for place, found in readings.items()
        }
        self._keys = [decoder for place, decoder in places.items() if place == KEY]
        self._values = [decoder for place, decoder in places.items() if place != KEY]

    @property
    def needs_keys(self) -> bool:
        """Whether some schema version takes a part of its columns from the messages' keys."""
        return any(isinstance(v, Version) and v.separated for v in self._versions.values())

    def decode(
        self,
        payload: Spans,
        schema_versions: npt.NDArray[np.int64],
        keys: pa.LargeBinaryArray | None = None,
    ) -> DecodedPayload:
        """Decode n payloads, each by its own version (-1: it names none); none is NULL.

        ``keys``: the messages' keys as bytes, null for none; read where `needs_keys`. Never raises
        for what a payload or key holds. UnsupportedError: a column would exceed 2 GiB, the limit
        of an Arrow string array; keep batches far below.
        """
        problems: dict[int, str] = {}
        parts: list[Part] = []
        versions = np.full(len(payload), _NEVER)
        inline, separated = np.zeros((2, len(payload)), np.bool_)
        for number in _distinct(schema_versions):
            mine = schema_versions == number
            version = self._versions.get(number, f"schema version {number} is not in the registry")
            if isinstance(version, str):
                problems |= dict.fromkeys(np.flatnonzero(mine & payload.present).tolist(), version)
                continue
            versions[mine] = version.version
            if version.key is not None:
                (separated if version.separated else inline)[mine] = True

        def read(places: Sequence[PlaceDecoder], rows: Rows, some: Spans) -> None:
            for place in places:
                for part in place.decode(some, versions[rows]):
                    parts.append(Part(rows[part.rows], part.arrays, part.problems))

        rows = np.flatnonzero(~inline)
        read(self._values, rows, payload.take(rows) if inline.any() else payload)
        rows = np.flatnonzero(inline)
        if len(rows):
            inline_keys, inline_values, broken = split(payload, rows)
            problems |= broken
            read(self._values, rows, inline_values)
            read(self._keys, rows, inline_keys)
        rows = np.flatnonzero(separated)
        if len(rows) and keys is None:
            problems |= dict.fromkeys(rows.tolist(), "the message's key was not read")
        elif len(rows):
            read(self._keys, rows, Spans.of(keys).take(rows))
        for part in parts:
            for i, why in part.problems.items():
                problems.setdefault(int(part.rows[i]), _line(why))
        arrays = {f.name: _joined(f, len(payload), parts) for f in self._fields}
        return DecodedPayload(arrays, dict(sorted(problems.items())))


def _distinct(numbers: Rows) -> list[int]:
    """Most batches have one."""
    if len(numbers) and (numbers == numbers[0]).all():
        return [int(numbers[0])]
    found: list[int] = np.unique(numbers).tolist()
    return found


def _line(reason: str) -> str:
    """``reason`` as one line of text; names in it may hold anything."""
    return reason if reason.isprintable() else ascii(reason)[1:-1]


def _joined(field: pa.Field, count: int, parts: Sequence[Part]) -> pa.Array:
    """Column ``field`` of all rows, out of the parts that have it."""
    having = [part for part in parts if field.name in part.arrays]
    if len(having) == 1 and len(having[0].rows) == count:
        return having[0].arrays[field.name]
    where = np.full(count, -1, np.int64)
    start = 0
    for part in having:
        where[part.rows] = np.arange(start, start + len(part.rows))
        start += len(part.rows)
    if not start:
        return pa.nulls(count, field.type)
    values = pa.concat_arrays([part.arrays[field.name] for part in having])
    return values.take(pa.array(where, mask=where < 0))
