"""The thread of maintenance, and Iceberg's: who is next, and nobody's failure stops the others."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from offloader.maintenance import GROWTH
from offloader.model import Clocks
from offloader.model.maintenance_result import MaintenanceResult
from offloader.model.stopping import StoppedError
from offloader.service.topic_worker import TopicWorker, WorkPace
from reader.errors import UnavailableError
from reader.model import Topic

ONE, TWO = Topic("a", "b", "one"), Topic("a", "b", "two")


class Told:
    """What the worker said of each turn, and a wait for more of it."""

    def __init__(self) -> None:
        self.turns: list[tuple[Topic, MaintenanceResult | Exception, float]] = []
        self._changed = threading.Condition()

    def __call__(self, topic: Topic, result: MaintenanceResult | Exception, next_at: float) -> None:
        with self._changed:
            self.turns.append((topic, result, next_at))
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 60), self.turns

    def count(self, topic: Topic) -> int:
        return sum(one == topic for one, _, _ in self.turns)


def worker_of(
    work: Callable[[Topic], MaintenanceResult],
    ended: Callable[[Topic, MaintenanceResult | Exception, float], None],
    **given: Any,
) -> TopicWorker[MaintenanceResult]:
    """As maintenance has it, unless ``given`` says otherwise."""
    paces = {one: given.pop(one) for one in WorkPace.__slots__ if one in given}
    pace = WorkPace(**{"files": GROWTH, **paces})
    return TopicWorker(work, ended, name="maintenance", pace=pace, wake_seconds=0.01, **given)


def by(now: list[float]) -> Clocks:
    """Return the clocks of a test, which moves ``now`` (s)."""
    return Clocks(lambda: int(now[0] * 1000), lambda: now[0])


@contextmanager
def started(worker: TopicWorker[MaintenanceResult], *topics: Topic) -> Iterator[None]:
    """A worker with these topics, whose thread runs within the block."""
    worker.serve(topics)
    worker.start()
    yield
    worker.stop()


def test_each_topic_gets_turns_and_a_failing_one_hinders_none() -> None:
    told = Told()

    def maintain(topic: Topic) -> MaintenanceResult:
        if topic == ONE:
            raise UnavailableError("no storage")
        return MaintenanceResult(topic, 1)

    worker = worker_of(maintain, told, interval=0.05, jitter=lambda: 0.0)
    with started(worker, ONE, TWO):
        told.wait_for(lambda: told.count(TWO) >= 3 and told.count(ONE) >= 1)
    assert all(isinstance(result, Exception) == (topic == ONE) for topic, result, _ in told.turns)


def test_the_next_turn() -> None:
    """After the interval; at once where there is more; later and later after failures."""
    told = Told()
    answers: list[MaintenanceResult | Exception] = [
        MaintenanceResult(ONE, 1, more=True),
        MaintenanceResult(ONE, 2),
        UnavailableError("once"),
        ValueError("twice"),
    ]
    now = [1000.0]

    def maintain(topic: Topic) -> MaintenanceResult:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    worker = worker_of(maintain, told, interval=100.0, clocks=by(now), jitter=lambda: 1.0)
    with started(worker, ONE):
        now[0] = 1100.0
        told.wait_for(lambda: len(told.turns) == 2)
        assert [at for _, _, at in told.turns] == [1100.0, 1200.0]
        now[0] = 1200.0
        told.wait_for(lambda: len(told.turns) == 3)
        now[0] = 1300.0
        told.wait_for(lambda: len(told.turns) == 4)
    assert [at for _, _, at in told.turns[2:]] == [1300.0, 1500.0]


def test_a_clock_that_is_set_back_stops_no_turn() -> None:
    told = Told()
    now, clock = [50.0], [90_000.0]
    worker = worker_of(
        lambda topic: MaintenanceResult(topic, 1),
        told,
        interval=100.0,
        clocks=Clocks(lambda: int(clock[0] * 1000), lambda: now[0]),
        jitter=lambda: 1.0,
    )
    with started(worker, ONE):
        clock[0], now[0] = 61_200.0, 150.0
        told.wait_for(lambda: len(told.turns) == 1)
        clock[0], now[0] = 61_300.0, 250.0
        told.wait_for(lambda: len(told.turns) == 2)
    assert [at for _, _, at in told.turns] == [61_300.0, 61_400.0], "for people, by their clock"


def test_many_new_files_are_a_reason() -> None:
    told = Told()
    worker = worker_of(
        lambda topic: MaintenanceResult(topic, 1), told, interval=3600.0, jitter=lambda: 1.0
    )
    with started(worker, ONE, TWO):
        worker.committed(ONE, 5)
        worker.committed(TWO, 7)
        worker.committed(Topic("a", "b", "unknown"), 100)
        worker.committed(ONE, 3)
        told.wait_for(lambda: len(told.turns) == 1)
    assert [topic for topic, _, _ in told.turns] == [ONE]


def test_files_that_come_during_a_turn_are_a_reason_for_another() -> None:
    told = Told()
    counts = [8, 7]

    def maintain(topic: Topic) -> MaintenanceResult:
        worker.committed(topic, counts.pop(0))
        return MaintenanceResult(topic, 1)

    worker = worker_of(
        maintain,
        told,
        interval=3600.0,
        clocks=Clocks(lambda: 5_000_000, lambda: 5000.0),
        jitter=lambda: 0.0,
    )
    with started(worker, ONE):
        told.wait_for(lambda: len(told.turns) == 2)
    assert [at for _, _, at in told.turns] == [5000.0, 8600.0]


def test_an_operator_who_cannot_be_told_stops_nothing() -> None:
    told = Told()

    def ended(topic: Topic, result: MaintenanceResult | Exception, next_at: float) -> None:
        told(topic, result, next_at)
        raise BrokenPipeError

    worker = worker_of(
        lambda topic: MaintenanceResult(topic, 1), ended, interval=0.01, jitter=lambda: 0.0
    )
    with started(worker, ONE):
        told.wait_for(lambda: len(told.turns) >= 2)


def test_a_stop_ends_the_turn_that_runs() -> None:
    told, begun, requested = Told(), threading.Event(), threading.Event()

    def maintain(topic: Topic) -> MaintenanceResult:
        worker.raise_if_stopped()
        begun.set()
        assert requested.wait(60)
        worker.raise_if_stopped()
        raise AssertionError("it goes on after a stop")

    worker = worker_of(maintain, told, interval=0.01, jitter=lambda: 0.0)
    worker.serve([ONE])
    worker.start()
    assert begun.wait(60)
    worker.request_stop()
    requested.set()
    worker.stop()
    assert told.turns == [], "a turn that was stopped has not failed"
    with pytest.raises(StoppedError):
        worker.raise_if_stopped()


def test_an_interval_of_nothing_switches_it_off() -> None:
    told = Told()
    worker = worker_of(lambda topic: MaintenanceResult(topic, 1), told, interval=0.0)
    before = set(threading.enumerate())
    with started(worker, ONE):
        assert set(threading.enumerate()) <= before, "others may end meanwhile"


def test_one_that_follows_begins_soon_and_tries_again_soon() -> None:
    """However long its interval is."""
    told = Told()
    now = [1000.0]

    def fail(topic: Topic) -> MaintenanceResult:
        raise UnavailableError("no catalog")

    worker = worker_of(
        fail,
        told,
        interval=3600.0,
        within=5.0,
        pause=10.0,
        files=1,
        clocks=by(now),
        jitter=lambda: 1.0,
    )
    with started(worker, ONE):
        now[0] = 1005.0
        told.wait_for(lambda: len(told.turns) == 1)
        now[0] = 1015.0
        told.wait_for(lambda: len(told.turns) == 2)
    assert [at for _, _, at in told.turns] == [1015.0, 1035.0]


def test_a_stop_does_not_wait_for_what_hangs() -> None:
    hanging, go = threading.Event(), threading.Event()

    def hang(topic: Topic) -> MaintenanceResult:
        hanging.set()
        go.wait(60)
        return MaintenanceResult(topic, 1)

    worker = worker_of(hang, Told(), interval=0.01, jitter=lambda: 0.0)
    with started(worker, ONE):
        assert hanging.wait(60)
        worker.stop(patience=0.01)
        go.set()


def test_of_many_new_topics_the_first_turns_are_spread() -> None:
    """Hundreds at a start: they come one by one, and a commit's turn waits for none of them."""
    told = Told()
    topics = [Topic("a", "b", str(n)) for n in range(200)]
    now = [0.0]
    at = iter(range(200))
    worker = worker_of(
        lambda topic: MaintenanceResult(topic, 1),
        told,
        interval=3600.0,
        within=10.0,
        spread=1.0,
        files=1,
        clocks=by(now),
        jitter=lambda: next(at) / 200,
    )
    with started(worker, *topics):
        now[0] = 10.5
        told.wait_for(lambda: len(told.turns) == 11)
        worker.committed(topics[150], 1)
        told.wait_for(lambda: len(told.turns) == 12)
        worker.serve(topics)  # as each round does: what is known keeps its time
        now[0] = 199.0
        told.wait_for(lambda: len(told.turns) == 200)
    seen = [topic for topic, _, _ in told.turns]
    assert seen[:12] == [*topics[:11], topics[150]]
    assert set(seen) == set(topics)


def test_few_are_looked_at_soon_and_the_most_in_an_interval() -> None:
    told = Told()
    now = [0.0]
    worker = worker_of(
        lambda topic: MaintenanceResult(topic, 1),
        told,
        interval=100.0,
        within=10.0,
        spread=1.0,
        clocks=by(now),
        jitter=lambda: 1.0,
    )
    with started(worker, ONE, TWO):
        now[0] = 10.0
        told.wait_for(lambda: len(told.turns) == 2)
        worker.serve([ONE, TWO, *(Topic("a", "c", str(n)) for n in range(1000))])
        now[0] = 110.0
        told.wait_for(lambda: len(told.turns) >= 1002)
