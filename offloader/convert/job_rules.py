"""Which packs go into the next job, and how long each of them may take. Pure: clocks are passed in.

Where one pack is given up, others are likely to be: forty topics on a bookie that has become slow
would each keep a slot for the whole patience. So each slow one that is given up halves it for a
while.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from offloader.model import Workers

PACK_COST = 1 << 20
"""What a pack costs besides its bytes, in bytes."""

_SLOT_BYTES = 256 << 20
"""What a job has for each of its slots: seconds of work, or two packs that are slow."""

_FIRST_BYTES = 32 << 20


def first_packs(sizes: Sequence[int]) -> Sequence[int]:
    """Return the sizes of the packs that a conversion's first job may take: one, or small ones."""
    return sizes[: packs_of_job([sizes], _FIRST_BYTES)[0]]


def job_bytes(slots: int) -> int:
    """Return how many bytes a job has at the most, if it may run ``slots`` tasks at once."""
    return slots * _SLOT_BYTES


def packs_of_job(waiting: Iterable[Sequence[int]], limit: int, least: int = 1) -> list[int]:
    """Return how many packs of each conversion a job takes: ``limit`` bytes, ``least`` packs.

    ``waiting``: the sizes of each conversion's packs. A conversion behind the last one that has
    packs in the job is not in the result.
    """
    counts: list[int] = []
    total = taken = 0
    for sizes in waiting:
        count = 0
        for size in sizes:
            total += size + PACK_COST
            if total > limit and taken >= least:
                return [*counts, count] if count else counts
            count += 1
            taken += 1
        counts.append(count)
    return counts


_USUAL_SECONDS, _USUAL_PACE = 15.0, 4 << 20
"""A pack is slow if it takes longer than so many seconds, and one for each so many bytes."""

PATIENCE_SECONDS = 120.0

_LEAST_SECONDS = 15.0

_REMEMBERED_SECONDS = 600.0


def is_slow(seconds: float, size: int) -> bool:
    """Return whether a pack of ``size`` bytes took much longer than packs do."""
    return seconds > _usual_seconds(size)


def most_seconds(patience: float, size: int) -> float:
    """Return after how long a pack of ``size`` bytes is given up: more of a very large one."""
    return patience * max(1.0, _usual_seconds(size) / PATIENCE_SECONDS)


def _usual_seconds(size: int) -> float:
    return _USUAL_SECONDS + size / _USUAL_PACE


class Patience:
    """Thread-safe. ``clock``: seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._given_up: deque[float] = deque(maxlen=8)

    def give_up(self, seconds: float, size: int) -> None:
        """Note that a pack was given up after so long.

        Only of one that was slow by then: else what a short patience gives up would keep it short.
        """
        if is_slow(seconds, size):
            with self._lock:
                self._given_up.append(self._clock())

    def seconds(self, workers: Workers) -> float:
        """Return after how many seconds a pack is given up, if these workers convert it."""
        if workers is Workers.SLOW:
            return math.inf
        with self._lock:
            since = self._clock() - _REMEMBERED_SECONDS
            recent = sum(one >= since for one in self._given_up)
        return float(max(_LEAST_SECONDS, PATIENCE_SECONDS / 2**recent))
