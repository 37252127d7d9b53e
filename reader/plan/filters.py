"""Filters of rows as values: what an engine pushes down, and what an engine is asked to apply.

A filter is true, false or NULL for a row, as in SQL; rows for which it is true match. Values are
integers (days of dates, µs of times) and texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reader.model import Position


@dataclass(frozen=True, slots=True)
class Predicate:
    """The comparison of a column with values.

    op: one of = < <= > >= in. values: one value; several if op is "in".
    """

    column: str
    op: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NullTest:
    """``column IS NULL`` (``null``), or IS NOT NULL."""

    column: str
    null: bool


@dataclass(frozen=True, slots=True)
class Unequal:
    """``column <> value``."""

    column: str
    value: int | str


@dataclass(frozen=True, slots=True)
class AllOf:
    """Filters that have to be true together; true without any."""

    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Filters of which one has to be true; false without any."""

    filters: tuple[Filter, ...]


Filter = Predicate | NullTest | Unequal | AllOf | AnyOf


def between(partition: int, first: Position, last: Position) -> Filter:
    """Return the filter for rows of a partition, by its index, from ``first`` to ``last``."""
    return AllOf(
        (
            Predicate("__partition", "=", (partition,)),
            _compared(">", ">=", first),
            _compared("<", "<=", last),
        )
    )


def behind(columns: tuple[str, str], position: Position) -> Filter:
    """Return the filter for rows with a position behind another one.

    columns: names of the columns that have the ledger id and the entry id.
    """
    return _compared(">", ">", position, columns)


def _compared(
    ledgers: str,
    entries: str,
    position: Position,
    columns: tuple[str, str] = ("__ledgerId", "__entryId"),
) -> Filter:
    ledger, entry = columns
    same = Predicate(ledger, "=", (position.ledger,)), Predicate(entry, entries, (position.entry,))
    return AnyOf((Predicate(ledger, ledgers, (position.ledger,)), AllOf(same)))
