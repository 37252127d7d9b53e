"""Conversions that wait together, in jobs that do nothing: what runs with what, and who fails."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Queue

import pyarrow as pa
import pytest

from offloader.config import Config
from offloader.convert.conversion import (
    Conversion,
    ConversionOutcome,
    ConversionSpec,
    ConvertedPack,
)
from offloader.convert.jobs import WORKERS, ConversionJobs, how_many
from offloader.convert.spark_job import share_out
from offloader.model.due import COMMIT_BYTES
from offloader.model.stopping import StoppedError
from reader.errors import PulsarLakeError, UnavailableError
from reader.model import Partition, Split, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.sources.rows import RowFormat

ROWS = RowFormat(pa.schema([]), (), pa.schema([]))


def conversion(name: str, *sizes: int, suspect: bool = False) -> Conversion:
    topic = Topic("public", "default", name)
    why = TierReason(Reason.SEALED)
    packs = tuple(
        (Split(Partition(topic, -1), n, 0, 9, Tier.BOOKKEEPER, why, "sealed", size, None, True),)
        for n, size in enumerate(sizes)
    )
    return Conversion(ConversionSpec(Config(), topic, ROWS, ()), packs, suspect)


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
        assert self.go.wait(10)
        return self._outcome(names)

    def submit(self, *names: str, size: int = 1) -> list[Future[tuple[ConvertedPack, ...]]]:
        """Conversions of topics with these names; each worker is given one of the first."""
        found = []
        for number, name in enumerate(names):
            found.append(self.jobs.submit(conversion(name, size)))
            if number < WORKERS:
                assert self._begun.acquire(timeout=10)
        return found


def nothing(names: Sequence[str]) -> list[ConversionOutcome]:
    return [() for _ in names]


def test_a_job_takes_what_has_waited_longest_up_to_a_size() -> None:
    gib = 1 << 30
    assert how_many([gib, 3 * gib, gib]) == 2
    assert how_many([9 * gib, 1]) == 1, "at least one"
    assert how_many([]) == 0


def test_a_topic_whose_last_turn_failed_keeps_no_healthy_topic_waiting() -> None:
    """And is converted, however many healthy topics wait."""
    go = {name: threading.Event() for name in ("healthy", "bad")}
    begun: Queue[str] = Queue()

    def run(
        context: None, conversions: Sequence[Conversion], *, pool: str
    ) -> list[ConversionOutcome]:
        name = "bad" if conversions[0].suspect else "healthy"
        assert all(one.suspect == conversions[0].suspect for one in conversions)
        begun.put(name)
        assert go[name].wait(10)
        return [() for _ in conversions]

    jobs = ConversionJobs(lambda: None, run)
    healthy = [jobs.submit(conversion(f"t{n}", COMMIT_BYTES)) for n in range(3 * WORKERS)]
    bad = [jobs.submit(conversion(f"bad{n}", COMMIT_BYTES, suspect=True)) for n in range(2)]
    assert sorted(begun.get(timeout=10) for _ in range(WORKERS + 1)) == [
        "bad",
        "healthy",
        "healthy",
    ]
    go["healthy"].set()
    assert [one.result(10) for one in healthy] == [()] * len(healthy)
    assert not any(one.done() for one in bad)
    go["bad"].set()
    assert [one.result(10) for one in bad] == [(), ()]


def test_topics_that_failed_leave_half_of_the_cores() -> None:
    many = [conversion(f"t{n}", 64 << 20, 1000, suspect=True) for n in range(5)]
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


def test_what_waits_together_is_one_job() -> None:
    world = World(nothing)
    results = world.submit(*(f"t{n}" for n in range(20)))
    world.go.set()
    assert [one.result(10) for one in results] == [()] * 20
    sizes = [len(names) for names in world.names]
    assert (sum(sizes), len(sizes)) == (20, WORKERS + 1)
    assert world.jobs.count == len(sizes)


def test_one_that_breaks_a_job_fails_alone() -> None:
    def outcome(names: Sequence[str]) -> list[ConversionOutcome]:
        if "bad" in names:
            raise RuntimeError("a worker died")
        return [UnavailableError("its own") if name == "own" else () for name in names]

    world = World(outcome)
    names = ["first", "second", "bad", "own", "good"]
    results = dict(zip(names, world.submit(*names), strict=True))
    world.go.set()
    came: dict[str, object] = {}
    for name, one in results.items():
        try:
            came[name] = one.result(10)
        except (RuntimeError, PulsarLakeError) as error:
            came[name] = str(error)
    assert came == {
        "first": (),
        "second": (),
        "good": (),
        "bad": "a worker died",
        "own": "its own",
    }
    assert ["bad", "own", "good"] in world.names, "it was tried with the others at first"


def test_a_stop_begins_no_job() -> None:
    world = World(nothing)
    results = world.submit(*(f"t{n}" for n in range(8)), size=COMMIT_BYTES)
    world.jobs.stop()
    world.go.set()
    assert [one.result(10) for one in results[:WORKERS]] == [()] * WORKERS, (
        "what has begun is finished"
    )
    assert all(isinstance(one.exception(10), StoppedError) for one in results[WORKERS:])
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
        return [() for _ in conversions]

    lingering = ConversionJobs(lambda: None, run, linger=3600)
    results = [lingering.submit(conversion(f"t{n}", 1)) for n in range(3)]
    results.append(lingering.submit(conversion("large", 64 << 20)))
    assert [one.result(10) for one in results] == [()] * 4
    assert jobs == [4]


def test_a_small_job_waits_no_longer_than_it_is_said() -> None:
    begun = time.monotonic()
    lingering = ConversionJobs(lambda: None, _nothing, linger=0.1)
    assert lingering.submit(conversion("small", 1)).result(10) == ()
    assert time.monotonic() - begun >= 0.1


def test_a_large_job_waits_for_no_company() -> None:
    lingering = ConversionJobs(lambda: None, _nothing, linger=3600)
    assert lingering.submit(conversion("large", 64 << 20)).result(10) == ()


def test_a_stop_waits_for_no_company() -> None:
    lingering = ConversionJobs(lambda: None, _nothing, linger=3600)
    waiting = lingering.submit(conversion("small", 1))
    lingering.stop()
    assert isinstance(waiting.exception(10), StoppedError)


def _nothing(
    context: None, conversions: Sequence[Conversion], *, pool: str
) -> list[ConversionOutcome]:
    return [() for _ in conversions]


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
