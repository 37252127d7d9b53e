"""A file's statistics as the Delta log holds them: the zone map of its rows.

Format: the Delta protocol's "Per-file Statistics". Only columns whose order every reader agrees
on: integers, dates and timestamps. Never float or double (a NaN makes readers skip rows that
match), and of strings ``__kind`` alone (readers disagree on how a cut maximum compares; a kind is
never cut).

Delta keeps timestamps in milliseconds: a minimum is rounded down and a maximum up, so that the
range always covers the file's microseconds.
"""

import json
import re
from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reader.model.columns import STATISTICS
from reader.model.row_kinds import KIND_COLUMN

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A column's name that stands in a table property without quotes."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = int((datetime(1, 1, 2, tzinfo=UTC) - _EPOCH).total_seconds()) * 1_000_000
_LAST_US = int((datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds()) * 1_000_000


def statistics_columns(schema: pa.Schema, chosen: Iterable[str] = ()) -> tuple[str, ...]:
    """The columns of ``schema`` that get minimum and maximum: ``STATISTICS``, then ``chosen``.

    Chosen columns that are not there, or of a type without statistics, are left out: one setting
    serves many topics.
    """
    wanted = dict.fromkeys((*STATISTICS, *chosen))
    return tuple(
        name
        for name in wanted
        if name in schema.names and PLAIN_NAME.fullmatch(name) and _is_ordered(schema.field(name))
    )


def _is_ordered(field: pa.Field) -> bool:
    kind = field.type
    return (
        bool(pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind))
        or field.name == KIND_COLUMN
    )


class FileStatistics:
    """Collects the statistics of one file, batch by batch."""

    def __init__(self, columns: Collection[str]) -> None:
        self.rows = 0
        self._nulls = dict.fromkeys(columns, 0)
        self._ranges: dict[str, tuple[Any, Any]] = {}
        self._types: dict[str, pa.DataType] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Count one more batch of the file."""
        self.rows += batch.num_rows
        for name in self._nulls:
            column = batch.column(name)
            self._nulls[name] += column.null_count
            self._types[name] = column.type
            if (found := value_range(column)) is not None:
                low, high = self._ranges.get(name, found)
                self._ranges[name] = (min(low, found[0]), max(high, found[1]))

    def to_json(self) -> str:
        """The ``stats`` of the file's add action."""
        low: dict[str, Any] = {}
        high: dict[str, Any] = {}
        for name, (first, last) in self._ranges.items():
            if (values := _values(self._types[name], first, last)) is not None:
                low[name], high[name] = values
        value = {
            "numRecords": self.rows,
            "minValues": low,
            "maxValues": high,
            "nullCount": self._nulls,
        }
        return json.dumps(value, separators=(",", ":"))


def value_range(column: Any) -> tuple[Any, Any] | None:
    """Return (minimum, maximum) of an Arrow array, or None if all is NULL.

    Dates are days and times are µs since the epoch.
    """
    if len(column) == column.null_count:
        return None
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
    elif pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    found: Any = pc.min_max(column).as_py()
    return found["min"], found["max"]


def _values(kind: pa.DataType, low: Any, high: Any) -> tuple[Any, Any] | None:
    """The range as the log writes it; None where it has no such value (years beyond 9999)."""
    if pa.types.is_timestamp(kind):
        if low < _FIRST_US or high > _LAST_US:
            return None
        return _millis(low // 1000), _millis(-(-high // 1000))
    if pa.types.is_date32(kind):
        try:
            return _day(low), _day(high)
        except OverflowError:
            return None
    return low, high


def _millis(value: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=value)
    return f"{moment:%Y-%m-%dT%H:%M:%S}".zfill(19) + f".{moment.microsecond // 1000:03d}Z"


def _day(value: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
