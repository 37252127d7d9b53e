"""The workers of Spark jobs and Spark's slots in virtual time, by the rules of ``convert``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from offloader.convert import job_rules
from offloader.convert.jobs import WORKERS
from offloader.convert.pack_task import BEGIN_SECONDS
from offloader.model import Workers

CORES = 3

JOB_SECONDS = 0.3

SILENT_SECONDS = 41.0
"""What a pack takes to fail whose bookies are silent: two tries of two replicas."""

ConversionResult = Literal["good", "failed", "slow", "given up"]
"""``slow``: converted, but slowly. ``given up``: because it is slow."""


@dataclass(slots=True, eq=False)
class WaitingConversion:
    """``packs``: their sizes. ``run``: (seconds that a pack takes, whether it fails then), once it
    has a slot. ``end``: called with what came of it. ``left``: packs that wait.
    ``given_up``: after how long a pack was, and its size.
    """

    packs: tuple[int, ...]
    workers: Workers
    run: Callable[[int], tuple[float, bool]]
    end: Callable[[ConversionResult], None]
    left: list[int] = field(init=False)
    outcomes: set[ConversionResult] = field(default_factory=set)
    given_up: tuple[float, int] = (0.0, 0)

    def __post_init__(self) -> None:
        self.left = list(self.packs)


@dataclass(slots=True, eq=False)
class _Job:
    worker: int
    conversions: list[WaitingConversion]
    tasks: list[list[tuple[WaitingConversion, int]]]
    patience: float
    running: int = 0


class ModelledJobs:
    """``at``: calls a function after so many seconds. ``running``: conversions in a job."""

    def __init__(self, at: Callable[[float, Callable[[], None]], None], clock: Callable[[], float]):
        self._at = at
        self._clock = clock
        self._waiting: dict[Workers, list[WaitingConversion]] = {one: [] for one in Workers}
        self._jobs: dict[int, _Job] = {}
        self._free = CORES
        self._patience = job_rules.Patience(clock)

    def submit(self, conversion: WaitingConversion) -> None:
        """Have it converted in some jobs."""
        self._waiting[conversion.workers].append(conversion)
        self._start()

    def _start(self) -> None:
        for worker, workers in enumerate(WORKERS):
            waiting = self._waiting[workers]
            if worker in self._jobs or not waiting:
                continue
            slots = workers.slots(CORES)
            sizes = (
                one.left if one.outcomes else job_rules.first_packs(one.left) for one in waiting
            )
            counts = job_rules.packs_of_job(sizes, job_rules.job_bytes(slots), least=slots)
            job = _Job(worker, waiting[: len(counts)], [], self._patience.seconds(workers))
            del waiting[: len(counts)]
            packs = []
            for one, count in zip(job.conversions, counts, strict=True):
                packs += [(one, size) for size in one.left[:count]]
                del one.left[:count]
            bins = min(len(packs), slots if workers is not Workers.HEALTHY else 4 * CORES)
            job.tasks = [packs[first::bins] for first in range(bins)]
            self._jobs[worker] = job
            self._at(JOB_SECONDS, self._give_slots)

    def _give_slots(self) -> None:
        """Start tasks, first those of the job with the fewest (Spark's FAIR pools)."""
        while self._free:
            jobs = [one for one in self._jobs.values() if one.tasks]
            if not jobs:
                return
            job = min(jobs, key=lambda one: one.running)
            self._free -= 1
            job.running += 1
            self._run(job, job.tasks.pop(0), self._clock())

    def _run(self, job: _Job, task: list[tuple[WaitingConversion, int]], began: float) -> None:
        """Run the task's next pack; ``began``: when its first one did."""
        if not task:
            self._free += 1
            job.running -= 1
            if not job.tasks and not job.running:
                self._end(job)
            self._give_slots()
            return
        (conversion, size), rest = task[0], task[1:]
        if self._clock() - began > BEGIN_SECONDS:
            conversion.left.append(size)
            self._run(job, rest, began)
            return
        seconds, fails = conversion.run(size)
        outcome: ConversionResult = "failed" if fails else "good"
        if not fails and job_rules.is_slow(seconds, size):
            outcome = "slow"
        most = job_rules.most_seconds(job.patience, size)
        if seconds > most:
            seconds, outcome = most, "given up"
            conversion.given_up = (seconds, size)
        conversion.outcomes.add(outcome)
        self._at(seconds, partial(self._run, job, rest, began))

    def _end(self, job: _Job) -> None:
        del self._jobs[job.worker]
        workers = WORKERS[job.worker]
        over: list[WaitingConversion] = []
        left: list[WaitingConversion] = []
        for one in job.conversions:
            ended = {"failed", "given up"} & one.outcomes or not one.left
            (over if ended else left).append(one)
        waiting = self._waiting[workers]
        first = 0 if workers is Workers.SLOW else len(waiting)
        waiting[first:first] = left
        results: tuple[ConversionResult, ...] = ("failed", "given up", "slow", "good")
        for one in over:
            if "given up" in one.outcomes:
                self._patience.give_up(*one.given_up)
            one.end(next(result for result in results if result in one.outcomes))
        self._start()
