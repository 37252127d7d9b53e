"""The Parquet files of one version of a topic's table, and which of them a query has to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from reader.model import Position
from reader.model.columns import TIMESTAMP
from reader.plan.pruning import Predicate, may_match, outside, publish_range
from reader.table import TopicTable

__all__ = ["ColdFile", "PlannedFile", "plan_files", "table_files"]

_LIMITED = ("__partition", "__ledgerId", "__publishTime")
_Limits = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class ColdFile:
    """One file. ``path``: as the log names it, below the table's directory. ``rows``: None where
    the log does not say.

    ``limits``: by column (``__partition``, ``__ledgerId``, ``__publishTime`` in µs) the least and
    the greatest value by the log's statistics, None where it has none.
    """

    path: str
    bytes: int
    rows: int | None = None
    limits: Mapping[str, _Limits] | None = None

    def limit(self, column: str) -> _Limits:
        return (self.limits or {}).get(column, (None, None))


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
    found: list[int | None] = column.to_pylist()
    return found


def plan_files(
    files: Sequence[ColdFile],
    predicates: Sequence[Predicate],
    start: Mapping[int, Position],
    end: Mapping[int, Position],
) -> tuple[PlannedFile, ...]:
    """Each file, and whether its statistics leave room for a matching row.

    ``start``, ``end``: by partition index the first and the last position that is wanted.
    """
    return tuple(
        PlannedFile(one, _may_hold(one, predicates) and _in_range(one, start, end)) for one in files
    )


def _may_hold(file: ColdFile, predicates: Sequence[Predicate]) -> bool:
    if outside(*file.limit("__publishTime"), *publish_range(predicates)):
        return False
    for one in predicates:
        low, high = file.limit(one.column) if one.column in _LIMITED[:2] else (None, None)
        if low is not None and high is not None and not may_match(one, low, high):
            return False
    return True


def _in_range(file: ColdFile, start: Mapping[int, Position], end: Mapping[int, Position]) -> bool:
    index = file.limit("__partition")[0]
    low, high = file.limit("__ledgerId")
    if index is None:
        return True
    before = index in start and high is not None and high < start[index].ledger
    behind = index in end and low is not None and low > end[index].ledger
    return not before and not behind
