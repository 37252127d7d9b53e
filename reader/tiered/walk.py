"""A walk over the entries of an object: the interface of both formats, without I/O.

A walk says from where on it wants bytes (``at``) and how many at least (``need``). Who has them
gives all that lie there, and takes the entries; ``at`` moves behind what was used, and the rest is
given again, with what follows.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reader.kernels.array_types import Bytes, Int64s


@dataclass(frozen=True, slots=True)
class Found:
    """Entries ``first``, ``first + 1``, …: ``arena[offsets : offsets + lengths]``.

    ``places``: where each begins in the object, so that a walk may begin there; None where none
    can.
    """

    first: int
    arena: Bytes
    offsets: Int64s
    lengths: Int64s
    places: Int64s | None = None


class Walk(ABC):
    """Entries from where it can begin, at or before ``first``, to ``last`` (inclusive), in their
    order, each once.

    ``at``: where in the object the next bytes are wanted; ``need``: how many at least, 0 once all
    entries were given, and all was checked that is to be checked; ``end``: the last byte that may
    be wanted lies before it. ``begins_with``: the entry that it begins with, about.
    """

    begins_with: int
    at: int
    need: int
    end: int

    @abstractmethod
    def take(self, data: Bytes) -> Sequence[Found]:
        """Entries that lie in ``data``, which begins at ``at``, and has ``need`` bytes or more.

        Not always all of them, so that memory stays bounded: ``at`` says what was used.

        Raises CorruptError for bytes that cannot be right.
        """


def next_of(firsts: Int64s, entry: int) -> int | None:
    """The first of ``firsts`` (ascending) that is greater than ``entry``; None: there is none."""
    at = int(np.searchsorted(firsts, entry, "right"))
    return int(firsts[at]) if at < len(firsts) else None
