"""A file of the Delta log as Iceberg's manifests name it: where, how long, how many rows, bounds.

From the log's statistics, not from the files: no file is opened, however many there are, and both
kinds of readers prune by the same ranges. Those are exact or wider, and never of floats (decision
15), so no row that matches is skipped. The log has times in milliseconds, and other writers cut
the maximum: as for Delta's readers, it counts to the millisecond's end.
Format: Iceberg's specification, "Manifests" and "Single-value serialization".
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from pyiceberg import types
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record

from reader.model.row_kinds import KIND_COLUMN
from reader.table import AddedFile

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REST_OF_MS = 999
"""µs."""


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """``path`` as the log has it, ``size`` in bytes, ``rows`` None where the log does not say.

    ``nulls``, ``low``, ``high``: by column, of those with statistics: how many rows are NULL, and
    a range of all others.
    """

    path: str
    size: int
    rows: int | None
    nulls: Mapping[str, int] = field(default_factory=dict)
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)


def delta_file(added: AddedFile) -> DeltaFile:
    """Out of a commit's ``add``: Delta protocol, "Per-file Statistics"."""
    found = json.loads(added.statistics) if added.statistics else {}
    return DeltaFile(
        path=added.path,
        size=added.size,
        rows=found.get("numRecords"),
        nulls=found.get("nullCount") or {},
        low=found.get("minValues") or {},
        high=found.get("maxValues") or {},
    )


def data_file(one: DeltaFile, location: str, rows: int, schema: Schema) -> DataFile:
    """``location``: the file's URI. ``rows``: how many it has."""
    counts: dict[int, int] = {}
    nulls: dict[int, int] = {}
    bounds: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
    for column in schema.fields:
        number = column.field_id
        count = one.nulls.get(column.name)
        if isinstance(count, int):  # of a struct it is one more mapping
            counts[number], nulls[number] = rows, count
        kind = column.field_type
        low, high = one.low.get(column.name), one.high.get(column.name)
        ends = [_bound(kind, low), _bound(kind, high, _REST_OF_MS)]
        if column.name == KIND_COLUMN and isinstance(low, str) and isinstance(high, str):
            ends = [low.encode(), high.encode()]
        for values, value in zip(bounds, ends, strict=True):
            if value is not None and None not in ends:
                values[number] = value
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=rows,
        file_size_in_bytes=one.size,
        value_counts=counts,
        null_value_counts=nulls,
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
        spec_id=0,
    )


def _bound(kind: types.IcebergType, value: Any, more_us: int = 0) -> bytes | None:
    """None where the log has no such value, or one of a type that gets no bounds.

    ``more_us``: added to times, µs.
    """
    if value is None or not isinstance(kind, types.PrimitiveType):
        return None
    if isinstance(kind, types.IntegerType | types.LongType):
        return to_bytes(kind, int(value)) if isinstance(value, int) else None
    if isinstance(kind, types.DateType):
        day = value if isinstance(value, date) else date.fromisoformat(value)
        return to_bytes(kind, (day - _EPOCH.date()).days)
    if isinstance(kind, types.TimestampType | types.TimestamptzType):
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        return to_bytes(kind, micros + more_us)
    return None
