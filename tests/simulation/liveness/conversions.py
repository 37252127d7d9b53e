"""The workers of Spark jobs in virtual time, by the rules of ``convert/jobs.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from offloader.convert.jobs import RETRIES, WORKERS, how_many

__all__ = ["CORES", "SILENT_SECONDS", "ModelledJobs", "WaitingConversion"]

CORES = 2

JOB_SECONDS = 0.3

SILENT_SECONDS = 41.0
"""What a pack takes to fail whose bookies are silent: two tries of two replicas."""


@dataclass(frozen=True, slots=True)
class WaitingConversion:
    """``seconds``: that its packs take, once they have a core. ``end``: called when it is over."""

    size: int
    suspect: bool
    seconds: Callable[[], float]
    end: Callable[[], None]


class ModelledJobs:
    """``at``: calls a function after so many seconds."""

    def __init__(self, at: Callable[[float, Callable[[], None]], None]) -> None:
        self._at = at
        self._waiting: dict[bool, list[WaitingConversion]] = {False: [], True: []}
        self._idle = set(range(WORKERS + 1))

    def submit(self, conversion: WaitingConversion) -> None:
        """Have it converted in some job."""
        self._waiting[conversion.suspect].append(conversion)
        self._start()

    def _start(self) -> None:
        for worker in sorted(self._idle):
            waiting = self._waiting[worker == RETRIES]
            job = waiting[: how_many(one.size for one in waiting)]
            if not job:
                continue
            del waiting[: len(job)]
            self._idle.discard(worker)
            cores = max(1, CORES // 2) if worker == RETRIES else CORES
            lengths = [one.seconds() for one in job]
            took = max(sum(lengths) / cores, max(lengths))
            self._at(JOB_SECONDS + took, partial(self._end, job, worker))

    def _end(self, job: list[WaitingConversion], worker: int) -> None:
        self._idle.add(worker)
        for one in job:
            one.end()
        self._start()
