"""Which files of a table are to be replaced. Pure.

*Compaction* takes files that lie next to each other, in the order of ledgers and entries, and makes
one of them. The result has at most ``target`` bytes, and at least ``GROWTH`` times as many as the
largest of them: so a row is rewritten log(target / its first file) to the base ``GROWTH`` times in
its life at most, and a large file is not rewritten for a small one beside it.

*Expiry* takes files whose rows are all too old out of the table. One that also has younger rows is
rewritten without the old ones, once the oldest of them is a ``SLACK`` of the retention older than
that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from offloader.maintenance.table_files import TableFile

GROWTH = 8

SLACK = 0.1

_FILES = 1000  # of one compaction, at most


def compactions(files: Sequence[TableFile], target: int) -> list[tuple[TableFile, ...]]:
    """Groups of files, each to become one; ``files`` in the order of ``files_of``.

    Files whose publish times are not known stay among themselves: together with others their rows
    would expire with those, or keep them.
    """
    found = []
    for _, run in groupby(files, key=lambda one: (one.partition, one.published is None)):
        found += _of_partition(list(run), target)
    return found


def _of_partition(files: Sequence[TableFile], target: int) -> list[tuple[TableFile, ...]]:
    found, start = [], 0
    while start < len(files):
        stop = _group_end(files, start, target)
        if stop:
            found.append(tuple(files[start:stop]))
        start = stop or start + 1
    return found


def _group_end(files: Sequence[TableFile], start: int, target: int) -> int:
    """The end of the longest group that begins at ``start``; 0: there is none."""
    found = total = largest = 0
    for index in range(start, min(start + _FILES, len(files))):
        size = files[index].size
        total, largest = total + size, max(largest, size)
        if total > target or largest * GROWTH > target:
            break
        if index > start and total >= largest * GROWTH:
            found = index + 1
    return found


@dataclass(frozen=True, slots=True)
class Expiry:
    """``gone``: all rows are older than ``before`` (µs). ``partly``: some are, and too old."""

    before: int
    gone: tuple[TableFile, ...]
    partly: tuple[TableFile, ...]


def expiry(files: Sequence[TableFile], now_us: int, retention_us: int) -> Expiry:
    """What expires now. A file of which no row has a publish time never does by itself."""
    before = now_us - retention_us
    late = before - int(retention_us * SLACK)
    gone, partly = [], []
    for one in files:
        if one.published is None:
            continue
        low, high = one.published
        if high < before:
            gone.append(one)
        elif low < late:
            partly.append(one)
    return Expiry(before, tuple(gone), tuple(partly))
