"""Upkeep's own thread: who is next, and that nobody's failure stops the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from offloader.convert.jobs import StoppedError
from offloader.maintenance.maintain import UpkeepResult
from offloader.maintenance.worker import Lane
from reader.errors import UnavailableError
from reader.model import Topic

ONE, TWO = Topic("a", "b", "one"), Topic("a", "b", "two")


class Told:
    """What the lane said of each turn, and a wait for more of it."""

    def __init__(self) -> None:
        self.turns: list[tuple[Topic, UpkeepResult | Exception, float]] = []
        self._changed = threading.Condition()

    def __call__(self, topic: Topic, result: UpkeepResult | Exception, next_at: float) -> None:
        with self._changed:
            self.turns.append((topic, result, next_at))
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 60), self.turns

    def count(self, topic: Topic) -> int:
        return sum(one == topic for one, _, _ in self.turns)


def test_each_topic_gets_turns_and_a_failing_one_hinders_none() -> None:
    told = Told()

    def tend(topic: Topic) -> UpkeepResult:
        if topic == ONE:
            raise UnavailableError("no storage")
        return UpkeepResult(topic, 1)

    lane = Lane(tend, told, interval=0.05, jitter=lambda: 0.0)
    lane.serve([ONE, TWO])
    lane.start()
    told.wait_for(lambda: told.count(TWO) >= 3 and told.count(ONE) >= 1)
    lane.stop()
    assert all(isinstance(result, Exception) == (topic == ONE) for topic, result, _ in told.turns)


def test_the_next_turn() -> None:
    """After the interval; at once where there is more; later and later after failures."""
    told = Told()
    answers: list[UpkeepResult | Exception] = [
        UpkeepResult(ONE, 1, more=True),
        UpkeepResult(ONE, 2),
        UnavailableError("once"),
        ValueError("twice"),
    ]
    now = [1000.0]

    def tend(topic: Topic) -> UpkeepResult:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    lane = Lane(tend, told, interval=100.0, clock=lambda: now[0], jitter=lambda: 1.0)
    lane.serve([ONE])
    lane.start()
    now[0] = 1100.0
    told.wait_for(lambda: len(told.turns) == 2)
    assert [at for _, _, at in told.turns] == [1100.0, 1200.0]
    now[0] = 1200.0
    told.wait_for(lambda: len(told.turns) == 3)
    now[0] = 1300.0
    told.wait_for(lambda: len(told.turns) == 4)
    lane.stop()
    assert [at for _, _, at in told.turns[2:]] == [1300.0, 1500.0]


def test_many_new_files_are_a_reason() -> None:
    told = Told()
    lane = Lane(lambda topic: UpkeepResult(topic, 1), told, interval=3600.0, jitter=lambda: 1.0)
    lane.serve([ONE, TWO])
    lane.start()
    lane.committed(ONE, 5)
    lane.committed(TWO, 7)
    lane.committed(Topic("a", "b", "unknown"), 100)
    lane.committed(ONE, 3)
    told.wait_for(lambda: len(told.turns) == 1)
    lane.stop()
    assert [topic for topic, _, _ in told.turns] == [ONE]


def test_files_that_come_during_a_turn_are_a_reason_for_another() -> None:
    told = Told()
    counts = [8, 7]

    def tend(topic: Topic) -> UpkeepResult:
        lane.committed(topic, counts.pop(0))
        return UpkeepResult(topic, 1)

    lane = Lane(tend, told, interval=3600.0, clock=lambda: 5000.0, jitter=lambda: 0.0)
    lane.serve([ONE])
    lane.start()
    told.wait_for(lambda: len(told.turns) == 2)
    lane.stop()
    assert [at for _, _, at in told.turns] == [5000.0, 8600.0]


def test_an_operator_who_cannot_be_told_stops_nothing() -> None:
    told = Told()

    def ended(topic: Topic, result: UpkeepResult | Exception, next_at: float) -> None:
        told(topic, result, next_at)
        raise BrokenPipeError

    lane = Lane(lambda topic: UpkeepResult(topic, 1), ended, interval=0.01, jitter=lambda: 0.0)
    lane.serve([ONE])
    lane.start()
    told.wait_for(lambda: len(told.turns) >= 2)
    lane.stop()


def test_a_stop_ends_the_turn_that_runs() -> None:
    told, begun = Told(), threading.Event()

    def tend(topic: Topic) -> UpkeepResult:
        begun.set()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            lane.go_on()
            time.sleep(0.01)
        raise AssertionError("nobody stopped it")

    lane = Lane(tend, told, interval=0.01, jitter=lambda: 0.0)
    lane.serve([ONE])
    lane.start()
    assert begun.wait(60)
    lane.stop()
    assert told.turns == [], "a turn that was stopped has not failed"
    with pytest.raises(StoppedError):
        lane.go_on()


def test_an_interval_of_nothing_switches_it_off() -> None:
    told = Told()
    lane = Lane(lambda topic: UpkeepResult(topic, 1), told, interval=0.0)
    threads = threading.active_count()
    lane.serve([ONE])
    lane.start()
    assert threading.active_count() == threads
    lane.stop()
