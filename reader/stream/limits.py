"""How much of what there is a batch takes: cut at one publish time, the same for all partitions.

A watermark that follows the batches then drops nothing that came in order, however far apart the
partitions are. Rules:

1. Entries are taken whole, in the order of their partition.
2. An entry's time is the greatest publish time up to it: a message with an earlier one comes with
   what is before it.
3. All entries of one time are taken together, as Spark drops what is not later than the watermark;
   but where those of the first time alone are more than the limits (messages of one millisecond,
   or all that follow a message from the future), as many of them as fit, from all partitions in
   turn. A batch has more only where its first entry has.

Memory: of each partition no more entries are fetched than the limits and one portion of a source
have, whatever their times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reader.model import Partition, Position

Int64s = npt.NDArray[np.int64]
_UNKNOWN = np.iinfo(np.int64).min
NO_TIME = _UNKNOWN + 1
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one batch; None: no limit. ``bytes``: of entries as they are stored, about."""

    rows: int | None = None
    bytes: int | None = None

    @property
    def is_set(self) -> bool:
        return self.rows is not None or self.bytes is not None


@dataclass(frozen=True, slots=True)
class Entries:
    """Consecutive entries of one partition, N each.

    ``times``: publish times in µs, ``rows`` and ``bytes`` of each entry.
    """

    ledgers: Int64s
    entries: Int64s
    times: Int64s
    rows: Int64s
    bytes: Int64s

    def __len__(self) -> int:
        return len(self.ledgers)

    @classmethod
    def of_rows(
        cls,
        ledgers: Int64s,
        entries: Int64s,
        times: Int64s,
        messages: Int64s | None = None,
        *,
        row_bytes: float = 0.0,
        entry_bytes: float = 0.0,
    ) -> Entries:
        """Of rows in the log's order; ``times`` of those without one are ``NO_TIME``.

        ``messages``: how many a row stands for; None: one each.
        """
        count = len(ledgers)
        new = np.ones(count, np.bool_)
        new[1:] = (np.diff(ledgers) != 0) | (np.diff(entries) != 0)
        first = np.flatnonzero(new)
        rows = np.diff(np.append(first, count))
        latest = np.maximum.reduceat(times, first) if count else times
        weights = np.ceil(rows * row_bytes + entry_bytes).astype(np.int64)
        if messages is not None and count:
            rows = np.add.reduceat(messages, first)
        return cls(ledgers[first], entries[first], latest, rows, weights)

    def joined(self, other: Entries) -> Entries:
        """Followed by ``other``, which may begin with the rest of the last entry's rows."""
        same = (
            len(self)
            and len(other)
            and (self.ledgers[-1], self.entries[-1]) == (other.ledgers[0], other.entries[0])
        )
        mine, theirs = self._columns(), other._columns()
        if same:
            last = [column[-1] for column in mine]
            for at in (3, 4):
                theirs[at] = theirs[at].copy()
                theirs[at][0] += last[at]
            theirs[2] = theirs[2].copy()
            theirs[2][0] = max(theirs[2][0], last[2])
            mine = [column[:-1] for column in mine]
        return Entries(*(np.concatenate(pair) for pair in zip(mine, theirs, strict=True)))

    def ascending(self, at: Position) -> Entries:
        """Without those at or before ``at``, or before another one that came earlier: the row of a
        message that was given up lies in a file of its own, which may be read late. Its row comes
        with its place."""
        order = np.lexsort((self.entries, self.ledgers))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        behind = (self.ledgers > at.ledger) | (
            (self.ledgers == at.ledger) & (self.entries > at.entry)
        )
        kept = behind & (rank >= np.maximum.accumulate(rank))
        if kept.all():
            return self
        return Entries(*(column[kept] for column in self._columns()))

    def not_before(self, time: int) -> Entries:
        """The same entries, each with the greatest time up to it, and none earlier than ``time``
        (rule 2)."""
        times = np.maximum.accumulate(np.maximum(self.times, time))
        return Entries(self.ledgers, self.entries, times, self.rows, self.bytes)

    def first(self, count: int) -> Entries:
        """The first ``count`` alone; none of a count below 0."""
        return Entries(*(column[: max(0, count)] for column in self._columns()))

    def after(self, count: int) -> Entries:
        """Without the first ``count``."""
        return Entries(*(column[count:] for column in self._columns()))

    def _columns(self) -> list[Int64s]:
        return [self.ledgers, self.entries, self.times, self.rows, self.bytes]


_NONE = Entries(*(np.empty(0, np.int64) for _ in range(5)))


class EntryQueue:
    """Entries of one partition that no batch has taken yet; sources give them as needed.

    The last entry that has come counts only once another one follows, or nothing: of its rows more
    may come. ``at``: behind it the queue begins.
    """

    def __init__(self, at: Position) -> None:
        self.at = at
        self.entries = _NONE
        self._sources: deque[Iterator[Entries]] = deque()
        self._latest = NO_TIME

    def add(self, source: Iterable[Entries]) -> None:
        """What follows all that was added before."""
        self._sources.append(iter(source))

    @property
    def ended(self) -> bool:
        """Whether all that there is has come."""
        return not self._sources

    @property
    def known(self) -> Entries:
        """Those of which all rows have come; times ascend."""
        return self.entries if self.ended else self.entries.first(len(self.entries) - 1)

    @property
    def frontier(self) -> int:
        """What comes is not earlier than this time."""
        known = self.known
        if self.ended:
            return _NEVER
        return int(known.times[-1]) if len(known) else _UNKNOWN

    def fetch(self) -> None:
        """Take more from the sources."""
        more = next(self._sources[0], None)
        if more is None:
            self._sources.popleft()
            return
        at, latest = self.at, self._latest
        if len(self.entries):
            # Entries ascend. The last one may get more rows, so it may come once more.
            at = Position(int(self.entries.ledgers[-1]), int(self.entries.entries[-1]) - 1)
            latest = int(self.entries.times[-1])
        self.entries = self.entries.joined(more.ascending(at).not_before(latest))

    def drop(self, count: int) -> Position | None:
        """The first ``count`` have been taken; the position of the last of them."""
        if not count:
            return None
        ledgers, entries = self.entries.ledgers, self.entries.entries
        self.at = Position(int(ledgers[count - 1]), int(entries[count - 1]))
        self._latest = int(self.entries.times[count - 1])
        self.entries = self.entries.after(count)
        return self.at


def take(queues: Mapping[Partition, EntryQueue], limits: Limits) -> dict[Partition, Position]:
    """The last entry that a batch takes, of each partition of which it takes any."""
    while True:
        open_ones = [queue for queue in queues.values() if not queue.ended]
        frontier = min((queue.frontier for queue in open_ones), default=_NEVER)
        if not open_ones or _exceeds(queues.values(), frontier, limits):
            break
        min(open_ones, key=lambda queue: queue.frontier).fetch()
    found = {}
    for partition, count in zip(queues, _counts([*queues.values()], frontier, limits), strict=True):
        last = queues[partition].drop(count)
        if last is not None:
            found[partition] = last
    return found


def count_rows(queues: Iterable[EntryQueue], enough: int) -> int:
    """How many rows there are; where that is ``enough``, so many at least."""
    count = 0
    for queue in queues:
        while not queue.ended and count + int(queue.known.rows.sum()) < enough:
            queue.fetch()
        count += int(queue.known.rows.sum())
        if count >= enough:
            break
    return count


def _count_upto(queue: EntryQueue, frontier: int) -> int:
    """Return how many of the queue's known entries are not later than ``frontier``.

    Entries of that very time may follow. If those that are known exceed the limits, however, no
    entry that follows changes what the batch takes, except which of them fit.
    """
    return int(np.searchsorted(queue.known.times, frontier, side="right"))


def _exceeds(queues: Iterable[EntryQueue], frontier: int, limits: Limits) -> bool:
    rows = size = 0
    for queue in queues:
        count = _count_upto(queue, frontier)
        rows += int(queue.entries.rows[:count].sum())
        size += int(queue.entries.bytes[:count].sum())
    return (limits.rows is not None and rows > limits.rows) or (
        limits.bytes is not None and size > limits.bytes
    )


def _counts(queues: Sequence[EntryQueue], frontier: int, limits: Limits) -> list[int]:
    """How many entries of each queue are taken."""
    parts = [queue.known.first(_count_upto(queue, frontier)) for queue in queues]
    sizes = [len(one) for one in parts]
    if not any(sizes):
        return sizes
    times = np.concatenate([one.times for one in parts])
    # Of one time from all partitions in turn, so that none waits until another has no more of it.
    order = np.lexsort((np.concatenate([np.arange(size) for size in sizes]), times))
    fits = np.ones(len(order), np.bool_)
    for name, most in (("rows", limits.rows), ("bytes", limits.bytes)):
        if most is not None:
            column = np.concatenate([getattr(one, name) for one in parts])
            fits &= np.cumsum(column[order]) <= most
    count = max(1, int(fits.sum()))  # those that fit come first
    if count < len(order):
        # Not those of the first time that does not fit whole, unless there is none before it.
        whole = int(np.searchsorted(times[order], times[order[count]]))
        count = whole or count
    taken = np.zeros(len(order), np.bool_)
    taken[order[:count]] = True
    return [int(one.sum()) for one in np.split(taken, np.cumsum(sizes)[:-1])]
