"""Rows of several files of one partition as one stream in order, in bounded memory.

The order is (ledger, entry, batch index). Files rarely overlap (one of messages that were given
up lies within others), so mostly one is open at a time and its batches go by as they are.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_ORDER = ("__ledgerId", "__entryId", "__batchIndex")

RowPosition = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class SortedFile:
    """A file to be read when it is its turn. ``first``: none of its rows comes before this.

    ``read``: its batches, all of one schema, each in order.
    """

    first: RowPosition
    read: Callable[[], Iterator[pa.RecordBatch]]


class _Open:
    """A file being read: the part of it that waits to be given."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.held: pa.RecordBatch | None = None
        self.advance()

    def advance(self) -> None:
        self.held = next((one for one in self._batches if one.num_rows), None)

    @property
    def last(self) -> RowPosition:
        assert self.held is not None
        return _position(self.held, self.held.num_rows - 1)

    def take(self, bound: RowPosition) -> pa.RecordBatch:
        """Its rows up to ``bound``; the others stay."""
        assert self.held is not None
        upto = _upto(self.held, bound)
        given, left = self.held.filter(upto), self.held.filter(pc.invert(upto))
        self.held = left
        if not left.num_rows:
            self.advance()
        return given


def merge_rows(files: Iterable[SortedFile]) -> Iterator[pa.RecordBatch]:
    """All rows of all of them, each once."""
    waiting = sorted(files, key=lambda one: one.first, reverse=True)
    opened: list[_Open] = []
    while waiting or opened:
        if not opened:
            opened.append(_Open(waiting.pop().read()))
        opened = [one for one in opened if one.held is not None]
        if not opened:
            continue
        bound = min(one.last for one in opened)
        while waiting and waiting[-1].first <= bound:
            one = _Open(waiting.pop().read())
            if one.held is not None:
                opened.append(one)
                bound = min(bound, one.last)
        if len(opened) == 1:
            [alone] = opened
            assert alone.held is not None
            yield alone.held
            alone.advance()
            continue
        given = pa.Table.from_batches([one.take(bound) for one in opened])
        order: list[tuple[str, str]] = [(name, "ascending") for name in _ORDER]
        yield from given.sort_by(order).combine_chunks().to_batches()


def _position(batch: pa.RecordBatch, row: int) -> RowPosition:
    values = (batch.column(name)[row].as_py() for name in _ORDER)
    ledger, entry, index = (-1 if value is None else int(value) for value in values)
    return ledger, entry, index


def _upto(batch: pa.RecordBatch, bound: RowPosition) -> pa.Array:
    """Which rows are not after ``bound``: all that cannot be compared are not, either."""
    found: pa.Array | None = None
    for name, value in zip(reversed(_ORDER), reversed(bound), strict=True):
        column = batch.column(name)
        if found is None:
            found = pc.less_equal(column, value)
        else:
            same = pc.and_kleene(pc.equal(column, value), found)
            found = pc.or_kleene(pc.less(column, value), same)
    return pc.fill_null(found, True)
