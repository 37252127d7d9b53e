"""The Parquet files of one version of a topic's table, and which of them a query has to read.

By the log's statistics, all files at once, column by column: a table may have a hundred thousand.
The rules that keep it exact:

1. Only integers, dates and times have an order on which every writer and reader agrees, and
   the kinds of rows; the statistics of other columns are not looked at, whoever wrote them.
2. The log has times in milliseconds, and other writers cut a maximum down to them: it may be up to
   999 µs greater than it says.
3. What the log does not say may be anything.

Format: the Delta protocol's "Per-file Statistics".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from reader.model import Position
from reader.model.columns import TIMESTAMP
from reader.model.row_kinds import KIND_COLUMN, KIND_RANKS
from reader.plan.filters import AllOf, AnyOf, Filter, NullTest, Predicate, Unequal
from reader.plan.pruning import may_match, outside, publish_range
from reader.table import TopicTable

_LIMITED = ("__partition", "__ledgerId", "__entryId", "__publishTime")
Bounds = Mapping[int, tuple[Position | None, Position | None]]
"""By partition index the first and the last position that is wanted (inclusive, None: open)."""
_Limits = tuple[int | None, int | None]
_Mask = npt.NDArray[np.bool_]
"""A truth value of each file."""
_TIME_CUT_US = 999
"""How much greater than the log's maximum a time may be (rule 2)."""


@dataclass(frozen=True, slots=True)
class ColdFile:
    """One file. ``path``: as the log names it, below the table's directory. ``rows``: None where
    the log does not say.

    ``limits``: by column (those of ``_LIMITED``, times in µs) the least and
    the greatest value that it may have by the log's statistics, None where it has none.
    """

    path: str
    bytes: int
    rows: int | None = None
    limits: Mapping[str, _Limits] | None = None

    def limit(self, column: str) -> _Limits:
        return (self.limits or {}).get(column, (None, None))

    def overlaps(self, partition: int, first: Position | None, last: Position | None) -> bool:
        """Whether it may have rows of a partition, by its index, from ``first`` to ``last``
        (inclusive, None: open); by its ledgers."""
        low, high = self.limit("__partition")
        if (low is not None and partition < low) or (high is not None and partition > high):
            return False
        low, high = self.limit("__ledgerId")
        before = first is not None and high is not None and high < first.ledger
        behind = last is not None and low is not None and low > last.ledger
        return not before and not behind


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file, and whether a query reads it."""

    file: ColdFile
    read: bool


def table_files(table: TopicTable) -> tuple[ColdFile, ...]:
    """The version's files, by path."""
    actions = table.files().sort_by("path")
    names = actions.schema.names
    count = actions.num_rows
    rows = actions.column("num_records").to_pylist() if "num_records" in names else [None] * count
    limits = {
        column: list(
            zip(_numbers(actions, f"min.{column}"), _numbers(actions, f"max.{column}"), strict=True)
        )
        for column in _LIMITED
    }
    paths, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    return tuple(
        ColdFile(path, size, rows[i], {column: found[i] for column, found in limits.items()})
        for i, (path, size) in enumerate(zip(paths, sizes, strict=True))
    )


def _numbers(actions: pa.Table, name: str) -> list[int | None]:
    if name not in actions.schema.names:
        return [None] * actions.num_rows
    column = actions.column(name)
    if not pa.types.is_integer(column.type):
        column = pc.cast(column, TIMESTAMP).cast(pa.int64())
        if name.startswith("max."):
            column = pc.add(column, _TIME_CUT_US)
    found: list[int | None] = column.to_pylist()
    return found


def plan_files(
    files: Sequence[ColdFile], predicates: Sequence[Predicate], bounds: Bounds
) -> tuple[PlannedFile, ...]:
    """Each file, and whether its statistics leave room for a matching row.

    bounds: by partition index the first and the last position that is wanted, None: open.
    """
    return tuple(
        PlannedFile(one, _may_hold(one, predicates) and _in_range(one, bounds)) for one in files
    )


def _may_hold(file: ColdFile, predicates: Sequence[Predicate]) -> bool:
    if outside(*file.limit("__publishTime"), *publish_range(predicates)):
        return False
    for one in predicates:
        low, high = file.limit(one.column) if one.column in _LIMITED[:2] else (None, None)
        if low is not None and high is not None and not may_match(one, low, high):
            return False
    return True


def _in_range(file: ColdFile, bounds: Bounds) -> bool:
    index, last = file.limit("__partition")
    if index is None or index != last:  # another program has merged partitions
        return True
    return file.overlaps(index, *bounds.get(index, (None, None)))


# -- filters of any columns ------------------------------------------------------------------------


def files_to_read(files: pa.Table, filters: Sequence[Filter]) -> _Mask:
    """For each file, whether a row of it may match all filters.

    ``files``: as ``TopicTable.files`` gives them, N rows; the answer has N values.
    """
    return _Statistics(files).may_match(AllOf(tuple(filters)))


class _Statistics:
    def __init__(self, files: pa.Table) -> None:
        self._files = files
        self._count = files.num_rows

    def may_match(self, one: Filter) -> _Mask:
        match one:
            case AllOf(filters):
                return reduce(np.logical_and, [*map(self.may_match, filters)], self._all(True))
            case AnyOf(filters):
                return reduce(np.logical_or, [*map(self.may_match, filters)], self._all(False))
            case NullTest(column, null):
                found: _Mask = self._has_nulls(column) if null else ~self._all_null(column)
            case Unequal(column, value):
                number = _number(column, value)
                if number is None:
                    return self._all(True)
                same = (self._least(column) == number) & (self._greatest(column) == number)
                found = ~same & ~self._all_null(column)
            case _:
                found = self._in_range(one) & ~self._all_null(one.column)
        return found

    def _in_range(self, one: Predicate) -> _Mask:
        numbers = [_number(one.column, value) for value in one.values]
        values = sorted(number for number in numbers if number is not None)
        if not values or len(values) < len(numbers):
            return self._all(True)
        low, high = self._least(one.column), self._greatest(one.column)
        match one.op:
            case "<":
                found: _Mask = low < values[0]
            case "<=":
                found = low <= values[0]
            case ">":
                found = high > values[0]
            case ">=":
                found = high >= values[0]
            case _:  # "=", "in": the first wanted value that is not below the file's least one
                wanted = np.array(values, dtype=np.int64)
                place = np.searchsorted(wanted, low)
                there = wanted[np.minimum(place, len(wanted) - 1)] <= high
                found = (place < len(wanted)) & there
        return found

    # -- columns of statistics ---------------------------------------------------------------------

    def _least(self, column: str) -> npt.NDArray[np.int64]:
        return self._filled(self._ordered(f"min.{column}"), np.iinfo(np.int64).min)

    def _greatest(self, column: str) -> npt.NDArray[np.int64]:
        found = self._ordered(f"max.{column}")
        kind = self._kind(f"max.{column}")
        if found is not None and kind is not None and pa.types.is_timestamp(kind):
            found = pc.add(found, _TIME_CUT_US)
        return self._filled(found, np.iinfo(np.int64).max)

    def _all_null(self, column: str) -> _Mask:
        """Whether a file has no value of the column, as far as the log says."""
        nulls = self._numbers(f"null_count.{column}")
        found: _Mask = (nulls >= 0) & (nulls == self._numbers("num_records"))
        return found

    def _has_nulls(self, column: str) -> _Mask:
        found: _Mask = self._numbers(f"null_count.{column}") != 0
        return found

    def _numbers(self, name: str) -> npt.NDArray[np.int64]:
        """A count of each file; -1 where the log has none."""
        kind = self._kind(name)
        known = kind is not None and pa.types.is_integer(kind)
        return self._filled(self._files.column(name) if known else None, -1)

    def _ordered(self, name: str) -> pa.ChunkedArray | None:
        kind = self._kind(name)
        if kind is None:
            return None
        if pa.types.is_timestamp(kind):
            return self._files.column(name).cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())
        if pa.types.is_date32(kind):
            return self._files.column(name).cast(pa.int32()).cast(pa.int64())
        if pa.types.is_integer(kind):
            return self._files.column(name).cast(pa.int64())
        if name in (f"min.{KIND_COLUMN}", f"max.{KIND_COLUMN}") and pa.types.is_string(kind):
            ranks = [KIND_RANKS.get(value) for value in self._files.column(name).to_pylist()]
            return pa.chunked_array([pa.array(ranks, pa.int64())])
        return None

    def _kind(self, name: str) -> pa.DataType | None:
        # Members of structs have names with a dot as well: theirs are not a column's of that name.
        if name.count(".") > 1 or name not in self._files.schema.names:
            return None
        return self._files.schema.field(name).type

    def _filled(self, found: pa.ChunkedArray | None, unknown: int) -> npt.NDArray[np.int64]:
        if found is None:
            return np.full(self._count, unknown, dtype=np.int64)
        values: npt.NDArray[np.int64] = pc.fill_null(found.cast(pa.int64()), unknown).to_numpy()
        return values

    def _all(self, value: bool) -> _Mask:
        return np.full(self._count, value, dtype=np.bool_)


def _number(column: str, value: int | str) -> int | None:
    """Return a value by which files can be compared, or None if its column has no such order."""
    if isinstance(value, int):
        return value
    return KIND_RANKS.get(value) if column == KIND_COLUMN else None
