"""Conversions that wait together, in jobs that do nothing: what runs with what, and who fails."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from queue import Queue
from typing import cast

import pyarrow as pa
import pytest

from offloader.config import Config
from offloader.convert import job_rules
from offloader.convert.conversion import (
    Conversion,
    ConversionOutcome,
    ConversionSpec,
    ConvertedPack,
    SlowError,
    SlowPack,
)
from offloader.convert.jobs import WORKERS, ConversionJobs
from offloader.convert.spark_job import share_out
from offloader.model.stopping import StoppedError
from offloader.model.turn import Workers
from reader.errors import PulsarLakeError, UnavailableError
from reader.model import Partition, Split, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.sources.row_format import RowFormat

HEALTHY = WORKERS.count(Workers.HEALTHY)
LARGE = job_rules.job_bytes(64)
DONE = ConvertedPack(Partition(Topic("public", "default", "t"), -1), None, {})
ROWS = RowFormat(pa.schema([]), (), pa.schema([]))


def conversion(name: str, *sizes: int, workers: Workers = Workers.HEALTHY) -> Conversion:
    topic = Topic("public", "default", name)
    why = TierReason(Reason.SEALED)
    packs = tuple(
        (Split(Partition(topic, -1), n, 0, 9, Tier.BOOKKEEPER, why, "sealed", size, None, True),)
        for n, size in enumerate(sizes)
    )
    return Conversion(ConversionSpec(Config(), topic, ROWS, ()), packs, workers)


class World:
    """Jobs that wait for ``go``; ``outcome`` is what comes of one with topics of these names."""

    def __init__(self, outcome: Callable[[Sequence[str]], list[ConversionOutcome]]) -> None:
        self.go = threading.Event()
        self.names: list[list[str]] = []
        self._outcome = outcome
        self._begun = threading.Semaphore(0)
        self.jobs = ConversionJobs(lambda: None, self.run)

    def run(
        self, context: None, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]:
        names = [one.spec.topic.name for one in conversions]
        self.names.append(names)
        self._begun.release()
        assert self.go.wait(60)
        return self._outcome(names)

    def submit(self, *names: str, size: int = 1) -> list[Future[tuple[ConvertedPack, ...]]]:
        """Conversions of topics with these names; each worker is given one of the first."""
        found = []
        for number, name in enumerate(names):
            found.append(self.jobs.submit(conversion(name, size)))
            if number < HEALTHY:
                assert self._begun.acquire(timeout=60)
        return found


def nothing(names: Sequence[str]) -> list[ConversionOutcome]:
    return [(DONE,) for _ in names]


def test_a_job_takes_what_has_waited_longest_up_to_a_size() -> None:
    size = 100 - job_rules.PACK_COST
    assert job_rules.packs_of_job([[size], [size, size], [size]], 300) == [1, 2]
    assert job_rules.packs_of_job([[size, size, size], [size]], 200) == [2]
    assert job_rules.packs_of_job([[size], [9000]], 200) == [1]
    assert job_rules.packs_of_job([[9000], [size]], 200) == [1], "at least one"
    assert job_rules.packs_of_job([], 200) == []


def test_large_packs_leave_no_core_idle() -> None:
    """Of ``split_bytes = "512MiB"`` a job on four cores had one."""
    sizes = [512 << 20] * 8
    assert job_rules.packs_of_job([sizes], job_rules.job_bytes(4), least=4) == [4]
    assert job_rules.packs_of_job([sizes[:1]] * 6, job_rules.job_bytes(4), least=4) == [1] * 4


def test_the_first_job_of_a_conversion_has_little_of_it() -> None:
    assert job_rules.first_packs([128 << 20] * 8) == [128 << 20]
    assert len(job_rules.first_packs([1] * 8)) == 8


def test_each_pack_that_is_given_up_shortens_the_patience_for_a_while() -> None:
    now = [1000.0]
    patience = job_rules.Patience(lambda: now[0])
    assert patience.seconds(Workers.HEALTHY) == job_rules.PATIENCE_SECONDS
    patience.give_up(120.0, 128 << 20)
    assert patience.seconds(Workers.RETRIES) == job_rules.PATIENCE_SECONDS / 2
    for _ in range(20):
        patience.give_up(120.0, 128 << 20)
    assert patience.seconds(Workers.HEALTHY) == 15.0
    assert patience.seconds(Workers.SLOW) == float("inf")
    now[0] += 601.0
    assert patience.seconds(Workers.HEALTHY) == job_rules.PATIENCE_SECONDS


def test_a_short_patience_does_not_keep_itself_short() -> None:
    """It also gives up packs that are not slow. If those counted, it would stay so for ever: their
    topics are not slow where slow topics are converted, and come back."""
    patience = job_rules.Patience()
    patience.give_up(30.0, 128 << 20)
    assert patience.seconds(Workers.HEALTHY) == job_rules.PATIENCE_SECONDS
    patience.give_up(60.0, 128 << 20)
    assert patience.seconds(Workers.HEALTHY) == job_rules.PATIENCE_SECONDS / 2


def test_a_very_large_pack_has_as_long_as_one_that_is_not_slow() -> None:
    assert (
        job_rules.most_seconds(job_rules.PATIENCE_SECONDS, 128 << 20) == job_rules.PATIENCE_SECONDS
    )
    large = job_rules.most_seconds(job_rules.PATIENCE_SECONDS, 1 << 30)
    assert job_rules.is_slow(large + 1, 1 << 30)
    assert not job_rules.is_slow(large - 1, 1 << 30)
    assert job_rules.most_seconds(job_rules.PATIENCE_SECONDS / 2, 1 << 30) == large / 2
    assert job_rules.most_seconds(float("inf"), 1) == float("inf")


def test_topics_that_failed_or_are_slow_keep_no_healthy_topic_waiting() -> None:
    """And are converted, however many healthy topics wait."""
    go = {one.value: threading.Event() for one in Workers}
    begun: Queue[str] = Queue()

    def run(
        context: None, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]:
        name = conversions[0].workers.value
        assert {one.workers.value for one in conversions} == {name}
        begun.put(name)
        assert go[name].wait(60)
        return [(DONE,) for _ in conversions]

    jobs = ConversionJobs(lambda: None, run)
    healthy = [jobs.submit(conversion(f"t{n}", LARGE)) for n in range(3 * HEALTHY)]
    bad = [
        jobs.submit(conversion(f"{workers}{n}", LARGE, workers=workers))
        for n in range(2)
        for workers in (Workers.RETRIES, Workers.SLOW)
    ]
    assert sorted(begun.get(timeout=60) for _ in WORKERS) == [
        "healthy",
        "healthy",
        "retries",
        "slow",
    ]
    go["healthy"].set()
    assert [one.result(60) for one in healthy] == [(DONE,)] * len(healthy)
    assert not any(one.done() for one in bad)
    go["retries"].set()
    go["slow"].set()
    assert [one.result(60) for one in bad] == [(DONE,)] * 4


def test_topics_that_failed_or_are_slow_leave_half_of_the_cores() -> None:
    assert [one.slots(16) for one in Workers] == [16, 4, 4]
    assert [one.slots(2) for one in Workers] == [2, 1, 1]
    many = [conversion(f"t{n}", 64 << 20, 1000, workers=Workers.SLOW) for n in range(5)]
    assert len(share_out(many, 4, most=2)) == 2
    assert sum(map(len, share_out(many, 4, most=2))) == 10


def test_small_topics_share_spark_tasks_and_large_packs_do_not() -> None:
    small = [conversion(f"t{n}", 1000) for n in range(50)]
    tasks = share_out([*small, conversion("big", 64 << 20, 64 << 20)], 2)
    assert len(tasks) == 2 + 8
    assert [len(task) for task in tasks[:2]] == [1, 1]
    assert sorted((number, pack) for task in tasks for number, pack, _ in task) == [
        *((n, 0) for n in range(50)),
        (50, 0),
        (50, 1),
    ]


def test_a_task_has_its_packs_in_the_order_in_which_they_waited() -> None:
    """It may begin no more than the first: then the smallest would wait as long as others come."""
    (task,) = share_out([conversion("small", 1), conversion("large", 9, 99)], 4, most=1)
    assert [(number, pack) for number, pack, _ in task] == [(0, 0), (1, 0), (1, 1)]


def test_a_small_conversion_is_not_passed_over_for_ever() -> None:
    """A task that begins one pack (others are slow), and topics with larger ones all the time."""
    ended: list[str] = []
    size = 20 << 20
    submitted = threading.Event()

    def run(
        context: None, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]:
        assert submitted.wait(60)
        found: list[list[ConvertedPack | None]] = [[None] * len(one.packs) for one in conversions]
        for task in share_out(conversions, 1, most=1):
            number, pack, _ = task[0]
            found[number][pack] = DONE
        if len(ended) < 50:
            name = f"more{len(ended)}"
            jobs.submit(conversion(name, size, workers=RETRIES))
        for one, outcome in zip(conversions, found, strict=True):
            if all(outcome):
                ended.append(one.spec.topic.name)
        return [cast(ConversionOutcome, tuple(one)) for one in found]

    jobs = ConversionJobs(lambda: None, run, linger=0.2)
    large = [jobs.submit(conversion(f"t{n}", size, workers=RETRIES)) for n in range(2)]
    small = jobs.submit(conversion("small", 1, workers=RETRIES))
    submitted.set()
    assert small.result(60) == (DONE,)
    assert [one.result(60) for one in large] == [(DONE,)] * 2
    assert ended.index("small") < 5


def test_what_waits_together_is_one_job() -> None:
    world = World(nothing)
    results = world.submit(*(f"t{n}" for n in range(20)))
    world.go.set()
    assert [one.result(60) for one in results] == [(DONE,)] * 20
    sizes = [len(names) for names in world.names]
    assert (sum(sizes), len(sizes)) == (20, HEALTHY + 1)
    assert world.jobs.count == len(sizes)


def test_one_that_breaks_a_job_fails_alone() -> None:
    def outcome(names: Sequence[str]) -> list[ConversionOutcome]:
        if "bad" in names:
            raise RuntimeError("a worker died")
        return [(UnavailableError("its own") if name == "own" else DONE,) for name in names]

    world = World(outcome)
    names = ["first", "second", "bad", "own", "good"]
    results = dict(zip(names, world.submit(*names), strict=True))
    world.go.set()
    came: dict[str, object] = {}
    for name, one in results.items():
        try:
            came[name] = one.result(60)
        except (RuntimeError, PulsarLakeError) as error:
            came[name] = str(error)
    assert came == {
        "first": (DONE,),
        "second": (DONE,),
        "good": (DONE,),
        "bad": "a worker died",
        "own": "its own",
    }
    assert ["bad", "own", "good"] in world.names, "it was tried with the others at first"


def test_a_stop_begins_no_job() -> None:
    world = World(nothing)
    results = world.submit(*(f"t{n}" for n in range(8)), size=LARGE)
    world.jobs.stop()
    world.go.set()
    assert [one.result(60) for one in results[:HEALTHY]] == [(DONE,)] * HEALTHY, (
        "what has begun is finished"
    )
    assert all(isinstance(one.exception(60), StoppedError) for one in results[HEALTHY:])
    with pytest.raises(StoppedError):
        world.jobs.convert(conversion("late", 1))


def test_what_has_nothing_to_read_waits_for_no_job() -> None:
    begun: list[str] = []
    jobs = World(nothing).jobs
    empty = Conversion(conversion("a").spec, (), begun=lambda: begun.append("a"))
    assert jobs.convert(empty) == ()
    assert (begun, jobs.count) == (["a"], 0)


def test_a_small_job_waits_a_moment_for_others() -> None:
    jobs: list[int] = []

    def run(
        context: None, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]:
        jobs.append(len(conversions))
        return [(DONE,) for _ in conversions]

    lingering = ConversionJobs(lambda: None, run, linger=3600)
    results = [lingering.submit(conversion(f"t{n}", 1)) for n in range(3)]
    results.append(lingering.submit(conversion("large", 64 << 20)))
    assert [one.result(60) for one in results] == [(DONE,)] * 4
    assert jobs == [4]


def test_a_small_job_waits_no_longer_than_it_is_said() -> None:
    begun = time.monotonic()
    lingering = ConversionJobs(lambda: None, _nothing, linger=0.1)
    assert lingering.submit(conversion("small", 1)).result(60) == (DONE,)
    assert time.monotonic() - begun >= 0.1


def test_a_large_job_waits_for_no_company() -> None:
    lingering = ConversionJobs(lambda: None, _nothing, linger=3600)
    assert lingering.submit(conversion("large", 64 << 20)).result(60) == (DONE,)


def test_a_stop_waits_for_no_company() -> None:
    lingering = ConversionJobs(lambda: None, _nothing, linger=3600)
    waiting = lingering.submit(conversion("small", 1))
    lingering.stop()
    assert isinstance(waiting.exception(60), StoppedError)


def _nothing(
    context: None, conversions: Sequence[Conversion], *, pool: str
) -> list[ConversionOutcome]:
    return [(DONE,) * len(one.packs) for one in conversions]


class Parts:
    """Jobs of one worker, each of which waits to be let go; what each has of each topic."""

    def __init__(self, outcome: Callable[[str, int], object] = lambda name, packs: DONE) -> None:
        self.jobs = ConversionJobs(lambda: None, self.run)
        self.parts: Queue[dict[str, int]] = Queue()
        self.go = threading.Semaphore(0)
        self._outcome = outcome

    def run(
        self, context: None, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]:
        for one in conversions:
            one.begun()
        self.parts.put({one.spec.topic.name: len(one.packs) for one in conversions})
        assert self.go.acquire(timeout=60)
        for one in conversions:
            one.progress(1, 1)
        return [
            cast(ConversionOutcome, tuple(self._outcome(one.spec.topic.name, n) for n in range(k)))
            for one in conversions
            for k in [len(one.packs)]
        ]

    def next(self) -> dict[str, int]:
        """The next job, which is let go."""
        part = self.parts.get(timeout=60)
        self.go.release()
        return part


RETRIES = Workers.RETRIES  # they have one worker, so the order of jobs is certain


def test_a_large_conversion_delays_the_others_by_one_job() -> None:
    world = Parts()
    begun: list[str] = []
    progress: list[tuple[int, int]] = []
    large = replace(
        conversion("large", *[128 << 20] * 4, workers=RETRIES),
        begun=lambda: begun.append("large"),
        progress=lambda done, total: progress.append((done, total)),
    )
    first = world.jobs.submit(large)
    assert world.parts.get(timeout=60) == {"large": 1}, "little of it at first"
    small = world.jobs.submit(conversion("small", 1, workers=RETRIES))
    world.go.release()
    assert world.next() == {"small": 1, "large": 1}
    assert small.result(60) == (DONE,)
    assert world.next() == {"large": 1}
    assert world.next() == {"large": 1}
    assert first.result(60) == (DONE,) * 4
    assert begun == ["large"]
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_slow_conversions_end_one_after_the_other() -> None:
    """Each commits before its files are too old."""
    world = Parts()
    sizes = [128 << 20] * 3
    first = world.jobs.submit(conversion("first", *sizes, workers=Workers.SLOW))
    assert world.parts.get(timeout=60) == {"first": 1}
    second = world.jobs.submit(conversion("second", *sizes, workers=Workers.SLOW))
    world.go.release()
    assert [list(world.next()) for _ in range(2)] == [["first"], ["first"]]
    assert first.result(60) == (DONE,) * 3
    assert [list(world.next()) for _ in range(3)] == [["second"]] * 3
    assert second.result(60) == (DONE,) * 3


def test_a_slow_pack_ends_its_conversion_alone() -> None:
    world = Parts(lambda name, pack: SlowPack(120.0) if name == "slow" else DONE)
    slow = world.jobs.submit(conversion("slow", 1, 128 << 20, workers=RETRIES))
    good = world.jobs.submit(conversion("good", 1, workers=RETRIES))
    world.go.release(2)
    assert good.result(60) == (DONE,)
    with pytest.raises(SlowError, match="120 s"):
        slow.result(60)


def test_a_pack_that_was_not_begun_waits_for_the_next_job() -> None:
    outcomes = iter([None, None, DONE, DONE])
    world = Parts(lambda name, pack: next(outcomes))
    one = world.jobs.submit(conversion("one", 1, 1, workers=RETRIES))
    assert world.next() == {"one": 2}
    assert world.next() == {"one": 2}
    assert one.result(60) == (DONE, DONE)


def test_a_stop_ends_a_conversion_between_two_jobs() -> None:
    world = Parts()
    large = world.jobs.submit(conversion("large", *[128 << 20] * 4, workers=RETRIES))
    assert world.parts.get(timeout=60) == {"large": 1}
    world.jobs.stop()
    world.go.release()
    assert isinstance(large.exception(60), StoppedError)


def test_what_comes_as_a_worker_ends_is_not_left_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pause is over, and it does not have the lock yet: it hears of nothing."""
    late: Queue[Future[tuple[ConvertedPack, ...]]] = Queue()
    # Once: the worker may pause again when pytest has begun the next test.
    coming = [conversion("late", 1, workers=RETRIES)]

    class Pauses(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            notified = super().wait(timeout)
            if not notified and coming:
                late.put(jobs.submit(coming.pop()))
            return notified

    with monkeypatch.context() as patched:
        patched.setattr(threading, "Condition", Pauses)
        jobs = ConversionJobs(lambda: None, _nothing, idle=0.01)
    assert jobs.submit(conversion("early", 1, workers=RETRIES)).result(60) == (DONE,)
    assert late.get(timeout=60).result(60) == (DONE,)


_LOOK = """
import gc, json, sys, threading
from offloader.convert.worker_daemon import preload

preload()
print(json.dumps({
    "frozen": gc.get_freeze_count(),
    "collected_again": len(gc.get_objects()),
    "threads": threading.active_count(),
    "modules": sorted(sys.modules),
}))
"""


def test_workers_begin_with_everything_imported_and_out_of_the_collectors_sight() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOOK], check=True, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.count("\n") == 1, "Spark reads a port from there, and nothing else"
    found = json.loads(done.stdout)
    assert {"pyspark.worker", "offloader.convert.pack_task", "numba"} <= set(found["modules"])
    assert found["threads"] == 1, "a forked worker would not have it"
    assert found["frozen"] > 50 * found["collected_again"]
