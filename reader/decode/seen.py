"""What a decoder has seen of each block: publish times and numbers of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reader.decode.tables import E_KIND, E_PUBLISH, MESSAGES, NO_TIME, OUTSIDE, WHOLE
from reader.kernels.array_types import Int64s

_INT64 = np.iinfo(np.int64)


@dataclass(slots=True)
class Seen:
    """Times and rows of all entries of a block, also of those outside of the publish range.

    ``low``, ``high``: least and greatest publish time, µs since the epoch; None without any.
    ``messages``: number of rows; None if entries were outside of the range, whose rows are not
    counted.
    ``encrypted``: an entry was encrypted, so its rows depend on the configured keys.
    """

    low: int | None = None
    high: int | None = None
    messages: int | None = 0
    encrypted: bool = False

    def add(self, other: Seen) -> None:
        """The entries of ``other``, too."""
        lows = [one for one in (self.low, other.low) if one is not None]
        highs = [one for one in (self.high, other.high) if one is not None]
        self.low, self.high = min(lows, default=None), max(highs, default=None)
        if other.messages is None:
            self.messages = None
        else:
            self.add_rows(other.messages)
        self.encrypted |= other.encrypted

    def add_rows(self, count: int) -> None:
        """Count rows that were given."""
        if self.messages is not None:
            self.messages += count


class BlocksSeen:
    """The `Seen` of blocks that are decoded together, each of which has entries.

    ``starts``: the number of each block's first entry in ``entries``.
    """

    def __init__(self, entries: Int64s, starts: Sequence[int], *, encrypted: bool) -> None:
        self.encrypted = encrypted
        kind, times = entries[E_KIND], entries[E_PUBLISH]
        known = (kind == MESSAGES) | (kind == WHOLE) | (kind == OUTSIDE)
        known &= times != NO_TIME
        lows = np.minimum.reduceat(np.where(known, times, _INT64.max), starts)
        highs = np.maximum.reduceat(np.where(known, times, _INT64.min), starts)
        outside = np.logical_or.reduceat(kind == OUTSIDE, starts)
        self._ends = np.append(starts[1:], len(kind))
        self.blocks = [
            Seen(
                low if low <= high else None,
                high if low <= high else None,
                None if passed_over else 0,
                encrypted,
            )
            for low, high, passed_over in zip(
                lows.tolist(), highs.tolist(), outside.tolist(), strict=True
            )
        ]

    def add_rows(self, entry_of_row: Int64s) -> None:
        """Rows that were given, by the numbers of their entries, which ascend."""
        if len(self.blocks) == 1:
            self.blocks[0].add_rows(len(entry_of_row))
            return
        upto = 0
        for seen, end in zip(
            self.blocks, np.searchsorted(entry_of_row, self._ends).tolist(), strict=True
        ):
            seen.add_rows(end - upto)
            upto = end
