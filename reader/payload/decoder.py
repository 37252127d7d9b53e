"""Payloads of a topic -> its payload columns, whatever schema each message was written with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.model import SchemaInfo
from reader.payload.avro import AvroDecoder
from reader.payload.avro_schema import Schema
from reader.payload.jsons import JsonDecoder
from reader.payload.layout import Struct, fit
from reader.payload.primitive import PRIMITIVES, decode_primitive
from reader.payload.registry import Version, registry_of
from reader.payload.spans import Spans, spans_of

__all__ = ["DecodedPayload", "PayloadDecoder"]

Rows = npt.NDArray[np.int64]


# No version, not even -1: a row that no decoder has to read.
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class _Part:
    """Arrays and problems of the rows ``rows``, in their order."""

    rows: Rows
    arrays: Mapping[str, pa.Array]
    problems: Mapping[int, str]


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
        self._layout = layout
        self._versions: dict[int, Version | str] = {v.version: v for v in registry.versions}
        self._versions[-1] = registry.without_version()
        kinds: dict[str, list[tuple[int, Schema]]] = {"avro": [], "json": []}
        for version in registry.versions:
            if version.schema is not None:
                kinds[version.kind].append((version.version, version.schema))
        self._avro = AvroDecoder(kinds["avro"], fields, layout, names) if kinds["avro"] else None
        self._json = JsonDecoder(kinds["json"], fields, layout, names) if kinds["json"] else None

    def decode(
        self, payload: pa.LargeBinaryArray, schema_versions: npt.NDArray[np.int64]
    ) -> DecodedPayload:
        """Decode n payloads, each by its own version (-1: it names none); null payloads are NULL.

        Never raises for what a payload holds. UnsupportedError: a column would exceed 2 GiB, the
        limit of an Arrow string array; keep batches far below.
        """
        spans = spans_of(payload)
        problems: dict[int, str] = {}
        parts: list[_Part] = []
        # Per row the version to read it by; below -1: read already, or never.
        versions = np.where(spans.present, schema_versions, _NEVER)
        for number in np.unique(versions).tolist():
            if number == _NEVER:
                continue
            version = self._versions.get(number, f"schema version {number} is not in the registry")
            mine = versions == number
            if isinstance(version, str) or version.kind == "unsupported":
                reason = _line(version if isinstance(version, str) else version.reason)
                problems |= dict.fromkeys(np.flatnonzero(mine).tolist(), reason)
                versions[mine] = _NEVER
            elif version.kind == "primitive":
                parts.append(self._primitive(version, payload, np.flatnonzero(mine)))
                versions[mine] = _NEVER
            else:
                versions[mine] = version.version
        for decoder, known in ((self._avro, self._of("avro")), (self._json, self._of("json"))):
            rows = np.flatnonzero(np.isin(versions, known))
            if decoder is not None and len(rows):
                some = Spans(spans.data, spans.starts[rows], spans.ends[rows], spans.present[rows])
                parts.append(_Part(rows, *decoder.decode(some, versions[rows])))
        for part in parts:
            problems |= {int(part.rows[i]): _line(why) for i, why in part.problems.items()}
        arrays = {f.name: _joined(f, len(payload), parts) for f in self._fields}
        return DecodedPayload(arrays, dict(sorted(problems.items())))

    def _of(self, kind: str) -> list[int]:
        known = self._versions.values()
        return [v.version for v in known if isinstance(v, Version) and v.kind == kind]

    def _primitive(self, version: Version, payload: pa.LargeBinaryArray, rows: Rows) -> _Part:
        """Rows of one primitive version: the one column that is the payload as a whole."""
        array, problems = decode_primitive(version.type, payload.take(pa.array(rows)))
        member = self._layout.member("")
        leaf = PRIMITIVES[version.type].leaf
        if member is not None and member.layout == leaf:
            return _Part(rows, {member.column: array}, problems)
        why = f"the value is {leaf.type}, its column is another type"
        present = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
        return _Part(rows, {}, {**dict.fromkeys(present.tolist(), why), **problems})


def _line(reason: str) -> str:
    """``reason`` as one line of text; names in it may hold anything."""
    return reason if reason.isprintable() else ascii(reason)[1:-1]


def _joined(field: pa.Field, count: int, parts: Sequence[_Part]) -> pa.Array:
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
