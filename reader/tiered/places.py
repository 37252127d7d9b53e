"""Where entries begin in an object, as reads have learned it.

Neither format says that of each entry. So a lookup of single entries (chunks, transactions) would
read what lies before them each time; it is read once, and from then on each is an exact range. Of
an object with very many entries each second, fourth, … place is kept: then a lookup reads some
entries more.
"""

import threading
from bisect import bisect_right, insort

import numpy as np

from reader.kernels.array_types import Int64s
from reader.tiered.walk import Found

MOST_BYTES = 1 << 20
"""Of what is kept of an object: the places of some 130,000 entries that follow each other."""

_RUN_BYTES = 256
"""What a run takes beside its places, about."""


class Places:
    """Of one object. Thread-safe. ``nbytes``: what is kept, ``most`` at the most."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._each = 1
        self._firsts: list[int] = []
        self._runs: dict[int, Int64s] = {}  # by their first entry, of which all are multiples
        self._lock = threading.Lock()
        self.nbytes = 0

    def add(self, found: Found) -> None:
        """Keep those of entries that a walk gave, if they are not known."""
        if found.places is None:
            return
        with self._lock:
            self._add(found.first, found.places)
            while self.nbytes > self._most:
                self._thin_out()

    def before(self, entry: int) -> tuple[int, int] | None:
        """The last entry up to ``entry`` whose place is known, and that place; None: none is."""
        with self._lock:
            first = self._run(entry)
            if first is None:
                return None
            run = self._runs[first]
            at = min((entry - first) // self._each, len(run) - 1)
            return first + at * self._each, int(run[at])

    def of(self, entry: int) -> int | None:
        """The place of just this entry."""
        found = self.before(entry)
        return found[1] if found is not None and found[0] == entry else None

    def _add(self, first: int, places: Int64s) -> None:
        skipped = -first % self._each
        first, places = first + skipped, np.ascontiguousarray(places[skipped :: self._each])
        if not len(places):
            return
        known = self._run(first)
        if known is not None:
            beyond = known + self._each * len(self._runs[known])
            if first + self._each * len(places) <= beyond:
                return
        before = self._runs.get(first)
        if before is None:
            insort(self._firsts, first)
        # Not a view: it would keep all of what it is a part of.
        self._runs[first] = places.copy() if places.base is not None else places
        self.nbytes += places.nbytes - (-_RUN_BYTES if before is None else before.nbytes)

    def _thin_out(self) -> None:
        runs, self._each = self._runs, 2 * self._each
        self._runs, self._firsts, self.nbytes = {}, [], 0
        for first in sorted(runs):
            skipped = first % self._each > 0
            kept = runs[first][int(skipped) :: 2].copy()
            if len(kept):
                begin = first + skipped * self._each // 2
                self._firsts.append(begin)
                self._runs[begin] = kept
                self.nbytes += kept.nbytes + _RUN_BYTES

    def _run(self, entry: int) -> int | None:
        """The first entry of the run that begins last, up to ``entry``."""
        at = bisect_right(self._firsts, entry)
        return self._firsts[at - 1] if at else None
