"""Payloads of a topic to its payload columns, whatever schema each message was written with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.kernels.byte_spans import ByteSpans
from reader.model import SchemaInfo
from reader.payload.column_types import KEY, Struct, fit
from reader.payload.keyvalue import split
from reader.payload.member_decoder import DecodedRows, MemberDecoder
from reader.payload.registry import PayloadSchema, SchemaVersion, registry_of

__all__ = ["DecodedPayload", "PayloadDecoder"]

Int64s = npt.NDArray[np.int64]


# No version, not even -1: of a row that no decoder has to read.
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class DecodedPayload:
    """``arrays``: each wanted column, n long, of exactly its field's type.

    ``problems``: by row, one line on why the columns do not reproduce its payload. Columns that
    could not be decoded are NULL.
    """

    arrays: Mapping[str, pa.Array]
    problems: Mapping[int, str]


class PayloadDecoder:
    """Decodes messages of one topic.

    ``schemas`` are the versions of the registry, ``fields`` the payload columns of the table (as
    of `payload_fields`, perhaps of other versions: what has no column there is a problem of its
    row). ``wanted`` names the columns to build, all by default. Which rows have problems does not
    depend on it. Not thread-safe.
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
        self._versions: dict[int, SchemaVersion | str] = {v.version: v for v in registry.versions}
        if isinstance(nameless, SchemaVersion):
            self._versions.setdefault(nameless.version, nameless)
        self._versions[-1] = nameless
        schemas_of: dict[str | None, dict[int, PayloadSchema]] = {}
        for version in self._versions.values():
            if isinstance(version, SchemaVersion):
                for schema in version.schemas:
                    schemas_of.setdefault(schema.member_name, {})[version.version] = schema
        decoders = {
            name: MemberDecoder(name, list(found.items()), fields, layout, names)
            for name, found in schemas_of.items()
        }
        self._keys = [decoder for name, decoder in decoders.items() if name == KEY]
        self._values = [decoder for name, decoder in decoders.items() if name != KEY]

    @property
    def needs_keys(self) -> bool:
        """Whether some schema version takes columns from the messages' keys."""
        return any(isinstance(v, SchemaVersion) and v.separated for v in self._versions.values())

    def decode(
        self,
        payload: ByteSpans,
        schema_versions: npt.NDArray[np.int64],
        keys: pa.LargeBinaryArray | None = None,
    ) -> DecodedPayload:
        """Decode n payloads, each by its own version (-1: it names none); none is NULL.

        ``keys``: the messages' keys as bytes, null for none; read where `needs_keys`. Nothing is
        raised for what a payload or key holds. Raises UnsupportedError where a column would exceed
        2 GiB, the limit of an Arrow string array; keep batches far below.
        """
        problems: dict[int, str] = {}
        parts: list[DecodedRows] = []
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

        def read(decoders: Sequence[MemberDecoder], rows: Int64s, some: ByteSpans) -> None:
            for decoder in decoders:
                for part in decoder.decode(some, versions[rows]):
                    parts.append(DecodedRows(rows[part.rows], part.arrays, part.problems))

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
            read(self._keys, rows, ByteSpans.of(keys).take(rows))
        for part in parts:
            for i, why in part.problems.items():
                problems.setdefault(int(part.rows[i]), _line(why))
        arrays = {f.name: _joined(f, len(payload), parts) for f in self._fields}
        return DecodedPayload(arrays, dict(sorted(problems.items())))


def _distinct(numbers: Int64s) -> list[int]:
    if len(numbers) and (numbers == numbers[0]).all():  # as in most batches
        return [int(numbers[0])]
    found: list[int] = np.unique(numbers).tolist()
    return found


def _line(reason: str) -> str:
    """``reason`` as one line of text; names in it may hold anything."""
    return reason if reason.isprintable() else ascii(reason)[1:-1]


def _joined(field: pa.Field, count: int, parts: Sequence[DecodedRows]) -> pa.Array:
    """Column ``field`` of all rows, from the parts that have it."""
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
