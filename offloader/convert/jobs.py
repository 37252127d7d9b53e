"""Run the conversions of many topics in few Spark jobs. A job takes what waits when it starts.

Each topic's turn waits here in a thread of its own, so that its order (hold, read, commit,
release) is written down in one place (``turn/topic_offloader.py``) and still shares its job with
others.

1. Two workers run a job each, side by side, in a scheduler pool of its own. A third worker runs
   retries: a topic whose last turn failed may take as long as timeouts take. A fourth worker runs
   slow topics, which may take hours. Healthy topics wait for neither (``Workers``).
2. A job is a part of what waits: some packs for each of its slots, or one large one
   (``job_rules``). A conversion with packs left goes to the end of the queue, so a large backlog
   delays a small topic by one job; one that the job has passed over is the first of the next. Its
   first job has little of it: that shows whether its servers answer. Slow conversions end one after
   the other: each of them has to commit before its files are too old.
3. A pack that is slow is given up, and ends its conversion with ``SlowError``. Its topic's next
   turn is for the fourth worker.
4. Where a job fails as a whole (a Spark worker that dies), each of its topics runs alone once, so
   that only the guilty one fails.

Each job has a fixed cost, as much as some small topics have. So a small job waits a moment for more
conversions.
"""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from offloader.convert.conversion import (
    Conversion,
    ConversionOutcome,
    ConvertedPack,
    SlowError,
    SlowPack,
    pack_bytes,
)
from offloader.convert.job_rules import Patience, first_packs, job_bytes, packs_of_job
from offloader.model import StoppedError, Workers
from reader.errors import PulsarLakeError

WORKERS = (Workers.HEALTHY, Workers.HEALTHY, Workers.RETRIES, Workers.SLOW)
"""Whose conversions each worker runs."""

_FIRST_SLOTS = 4
"""Of jobs that are chosen before Spark has started."""

_FULL_BYTES = 32 << 20
"""A job of so much waits for no more."""

ContextT = TypeVar("ContextT")
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)


class RunJob(Protocol[ContextT_contra]):
    """Runs one job (``spark_job.convert``); what came of each conversion, in their order."""

    def __call__(
        self, context: ContextT_contra, conversions: Sequence[Conversion], *, pool: str
    ) -> Sequence[ConversionOutcome]: ...


@dataclass(eq=False, slots=True)
class _Waiting:
    """A conversion, and what came of it so far. ``left``: numbers of the packs that wait.
    ``passed``: its last job has begun nothing of it.
    """

    conversion: Conversion
    since: float
    left: list[int]
    done: dict[int, ConvertedPack] = field(default_factory=dict)
    begun: bool = False
    passed: bool = False
    result: Future[tuple[ConvertedPack, ...]] = field(default_factory=Future)

    def sizes(self) -> list[int]:
        """Return the sizes of the packs that the next job may take."""
        sizes = [pack_bytes(self.conversion.packs[number]) for number in self.left]
        return sizes if self.done else list(first_packs(sizes))

    def part(self, numbers: Sequence[int], patience: float) -> Conversion:
        """Return the conversion of some of its packs."""
        packs = tuple(self.conversion.packs[number] for number in numbers)
        progress = partial(self._progress, len(self.done), len(numbers))
        return replace(
            self.conversion, packs=packs, patience=patience, begun=self._begin, progress=progress
        )

    def _begin(self) -> None:
        if not self.begun:
            self.begun = True
            self.conversion.begun()

    def _progress(self, before: int, packs: int, done: int, tasks: int) -> None:
        now = packs * done // max(1, tasks)
        self.conversion.progress(before + now, len(self.conversion.packs))

    def take(self, numbers: Sequence[int], outcome: ConversionOutcome) -> None:
        """Take what came of some packs; ``result`` is set once the conversion is over."""
        slow: SlowPack | None = None
        self.passed = not any(outcome)
        for number, pack in zip(numbers, outcome, strict=True):
            if isinstance(pack, PulsarLakeError):
                self.result.set_exception(pack)
                return
            if isinstance(pack, SlowPack):
                slow = pack
            elif pack is None:
                self.left.append(number)
            else:
                self.done[number] = pack
        if slow is not None:
            self.result.set_exception(SlowError(f"not converted after {slow.seconds:.0f} s"))
        elif not self.left:
            self.result.set_result(tuple(self.done[n] for n in sorted(self.done)))


class _Part(NamedTuple):
    waiting: _Waiting
    numbers: list[int]


class ConversionJobs(Generic[ContextT]):
    """Thread-safe. ``context`` starts Spark, or gives what it gave before; ``count``: how many jobs
    there were. ``linger``: how long a small job waits for others, in seconds. ``cores``: how many
    tasks the context runs at once. ``idle``: seconds without a job after which a worker's thread
    ends.
    """

    def __init__(
        self,
        context: Callable[[], ContextT],
        run: RunJob[ContextT],
        *,
        linger: float = 0.0,
        cores: Callable[[ContextT], int] = lambda context: _FIRST_SLOTS,
        idle: float = 10.0,
    ) -> None:
        self._context = context
        self._run = run
        self._linger = linger
        self._count_cores = cores
        self._idle = idle
        self._cores = _FIRST_SLOTS
        self._patience = Patience()
        self._changed = threading.Condition()
        self._starting = threading.Lock()
        self._waiting: dict[Workers, list[_Waiting]] = {one: [] for one in Workers}
        self._stopped = False
        self._running: set[int] = set()
        self.count = 0

    def convert(self, conversion: Conversion) -> tuple[ConvertedPack, ...]:
        """Return its results, once jobs have made them.

        Raises what it failed with, SlowError if it was given up because it is slow, or StoppedError
        if ``stop`` was called before its last job.
        """
        return self.submit(conversion).result()

    def submit(self, conversion: Conversion) -> Future[tuple[ConvertedPack, ...]]:
        """``convert``, without waiting for it. Raises StoppedError after ``stop``."""
        waiting = _Waiting(conversion, time.monotonic(), list(range(len(conversion.packs))))
        if not conversion.packs:
            conversion.begun()
            waiting.result.set_result(())
            return waiting.result
        with self._changed:
            if self._stopped:
                raise StoppedError("the offloader stops")
            self._waiting[conversion.workers].append(waiting)
            for worker, workers in enumerate(WORKERS):
                if workers is conversion.workers and worker not in self._running:
                    self._running.add(worker)
                    threading.Thread(
                        target=self._serve,
                        args=(worker,),
                        daemon=True,
                        name=f"offload-convert-{worker}",
                    ).start()
            self._changed.notify_all()
        return waiting.result

    def stop(self) -> None:
        """Begin no further job. Running jobs are finished."""
        with self._changed:
            self._stopped = True
            left = [one for waiting in self._waiting.values() for one in waiting]
            self._waiting = {one: [] for one in Workers}
            self._changed.notify_all()
        for one in left:
            one.result.set_exception(StoppedError("the offloader stops"))

    def _serve(self, worker: int) -> None:
        while True:
            with self._changed:
                job = self._next(WORKERS[worker])
                if not job:
                    self._running.discard(worker)
                    return
                del self._waiting[WORKERS[worker]][: len(job)]
            self._convert(job, worker)
            with self._changed:
                self._put_back([one.waiting for one in job], WORKERS[worker])

    def _next(self, workers: Workers) -> list[_Part]:
        """Return what the next job has, once it is time; nothing where nothing comes."""
        while True:
            waiting = self._waiting[workers]
            slots = workers.slots(self._cores)
            sizes = (one.sizes() for one in waiting)
            counts = packs_of_job(sizes, job_bytes(slots), least=slots)
            # Not strict: what is behind those of the job waits for the next.
            job = [
                _Part(one, one.left[:count]) for one, count in zip(waiting, counts, strict=False)
            ]
            pause = self._pause(job) if job else self._idle
            if job and pause <= 0:
                for one in job:
                    del one.waiting.left[: len(one.numbers)]
                return job
            notified = not self._stopped and self._changed.wait(pause)
            # What came after the pause, before the lock was ours again, has told nobody.
            if not (notified or job or self._waiting[workers]):
                return []

    def _pause(self, job: Sequence[_Part]) -> float:
        """Seconds that they wait for others still."""
        if sum(one.waiting.conversion.bytes for one in job) >= _FULL_BYTES:
            return 0.0
        return job[0].waiting.since + self._linger - time.monotonic()

    def _put_back(self, job: Sequence[_Waiting], workers: Workers) -> None:
        """Have those that are not over wait for their next job; first those that it passed over."""
        unfinished = [one for one in job if not one.result.done()]
        if self._stopped:
            for one in unfinished:
                one.result.set_exception(StoppedError("the offloader stops"))
            return
        waiting = self._waiting[workers]
        first = [one for one in unfinished if one.passed or workers is Workers.SLOW]
        waiting[:0] = first
        waiting += [one for one in unfinished if one not in first]
        self._changed.notify_all()

    def _convert(self, job: Sequence[_Part], worker: int) -> None:
        try:
            with self._starting:  # Spark starts once
                context = self._context()
                self._cores = self._count_cores(context)
                self.count += 1
            patience = self._patience.seconds(WORKERS[worker])
            parts = [one.waiting.part(one.numbers, patience) for one in job]
            outcomes = self._run(context, parts, pool=f"worker-{worker}")
        except BaseException as error:  # noqa: BLE001 - its turns raise it
            if len(job) > 1:
                for one in job:
                    self._convert([one], worker)
                return
            job[0].waiting.result.set_exception(error)
            return
        for one, part, outcome in zip(job, parts, outcomes, strict=True):
            for pack, splits in zip(outcome, part.packs, strict=True):
                if isinstance(pack, SlowPack):
                    self._patience.give_up(pack.seconds, pack_bytes(splits))
                    break
            one.waiting.take(one.numbers, outcome)
