"""The scheduler, with turns that do nothing but wait: who runs, and who hears."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from queue import Queue
from typing import Any

import pytest

from offloader.config import OffloadConfig
from offloader.model import Clocks
from offloader.model.observation import Discovery, Observation
from offloader.model.stopping import StoppedError
from offloader.model.turn import Committed, TaskCallback, Turn, Workers
from offloader.schedule import Rounds
from offloader.schedule.lanes import LANES, TurnKind
from offloader.schedule.queue import TopicQueue
from offloader.schedule.scheduler import Scheduler
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from tests.support.backlogs import backlog_of

A, B = (Topic("public", "default", name) for name in "ab")
AT = 1_000_000.0
OBSERVATIONS, TURNS = (LANES[TurnKind(one, Workers.HEALTHY)][1] for one in (True, False))
DONE = Committed(version=1, ledgers=1, files=1, rows=1, bytes=1, seconds=0.0, reason="test")


def turn_of(topic: Topic, *, committed: bool = False, more: bool = False) -> Turn:
    return Turn(topic, DONE if committed else None, (), more, Observation(AT, backlog_of(at=AT)))


Turning = Callable[[Topic, bool, TaskCallback], Turn]


class World:
    """Topics that exist, and what their turns do; ``said`` is what came of them."""

    def __init__(self, *topics: Topic) -> None:
        self.topics: dict[Topic, tuple[Partition, ...]] = dict.fromkeys(topics, ())
        self.running = 0
        self.most = 0
        self.turns: list[tuple[Topic, bool]] = []
        self.said: list[tuple[Topic, object]] = []
        self.work: Turning = lambda topic, now, progress: turn_of(topic)
        self.hold_one: Callable[[Partition], object] = lambda partition: None
        self._lock = threading.Lock()

    def discover(self) -> Discovery:
        return Discovery(dict(self.topics), {})

    def turn(self, topic: Topic, *, now: bool, workers: Workers, progress: TaskCallback) -> Turn:
        with self._counted(topic, observes=False):
            return self.work(topic, now, progress)

    def observe(self, topic: Topic, *, now: bool) -> Turn:
        with self._counted(topic, observes=True):
            return turn_of(topic, more=True)

    def hold(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        for one in partitions:
            self.hold_one(one)

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


def scheduler(world: World, *, always: bool = False, **more: Any) -> Scheduler:
    """Its clock stands still: one round, and no topic becomes due by time."""
    queue = TopicQueue(OffloadConfig(interval=timedelta(seconds=60)), always=always)
    given: dict[str, Any] = {"ended": world.ended, "clocks": Clocks(elapsed=lambda: AT)} | more
    discover = given.pop("discover", world.discover)
    return Scheduler(queue, discover, world, Rounds(60.0, wake_seconds=0.01), **given)


@contextmanager
def running(made: Scheduler) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=made.run, args=(over.is_set,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
        assert not thread.is_alive()


def test_a_request_has_progress_and_a_result() -> None:
    world = World(A, B)
    told, go = threading.Event(), threading.Event()
    commits = iter([True, False])

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        assert now
        progress(1, 3)
        told.set()
        assert go.wait(60)
        return turn_of(topic, committed=True, more=next(commits))

    world.work = work
    made = scheduler(world)
    request = made.request(A)
    with running(made):
        assert told.wait(60)
        assert request.progress.tasks == (1, 3)
        assert request.progress.state == "running"
        assert not request.done
        go.set()
        assert request.result(60).committed == (DONE, DONE), "until nothing is left"
        assert request.progress.state == "done"
    assert world.turns.count((A, True)) == 1, "observed first"


def test_turns_start_while_a_round_waits_for_pulsar() -> None:
    """The second round hangs: a request gets its turn, and what is found later is served."""
    world = World(A)
    hangs, go, found = threading.Event(), threading.Event(), threading.Event()
    now, rounds = [AT], [0]

    def discover() -> Discovery:
        rounds[0] += 1
        if rounds[0] == 2:
            hangs.set()
            assert go.wait(60)
        return Discovery(dict(world.topics), {})

    def ended(topic: Topic, result: object, retry_at: float) -> None:
        if topic == B:
            found.set()

    clocks = Clocks(elapsed=lambda: now[0])
    made = scheduler(world, discover=discover, ended=ended, clocks=clocks)
    with running(made):
        assert made.request(A).result(60) is not None
        beat = made.turned_at
        world.topics[B] = ()
        now[0] += 61.0
        assert hangs.wait(60)
        assert made.request(A).result(60) is not None
        assert not found.is_set()
        assert made.turned_at <= beat + 61.0, "who waits for Pulsar shows no life by other means"
        go.set()
        assert found.wait(60)
    assert rounds == [2]


def test_a_request_for_a_topic_that_is_not_served() -> None:
    world = World(A)
    made = scheduler(world)
    request = made.request(B)
    with running(made):
        assert request.result(60).committed == ()
        assert [one.topic for one in made.states()] == [A]


def test_a_failure_reaches_who_asked_and_holds_up_nobody() -> None:
    world = World(A, B)

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        if topic == A:
            raise UnavailableError("no bookie")
        return turn_of(topic, committed=True)

    world.work = work
    made = scheduler(world)
    # Before the first turn: one that has begun does not count for a request, which gets another.
    failing, fine = made.request(A), made.request(B)
    with running(made):
        with pytest.raises(UnavailableError, match="no bookie"):
            failing.result(60)
        assert fine.result(60).committed == (DONE,)
        [state] = [one for one in made.states() if one.topic == A]
        assert state.failures == 1
        assert state.next_at is not None


def test_turns_run_side_by_side_up_to_a_limit_and_one_a_topic() -> None:
    topics = [Topic("t", "n", f"topic-{n}") for n in range(3 * TURNS)]
    world = World(*topics)
    all_at_once = threading.Barrier(TURNS, timeout=60)
    begun: list[Topic] = []
    lock = threading.Lock()

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        with lock:
            begun.append(topic)
            first = len(begun) <= TURNS
        if first:
            all_at_once.wait()
        return turn_of(topic)

    world.work = work
    made = scheduler(world)
    requests = [made.request(topic) for topic in topics for _ in range(2)]
    with running(made):
        for one in requests:
            one.result(60)
    assert len(set(begun[:TURNS])) == TURNS, "one a topic"
    assert TURNS <= world.most <= TURNS + OBSERVATIONS


def test_a_new_partition_is_held_beside_its_topics_turn() -> None:
    world = World(A)
    began, go, held = threading.Event(), threading.Event(), Queue[Partition]()
    parts = tuple(Partition(A, index) for index in range(3))

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        began.set()
        assert go.wait(60)
        return turn_of(topic)

    def hold_one(partition: Partition) -> None:
        held.put(partition)
        if partition == parts[1]:
            assert go.wait(60)  # it does not answer

    world.topics[A] = parts[:1]
    made = scheduler(world)
    made.round()
    world.work, world.hold_one = work, hold_one
    request = made.request(A)
    with running(made):
        assert began.wait(60)
        made.round()
        world.topics[A] = parts[:2]
        for _ in range(2 * OBSERVATIONS):
            made.round()
        assert held.get(timeout=60) == parts[1]
        world.topics[A] = parts
        made.round()
        assert held.get(timeout=60) == parts[2]
        go.set()
        request.result(60)
    assert held.empty(), "one that does not answer is asked once, and those that are known never"
    assert world.turns.count((A, True)) == 1
    made.round()
    [again] = made.states()
    assert again.observation is None, "its turn did not see them"


def test_a_stop_waits_for_turns_and_tells_who_still_waits() -> None:
    world = World(A)
    began, stopping, go = threading.Event(), threading.Event(), threading.Event()

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        began.set()
        assert go.wait(60)
        return turn_of(topic, committed=True)

    def until() -> bool:
        if began.is_set():
            stopping.set()
        return began.is_set()

    world.work = work
    made = scheduler(world)
    thread = threading.Thread(target=made.run, args=(until,))
    first = made.request(A)
    thread.start()
    assert began.wait(60)
    second = made.request(A)
    assert stopping.wait(60)
    assert thread.is_alive()
    go.set()
    thread.join(60)
    assert first.result(0).committed == (DONE,)
    for late in (second, made.request(A)):
        with pytest.raises(StoppedError):
            late.result(0)


def broken(*args: object) -> None:
    raise BrokenPipeError("nobody reads")


def test_nobody_who_is_told_stops_a_turn_or_the_others() -> None:
    world = World(A, B)
    told: list[str] = []

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        progress(1, 2)
        if topic == B:
            raise UnavailableError("no answer")
        return turn_of(topic, committed=True)

    world.work = work
    made = scheduler(world, ended=broken, moved=broken)
    requests = [made.request(A), made.request(B)]
    for one in requests:
        one.when_done(broken)
        one.when_done(lambda: told.append("done"))
    with running(made):
        assert requests[0].result(60).committed == (DONE,)
        with pytest.raises(UnavailableError):
            requests[1].result(60)
        again = made.request(A)
        assert again.result(60).committed == (DONE,)
    again.when_done(broken)
    assert told == ["done", "done"]
    assert [one.running for one in made.states()] == [False, False]


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


@pytest.mark.parametrize("hours", [-8, 8])
def test_a_clock_that_is_set_stops_no_round(hours: int) -> None:
    """A host boots with a wrong clock, and NTP sets it right."""
    world = World(A)
    time = {"clock": AT, "monotonic": 10.0}
    clocks = Clocks(lambda: int(time["clock"] * 1000), lambda: time["monotonic"])
    made = scheduler(world, always=True, discover=lambda: discover(), clocks=clocks)
    rounds, is_set = 0, False

    def discover() -> Discovery:
        nonlocal rounds
        rounds += 1
        return world.discover()

    def until() -> bool:
        nonlocal is_set
        time["monotonic"] += 61
        if rounds == 3 and not is_set:
            is_set = True
            time["clock"] += hours * 3600
            world.topics[B] = ()
        return (B, True) in world.turns

    made.run(until)
    assert rounds > 3


def test_topics_that_fail_occupy_no_slot_of_the_others() -> None:
    """More of them than there are slots hang in their turns; the others' turns go on."""
    bad = [Topic("t", "n", f"bad-{n}") for n in range(2 * TURNS)]
    world = World(A, *bad)
    go = threading.Event()
    tried: set[Topic] = set()

    def work(topic: Topic, now: bool, progress: TaskCallback) -> Turn:
        if topic in bad:
            if topic in tried:
                assert go.wait(60)
            tried.add(topic)
            raise UnavailableError("the bookies are silent")
        return turn_of(topic)

    world.work = work
    made = scheduler(world)
    first = [made.request(topic) for topic in bad]
    with running(made):
        for one in first:
            with pytest.raises(UnavailableError):
                one.result(60)
        again = [made.request(topic) for topic in bad]
        for _ in range(5):
            made.request(A).result(60)
        assert (
            sum(one.running for one in made.states()) == LANES[TurnKind(False, Workers.RETRIES)][0]
        )
        go.set()
        for one in again:
            with pytest.raises(UnavailableError):
                one.result(60)
