"""What can be read of a ledger that is declared lost (``pulsar.lost_ledgers``).

Each entry comes: one that cannot be read without its bytes, with the reason in
``EntryBlock.damaged``, so that it becomes a rescued row like any that is damaged. A store that does
not answer is still an error: what it has is not lost. An entry in front of damage may itself have a
wrong length, where nothing says it twice: the checksum of Pulsar's clients shows that.
"""

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Protocol

import numpy as np

from reader.errors import CorruptError, NotFoundError
from reader.model import EntryBlock

MOST_ENTRIES = 1 << 16
"""Of a block of those that cannot be read."""
_NOTHING = np.zeros(0, np.uint8)


class Salvaged(Protocol):
    """A ledger, where it is stored."""

    def read(self, first: int, last: int) -> Generator[EntryBlock]:
        """Entries first..last (inclusive), without a gap. Raises as ``EntrySource.read``."""

    def begin_after(self, entry: int, error: CorruptError | NotFoundError) -> int | None:
        """The first entry behind ``entry``, which is not to be had, that a read may begin with.

        ``error``: why. None: there is none.
        """


def salvage(ledger_id: int, ledger: Salvaged, first: int, last: int) -> Generator[EntryBlock]:
    """Entries first..last (inclusive), ascending, without a gap.

    What lies in front of damage is read in ranges that grow, and begin anew with one entry where
    they meet it. Raises what ``ledger`` raises but CorruptError and NotFoundError.
    """
    at, step = first, last - first + 1
    while at <= last:
        try:
            with closing(ledger.read(at, min(last, at + step - 1))) as blocks:
                for block in blocks:
                    yield block
                    at = int(block.entry_ids[-1]) + 1
            step *= 2
        except (CorruptError, NotFoundError) as error:
            if step > 1:
                step = 1
                continue
            begin = ledger.begin_after(at, error)
            stop = last + 1 if begin is None else min(begin, last + 1)
            yield from unreadable(ledger_id, at, stop - 1, error.message)
            at = stop


def unreadable(ledger_id: int, first: int, last: int, reason: str) -> Iterator[EntryBlock]:
    """Entries first..last (inclusive), of which none can be read."""
    for begin in range(first, last + 1, MOST_ENTRIES):
        ids = np.arange(begin, min(begin + MOST_ENTRIES, last + 1), dtype=np.int64)
        nowhere = np.zeros(len(ids), np.int64)
        damaged = dict.fromkeys(range(len(ids)), reason)
        yield EntryBlock(ledger_id, ids, nowhere, nowhere, _NOTHING, damaged)
