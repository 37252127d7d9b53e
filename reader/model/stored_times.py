"""When messages were stored, as far as their entries say it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

_Int64s = npt.NDArray[np.int64]

CLOCK_DIFFERENCE = 1_000_000
"""The least difference of two clocks, in µs, that is allowed for: of two brokers, too, because one
may register a schema while another stores the messages of another partition."""
_BOUNDS = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class StoredTimes:
    """The earliest and the latest time at which each message can have been stored, in µs.

    ``earliest`` and ``latest`` are of entries, as are ``stamped``: whether a broker's clock says
    it, and ``ledgers``: where they lie. ``entries`` is the index of each message's entry.
    """

    earliest: _Int64s
    latest: _Int64s
    stamped: npt.NDArray[np.bool_]
    ledgers: _Int64s
    entries: _Int64s

    @classmethod
    def of(
        cls,
        stamped: _Int64s,
        published: _Int64s,
        replicated: npt.NDArray[np.bool_],
        ledgers: _Int64s,
        entries: _Int64s,
        *,
        no_time: int,
    ) -> Self:
        """Return the times of entries.

        ``stamped``: the broker's stamp, or ``no_time``. ``published``: the producer's clock.
        ``replicated``: the publish time is of another cluster, and says nothing.
        """
        known = stamped != no_time
        most = _BOUNDS.max - CLOCK_DIFFERENCE
        near = np.clip(np.where(known, stamped, published), -most, most)
        unknown = replicated & ~known
        earliest = np.where(unknown, _BOUNDS.min, near - CLOCK_DIFFERENCE)
        latest = np.where(unknown, _BOUNDS.max, near + CLOCK_DIFFERENCE)
        return cls(earliest, latest, known, ledgers, entries)

    def __len__(self) -> int:
        return len(self.entries)

    def part(self, first: int, stop: int) -> Self:
        """Return the times of the messages from ``first`` to ``stop``."""
        return replace(self, entries=self.entries[first:stop])

    def within(self, difference: int) -> Self:
        """Return the times as they are if producers' clocks differ by ``difference``, in µs."""
        more = difference - CLOCK_DIFFERENCE
        if more <= 0:
            return self
        earliest = np.maximum(self.earliest, _BOUNDS.min + more) - more
        latest = np.minimum(self.latest, _BOUNDS.max - more) + more
        return replace(
            self,
            earliest=np.where(self.stamped, self.earliest, earliest),
            latest=np.where(self.stamped, self.latest, latest),
        )

    def not_before(self, created: int | None, opened_at: Mapping[int, int]) -> Self:
        """Return the times without those at which an entry's ledger was not there, in µs.

        ``created``: when the partition was; ``opened_at``: when each ledger was opened, as far as
        that is known. A clock that claims an earlier time is wrong, and says nothing else.
        """
        least = _BOUNDS.min + CLOCK_DIFFERENCE if created is None else created
        starts = np.flatnonzero(np.diff(self.ledgers, prepend=-1))
        ledgers = self.ledgers[starts].tolist()
        bounds = [max(opened_at.get(ledger, least), least) for ledger in ledgers]
        counts = np.diff(starts, append=len(self.ledgers))
        opened = np.repeat(np.array(bounds, np.int64), counts)
        if bool((self.earliest >= opened).all()):
            return self
        wrong = self.latest < opened
        return replace(
            self,
            earliest=np.maximum(
                np.where(wrong, _BOUNDS.min, self.earliest), opened - CLOCK_DIFFERENCE
            ),
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
