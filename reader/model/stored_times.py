"""When messages were stored, as far as their entries say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

__all__ = ["StoredTimes"]

_Int64s = npt.NDArray[np.int64]

CLOCK_DIFFERENCE = 1_000_000
"""The difference of a producer's and a broker's clock, in µs, that is put up with."""
_BOUNDS = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class StoredTimes:
    """The earliest and the latest time at which each message can have been stored, in µs.

    ``earliest`` and ``latest`` are of entries; ``entries`` is the index of each message's entry.
    """

    earliest: _Int64s
    latest: _Int64s
    entries: _Int64s

    @classmethod
    def of(
        cls,
        stamped: _Int64s,
        published: _Int64s,
        replicated: npt.NDArray[np.bool_],
        entries: _Int64s,
        *,
        no_time: int,
    ) -> Self:
        """Return the times of entries.

        ``stamped``: the broker's stamp, which is exact, or ``no_time``. ``published``: the
        producer's clock. ``replicated``: the publish time is of another cluster, and says nothing.
        """
        most = _BOUNDS.max - CLOCK_DIFFERENCE
        near = np.clip(published, -most, most)
        earliest = np.where(replicated, _BOUNDS.min, near - CLOCK_DIFFERENCE)
        latest = np.where(replicated, _BOUNDS.max, near + CLOCK_DIFFERENCE)
        known = stamped != no_time
        return cls(np.where(known, stamped, earliest), np.where(known, stamped, latest), entries)

    def __len__(self) -> int:
        return len(self.entries)

    def part(self, first: int, stop: int) -> Self:
        """Return the times of the messages from ``first`` to ``stop``."""
        return replace(self, entries=self.entries[first:stop])

    def not_before(self, created: int) -> Self:
        """Return the times without those before ``created``, when the partition was created.

        The clock of a producer that claims such a time is wrong, and says nothing.
        """
        wrong = self.latest < created
        if not wrong.any():
            return self
        return replace(
            self,
            earliest=np.where(wrong, _BOUNDS.min, self.earliest),
            latest=np.where(wrong, _BOUNDS.max, self.latest),
        )

    def all_since(self, start: int, *, certainly: bool) -> bool:
        """Return whether all messages were stored at ``start`` or later: ``certainly``, or not
        certainly before."""
        times = self.earliest if certainly else self.latest
        return not len(times) or bool(times.min() >= start)

    def periods(self, starts: _Int64s, rows: _Int64s) -> tuple[_Int64s, _Int64s]:
        """Return the first and the last period in which each of some messages can have been."""
        own = self.entries[rows]
        first = np.searchsorted(starts, self.earliest, "right") - 1
        last = np.searchsorted(starts, self.latest, "right") - 1
        return first[own], last[own]
