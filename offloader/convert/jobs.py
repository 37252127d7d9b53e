"""Conversions of many topics as few Spark jobs: what waits when a job starts goes into it.

Each topic's turn waits here in a thread of its own, so that its order (hold, read, commit, let
go) is written down in one place (``turn.py``) and still shares its job with others.

Two jobs run side by side, each in a scheduler pool of its own: a long one leaves half of the
cores to the next. A topic whose last turn failed runs alone, and only in the second lane: it may
stop there for as long as timeouts take, and nobody else waits for it. Where a job fails as a whole
(a worker that dies), each of its topics runs alone once, so that only the guilty one fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from offloader.convert.conversion import Converted, Outcome, Work, convert
from offloader.model.due import COMMIT_BYTES
from offloader.model.stopping import StoppedError
from reader.errors import PulsarLakeError

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["LANES", "Jobs", "take"]

LANES = 2

_IDLE_SECONDS = 10.0


@dataclass(eq=False, slots=True)
class _Waiting:
    work: Work
    result: Future[tuple[Converted, ...]] = field(default_factory=Future)


class Jobs:
    """Thread-safe. ``run`` is ``convert``, but for tests; ``count``: how many jobs there were.

    The lanes' threads end when nothing has come for a while.
    """

    def __init__(
        self,
        context: Callable[[], SparkContext],
        run: Callable[..., list[Outcome]] = convert,
    ) -> None:
        self._context = context
        self._run = run
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._stopped = False
        self._lanes: set[int] = set()
        self.count = 0

    def convert(self, work: Work) -> tuple[Converted, ...]:
        """The work's results, once a job has made them.

        Raises what it failed with, or StoppedError if it had not begun when ``stop`` was called.
        """
        if not work.packs:
            work.begun()
            return ()
        one = _Waiting(work)
        with self._changed:
            if self._stopped:
                raise StoppedError("the offloader stops")
            self._waiting.append(one)
            for lane in set(range(LANES)) - self._lanes:
                self._lanes.add(lane)
                threading.Thread(target=self._serve, args=(lane,), daemon=True).start()
            self._changed.notify_all()
        return one.result.result()

    def stop(self) -> None:
        """Begin no job any more; those that run go on."""
        with self._changed:
            self._stopped = True
            left, self._waiting = self._waiting, []
            self._changed.notify_all()
        for one in left:
            one.result.set_exception(StoppedError("the offloader stops"))

    def _serve(self, lane: int) -> None:
        while True:
            with self._changed:
                while not (some := take([one.work for one in self._waiting], lane)):
                    if self._stopped or not self._changed.wait(_IDLE_SECONDS):
                        self._lanes.discard(lane)
                        return
                chosen = [self._waiting[i] for i in some]
                self._waiting = [one for one in self._waiting if one not in chosen]
            self._convert(chosen, lane)

    def _convert(self, chosen: Sequence[_Waiting], lane: int) -> None:
        try:
            with self._starting:  # Spark starts once
                context = self._context()
                self.count += 1
            outcomes = self._run(context, [one.work for one in chosen], pool=f"lane-{lane}")
        except BaseException as error:  # noqa: BLE001 - its turns raise it
            if len(chosen) > 1:
                for one in chosen:
                    self._convert([one], lane)
                return
            chosen[0].result.set_exception(error)
            return
        for one, outcome in zip(chosen, outcomes, strict=True):
            if isinstance(outcome, PulsarLakeError):
                one.result.set_exception(outcome)
            else:
                one.result.set_result(outcome)


def take(waiting: Sequence[Work], lane: int) -> list[int]:
    """Which of the waiting works the lane's next job takes: the most urgent, up to a size.

    Of works whose last turn failed one alone, when nothing else waits for the last lane.
    """
    sound = [i for i, work in enumerate(waiting) if not work.suspect]
    sound.sort(key=lambda i: waiting[i].urgency, reverse=True)
    chosen: list[int] = []
    size = 0
    for i in sound:
        if chosen and size + waiting[i].bytes > COMMIT_BYTES:
            break
        chosen.append(i)
        size += waiting[i].bytes
    if chosen or lane != LANES - 1:
        return chosen
    return [i for i, work in enumerate(waiting) if work.suspect][:1]
