"""Where entries begin in an object, as reads have learned it.

Neither format says that of each entry. So a lookup of single entries (chunks, transactions) would
read what lies before them each time; it is read once, and from then on each is an exact range.
"""

from __future__ import annotations

import threading
from bisect import bisect_right, insort

import numpy as np

from reader.tiered.walk import Found, Int64s

__all__ = ["Places"]


class Places:
    """Of one object. Thread-safe. ``nbytes``: what is kept."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._runs: dict[int, Int64s] = {}
        self._lock = threading.Lock()
        self.nbytes = 0

    def add(self, found: Found) -> None:
        """Keep those of entries that a walk gave, if they are not known."""
        if found.places is None or not len(found.places):
            return
        last = found.first + len(found.places) - 1
        with self._lock:
            known = self._run(found.first)
            if known is not None and last - known < len(self._runs[known]):
                return
            before = self._runs.get(found.first)
            if before is None:
                insort(self._firsts, found.first)
            self._runs[found.first] = np.ascontiguousarray(found.places)
            self.nbytes += found.places.nbytes - (0 if before is None else before.nbytes)

    def before(self, entry: int) -> tuple[int, int] | None:
        """The last entry up to ``entry`` whose place is known, and that place; None: none is."""
        with self._lock:
            first = self._run(entry)
            if first is None:
                return None
            run = self._runs[first]
            at = min(entry - first, len(run) - 1)
            return first + at, int(run[at])

    def of(self, entry: int) -> int | None:
        """The place of just this entry."""
        found = self.before(entry)
        return found[1] if found is not None and found[0] == entry else None

    def _run(self, entry: int) -> int | None:
        """The first entry of the run that begins last, up to ``entry``."""
        at = bisect_right(self._firsts, entry)
        return self._firsts[at - 1] if at else None
