"""The scheduler and its jobs, with turns that do nothing but wait: who runs, and who hears."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from offloader.config import Config, OffloadConfig
from offloader.convert.conversion import Converted, Job, Outcome, Work, _share_out
from offloader.convert.jobs import LANES, Jobs, take
from offloader.model.due import COMMIT_BYTES
from offloader.model.observation import Discovery, Observation
from offloader.model.stopping import StoppedError
from offloader.model.turn import Committed, TaskCallback, Turn
from offloader.schedule.queue import TopicQueue
from offloader.schedule.scheduler import OBSERVATIONS, TURNS, Scheduler
from reader.errors import PulsarLakeError, UnavailableError
from reader.model import Partition, Topic
from reader.model.reasons import Reason, TierReason
from reader.plan.splits import Split
from reader.sources.rows import RowFormat

A, B = (Topic("public", "default", name) for name in "ab")
DONE = Committed(version=1, ledgers=1, files=1, rows=1, bytes=1, seconds=0.0, reason="test")


def turn_of(topic: Topic, *, committed: bool = False, more: bool = False) -> Turn:
    return Turn(topic, DONE if committed else None, (), more, Observation(time.time(), {}, {}))


Turning = Callable[[Topic, bool, TaskCallback], Turn]


class World:
    """Topics that exist, and what their turns do; ``said`` is what came of them."""

    def __init__(self, *topics: Topic) -> None:
        self.topics = topics
        self.rounds = 0
        self.running = 0
        self.most = 0
        self.turns: list[tuple[Topic, bool]] = []
        self.said: list[tuple[Topic, object]] = []
        self.work: Turning = lambda topic, now, progress: turn_of(topic)
        self._lock = threading.Lock()

    def discover(self) -> Discovery:
        self.rounds += 1
        return Discovery(dict.fromkeys(self.topics, ()), {})

    def turn(
        self, topic: Topic, *, now: bool, urgency: float, suspect: bool, progress: TaskCallback
    ) -> Turn:
        with self._counted(topic, observes=False):
            return self.work(topic, now, progress)

    def observe(self, topic: Topic, *, now: bool) -> Turn:
        with self._counted(topic, observes=True):
            return turn_of(topic, more=True)

    @contextmanager
    def _counted(self, topic: Topic, *, observes: bool) -> Iterator[None]:
        with self._lock:
            self.turns.append((topic, observes))
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1

    def ended(self, topic: Topic, result: object, retry_at: float) -> None:
        self.said.append((topic, result))


def scheduler(world: World, **options: Any) -> Scheduler:
    config = OffloadConfig(interval=timedelta(milliseconds=50))
    return Scheduler(
        TopicQueue(config), world.discover, world, interval=0.05, ended=world.ended, **options
    )


@contextmanager
def running(made: Scheduler) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=made.run, args=(over.is_set,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(20)
        assert not thread.is_alive()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_request_has_progress_and_a_result() -> None:
    world = World(A, B)
    go = threading.Event()
    commits = iter([True, False])

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        assert now
        progress(1, 3)
        assert go.wait(10)
        return turn_of(topic, committed=True, more=next(commits))

    world.work = work
    made = scheduler(world)
    request = made.request(A)
    with running(made):
        until(lambda: request.progress.tasks == (1, 3))
        assert request.progress.state == "running"
        assert not request.done
        go.set()
        assert request.result(10).committed == (DONE, DONE), "until nothing is left"
        assert request.progress.state == "done"
    assert world.turns.count((A, True)) == 1, "observed first"


def test_a_request_for_a_topic_that_is_not_served() -> None:
    world = World(A)
    made = scheduler(world)
    with running(made):
        assert made.request(B).result(10).committed == ()
        until(lambda: [one.topic for one in made.states()] == [A])


def test_a_failure_reaches_who_asked_and_holds_up_nobody() -> None:
    world = World(A, B)

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        if topic == A:
            raise UnavailableError("no bookie")
        return turn_of(topic, committed=True)

    world.work = work
    made = scheduler(world)
    with running(made):
        failing, fine = made.request(A), made.request(B)
        with pytest.raises(UnavailableError, match="no bookie"):
            failing.result(10)
        assert fine.result(10).committed == (DONE,)
        [state] = [one for one in made.states() if one.topic == A]
        assert state.failures == 1
        assert state.next_at is not None


def test_turns_run_side_by_side_up_to_a_limit_and_one_a_topic() -> None:
    topics = [Topic("t", "n", f"topic-{n}") for n in range(3 * TURNS)]
    world = World(*topics)

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        time.sleep(0.02)
        return turn_of(topic)

    world.work = work
    made = scheduler(world)
    with running(made):
        for one in [made.request(topic) for topic in topics for _ in range(2)]:
            one.result(20)
    assert OBSERVATIONS < world.most <= TURNS + OBSERVATIONS


def test_a_stop_waits_for_turns_and_tells_who_still_waits() -> None:
    world = World(A)
    began, go = threading.Event(), threading.Event()

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        began.set()
        assert go.wait(10)
        return turn_of(topic, committed=True)

    world.work = work
    made = scheduler(world)
    over = threading.Event()
    thread = threading.Thread(target=made.run, args=(over.is_set,))
    first = made.request(A)
    thread.start()
    assert began.wait(10)
    second = made.request(A)
    over.set()
    time.sleep(0.1)
    assert thread.is_alive()
    go.set()
    thread.join(10)
    assert first.result(0).committed == (DONE,)
    for late in (second, made.request(A)):
        with pytest.raises(StoppedError):
            late.result(0)


def test_what_is_fatal_ends_the_run() -> None:
    class DeadError(Exception):
        pass

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        raise DeadError

    world = World(A)
    world.work = work
    made = scheduler(world, is_fatal=lambda error: isinstance(error, DeadError))
    made.request(A)
    with pytest.raises(DeadError):
        made.run(lambda: False)


# -- jobs --------------------------------------------------------------------------------------


def work_of(name: str, *sizes: int, urgency: float = 0.0, suspect: bool = False) -> Work:
    topic = Topic("public", "default", name)
    why = TierReason(Reason.SEALED)
    packs = tuple(
        (Split(Partition(topic, -1), n, 0, 9, "bookkeeper", why, "sealed", size, None, True),)
        for n, size in enumerate(sizes)
    )
    job = Job(Config(), topic, cast(RowFormat, None), ())
    return Work(job, packs, urgency, suspect)


def test_a_lane_takes_the_most_urgent_up_to_a_size() -> None:
    gib = 1 << 30
    works = [work_of("a", gib), work_of("b", 3 * gib, urgency=2), work_of("c", gib, urgency=1)]
    assert take(works, 0) == [1, 2]
    assert take([work_of("a", 9 * gib)], 0) == [0], "at least one"


def test_who_failed_waits_for_the_last_lane_and_runs_alone() -> None:
    bad = [work_of("a", 1, suspect=True), work_of("b", 1, suspect=True)]
    assert take(bad, 0) == []
    assert take(bad, LANES - 1) == [0]
    assert take([*bad, work_of("c", 1)], LANES - 1) == [2]


def test_small_topics_share_spark_tasks_and_large_packs_do_not() -> None:
    works = [work_of(f"t{n}", 1000) for n in range(50)] + [work_of("big", 64 << 20, 64 << 20)]
    tasks = _share_out(works, 2)
    assert len(tasks) == 2 + 8
    assert [len(task) for task in tasks[:2]] == [1, 1]
    assert sorted((work, pack) for task in tasks for work, pack, _ in task) == [
        *((n, 0) for n in range(50)),
        (50, 0),
        (50, 1),
    ]


def test_what_waits_together_is_one_job() -> None:
    go = threading.Event()
    sizes: list[int] = []

    def run(context: object, works: Sequence[Work], pool: str) -> list[Outcome]:
        sizes.append(len(works))
        assert go.wait(10)
        return [() for _ in works]

    jobs = Jobs(lambda: cast(Any, None), run)
    threads = [
        threading.Thread(target=jobs.convert, args=(work_of(f"t{n}", 1),)) for n in range(20)
    ]
    for number, thread in enumerate(threads):
        thread.start()
        if number < LANES:
            until(lambda begun=number: len(sizes) > begun)  # type: ignore[misc]
    time.sleep(0.1)
    go.set()
    for thread in threads:
        thread.join(10)
    assert (sum(sizes), len(sizes)) == (20, LANES + 1)
    assert jobs.count == len(sizes)


def test_one_that_breaks_a_job_fails_alone() -> None:
    def run(context: object, works: Sequence[Work], pool: str) -> list[Outcome]:
        time.sleep(0.05)
        names = [work.job.topic.name for work in works]
        if "bad" in names:
            raise RuntimeError("a worker died")
        return [UnavailableError("its own") if name == "own" else () for name in names]

    jobs = Jobs(lambda: cast(Any, None), run)
    came: dict[str, object] = {}

    def convert(name: str) -> None:
        try:
            came[name] = jobs.convert(work_of(name, 1))
        except (RuntimeError, PulsarLakeError) as error:
            came[name] = str(error)

    names = ["first", "second", "bad", "own", "good"]
    threads = [threading.Thread(target=convert, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    nothing: tuple[Converted, ...] = ()
    assert came == {
        "first": nothing,
        "second": nothing,
        "good": nothing,
        "bad": "a worker died",
        "own": "its own",
    }


def test_a_stop_begins_no_job() -> None:
    go, began = threading.Event(), threading.Event()

    def run(context: object, works: Sequence[Work], pool: str) -> list[Outcome]:
        began.set()
        assert go.wait(10)
        return [() for _ in works]

    jobs = Jobs(lambda: cast(Any, None), run)
    came: list[object] = []

    def convert(name: str) -> None:
        try:
            came.append(jobs.convert(work_of(name, COMMIT_BYTES)))
        except StoppedError as error:
            came.append(error)

    threads = [threading.Thread(target=convert, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    assert began.wait(10)
    time.sleep(0.1)
    jobs.stop()
    go.set()
    for thread in threads:
        thread.join(10)
    assert any(one == () for one in came), "what has begun is finished"
    assert any(isinstance(one, StoppedError) for one in came)
    with pytest.raises(StoppedError):
        jobs.convert(work_of("late", 1))
