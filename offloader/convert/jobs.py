"""Conversions of many topics as few Spark jobs: what waits when a job starts goes into it.

Each topic's turn waits here in a thread of its own, so that its order (hold, read, commit,
release) is written down in one place (``turn/topic_offloader.py``) and still shares its job with
others.

Two workers run a job each, side by side, in a scheduler pool of its own: a long one leaves half of
the cores to the next. A third worker runs retries: a topic whose last turn failed may take as long
as timeouts take, and healthy topics do not wait for it. Each worker takes what has waited for
longest; the scheduler has decided who comes first. Where a job fails as a whole (a Spark worker
that dies), each of its topics runs alone once, so that only the guilty one fails.

A job costs as much as some small topics do, whatever is in it; so a small one waits a moment for
others to come along.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from offloader.convert.conversion import Conversion, ConversionOutcome, ConvertedPack
from offloader.model import COMMIT_BYTES, StoppedError
from reader.errors import PulsarLakeError

__all__ = ["RETRIES", "WORKERS", "ConversionJobs", "RunJob", "how_many"]

WORKERS = 2
"""Workers of healthy topics."""

RETRIES = WORKERS
"""The worker of topics whose last turn failed."""

_IDLE_SECONDS = 10.0

_FULL_BYTES = 32 << 20
"""A job of so much waits for no more."""

ContextT = TypeVar("ContextT")
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)


class RunJob(Protocol[ContextT_contra]):
    """Runs one job (``spark_job.convert``); what came of each conversion, in their order."""

    def __call__(
        self, context: ContextT_contra, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]: ...


@dataclass(eq=False, slots=True)
class _Waiting:
    conversion: Conversion
    since: float
    result: Future[tuple[ConvertedPack, ...]] = field(default_factory=Future)


class ConversionJobs(Generic[ContextT]):
    """Thread-safe. ``context`` starts Spark, or gives what it gave before; ``count``: how many jobs
    there were. ``linger``: how long a small job waits for others, in seconds.

    The workers' threads end when nothing has come for a while.
    """

    def __init__(
        self,
        context: Callable[[], ContextT],
        run: RunJob[ContextT],
        *,
        linger: float = 0.0,
    ) -> None:
        self._context = context
        self._run = run
        self._linger = linger
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        # By whether they are retries.
        self._waiting: dict[bool, list[_Waiting]] = {False: [], True: []}
        self._stopped = False
        self._workers: set[int] = set()
        self.count = 0

    def convert(self, conversion: Conversion) -> tuple[ConvertedPack, ...]:
        """Its results, once a job has made them.

        Raises what it failed with, or StoppedError if it had not begun when ``stop`` was called.
        """
        return self.submit(conversion).result()

    def submit(self, conversion: Conversion) -> Future[tuple[ConvertedPack, ...]]:
        """``convert``, without waiting for it. Raises StoppedError after ``stop``."""
        one = _Waiting(conversion, time.monotonic())
        if not conversion.packs:
            conversion.begun()
            one.result.set_result(())
            return one.result
        with self._changed:
            if self._stopped:
                raise StoppedError("the offloader stops")
            self._waiting[conversion.suspect].append(one)
            workers = {RETRIES} if conversion.suspect else set(range(WORKERS))
            for worker in workers - self._workers:
                self._workers.add(worker)
                threading.Thread(
                    target=self._serve,
                    args=(worker,),
                    daemon=True,
                    name=f"offload-convert-{worker}",
                ).start()
            self._changed.notify_all()
        return one.result

    def stop(self) -> None:
        """Begin no job any more; those that run go on."""
        with self._changed:
            self._stopped = True
            left = [one for waiting in self._waiting.values() for one in waiting]
            self._waiting = {False: [], True: []}
            self._changed.notify_all()
        for one in left:
            one.result.set_exception(StoppedError("the offloader stops"))

    def _serve(self, worker: int) -> None:
        while True:
            with self._changed:
                job = self._next(worker)
                if not job:
                    self._workers.discard(worker)
                    return
                del self._waiting[worker == RETRIES][: len(job)]
            self._convert(job, worker)

    def _next(self, worker: int) -> list[_Waiting]:
        """What the worker's next job has, once it is time; nothing where nothing comes."""
        while True:
            waiting = self._waiting[worker == RETRIES]
            job = waiting[: how_many(one.conversion.bytes for one in waiting)]
            pause = self._pause(job) if job else _IDLE_SECONDS
            if job and pause <= 0:
                return job
            notified = not self._stopped and self._changed.wait(pause)
            if not (notified or job):
                return []

    def _pause(self, job: Sequence[_Waiting]) -> float:
        """Seconds that they wait for others still."""
        if sum(one.conversion.bytes for one in job) >= _FULL_BYTES:
            return 0.0
        return job[0].since + self._linger - time.monotonic()

    def _convert(self, chosen: Sequence[_Waiting], worker: int) -> None:
        try:
            with self._starting:  # Spark starts once
                context = self._context()
                self.count += 1
            conversions = [one.conversion for one in chosen]
            outcomes = self._run(context, conversions, pool=f"worker-{worker}")
        except BaseException as error:  # noqa: BLE001 - its turns raise it
            if len(chosen) > 1:
                for one in chosen:
                    self._convert([one], worker)
                return
            chosen[0].result.set_exception(error)
            return
        for one, outcome in zip(chosen, outcomes, strict=True):
            if isinstance(outcome, PulsarLakeError):
                one.result.set_exception(outcome)
            else:
                one.result.set_result(outcome)


def how_many(sizes: Iterable[int]) -> int:
    """Return how many of the waiting conversions a job takes: at least one, up to a size."""
    count = total = 0
    for size in sizes:
        total += size
        if count and total > COMMIT_BYTES:
            break
        count += 1
    return count
