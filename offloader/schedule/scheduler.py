"""Gives turns to all topics: who is next says the line, each turn has a thread of its own.

One loop, in the caller's thread (``run``):

1. every ``interval``, a *round*: Pulsar's lists say which topics there are, brokers' counts what
   was written to them (``Sight``). That is all that an idle round asks;
2. whenever a thread is free, the next ready topic of the line gets a turn (``line.py``): a new one
   a look first, which takes its hold and says how close to its limit it is;
3. what came of a turn goes back into the line: when to look again, or to try again.

Turns of different topics run side by side, wait for admin and storage each on its own, and meet
only where their ledgers are converted (``jobs.py``). A topic has one turn at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from offloader.convert.jobs import StoppedError
from offloader.schedule.observation import Look
from offloader.schedule.queue import Line, Place
from offloader.schedule.request import Request
from offloader.turn.topic_offloader import Turn
from reader.model import Partition, Topic
from reader.pulsar.admin import LoadedTopic

__all__ = ["LOOKS", "TURNS", "Scheduler", "Sight", "TopicState"]

TURNS = 32
"""Turns that may commit, at most, side by side; what waits together shares Spark jobs."""

LOOKS = 8
"""Turns that only look, beside them: a new topic's hold waits for no conversion."""

_SORT_SECONDS = 1.0
"""How old the order of the line may be when it is followed."""

_WAKE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Sight:
    """What a round sees: all topics that are to be served, with their partitions where known.

    ``loaded``: None where brokers do not say.
    """

    topics: Mapping[Topic, tuple[Partition, ...]]
    loaded: Mapping[str, LoadedTopic] | None


@dataclass(frozen=True, slots=True)
class TopicState:
    """One topic in the line, for those who watch. Times in seconds since the epoch.

    ``share``: how close to its limit (1.0: there), None before the first look. ``next_at``: its
    next turn, None while it runs. ``look``: the last one, if any; ``written``: bytes since then.
    """

    topic: Topic
    share: float | None
    running: bool
    failures: int
    next_at: float | None
    look: Look | None
    written: int


class Turns(Protocol):
    """``TopicOffloader.turn``."""

    def __call__(
        self,
        topic: Topic,
        *,
        now: bool,
        only_look: bool,
        urgency: float,
        suspect: bool,
        progress: Callable[[int, int], None],
    ) -> Turn: ...


class Scheduler:
    """``look_around`` makes a round's ``Sight``; ``turn`` gives one topic one turn.

    ``ended`` hears what came of each turn: the turn or its error, and when the topic is tried
    again after one. It and ``turn`` are called from many threads. ``is_fatal``: after such an
    error nothing can go well any more; ``run`` raises it.
    """

    def __init__(
        self,
        line: Line,
        look_around: Callable[[], Sight],
        turn: Turns,
        *,
        now: bool = False,
        interval: float,
        ended: Callable[[Topic, Turn | Exception, float], None],
        moved: Callable[[Topic, int, int], None] = lambda topic, done, total: None,
        is_fatal: Callable[[Exception], bool] = lambda error: False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._line = line
        self._look_around = look_around
        self._turn = turn
        self._now = now
        self._interval = interval
        self._ended = ended
        self._moved = moved
        self._is_fatal = is_fatal
        self._clock = clock
        self._changed = threading.Condition(threading.RLock())
        self._requests: dict[Topic, list[Request]] = {}
        self._free = {True: LOOKS, False: TURNS}
        self._pools = {
            True: ThreadPoolExecutor(LOOKS, "offload-look"),
            False: ThreadPoolExecutor(TURNS, "offload-turn"),
        }
        self._order: list[Place] = []
        self._order_at = 0.0
        self._round_at = 0.0
        self._fatal: Exception | None = None
        self._over = False
        self.beat()

    # -- for anyone, from any thread -----------------------------------------------------------

    def request(self, topic: Topic, *, now: bool = True) -> Request:
        """Offload the topic's sealed ledgers before all others, whatever the settings say.

        With ``now`` False, what is due by the settings. Returns at once.
        """
        request = Request(topic, now=now)
        with self._changed:
            if self._over:
                request.fail(StoppedError("the offloader stops"))
                return request
            self._requests.setdefault(topic, []).append(request)
            self._line.place(topic).wanted = True
            self._order_at = 0.0
            self._changed.notify_all()
        return request

    def states(self) -> list[TopicState]:
        """All topics, as they are now."""
        with self._changed:
            now = self._clock()
            return [self._state(one, now) for one in self._line]

    def _state(self, place: Place, now: float) -> TopicState:
        share = None if place.look is None else place.share(now)
        next_at = None if place.running else max(now, self._line.ready_at(place))
        return TopicState(
            topic=place.topic,
            share=share,
            running=place.running,
            failures=place.failures,
            next_at=next_at,
            look=place.look,
            written=sum(place.written.values()),
        )

    # -- the loop ------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool], *, rounds: bool = True) -> None:
        """Give turns until ``until`` says so (asked twice a second, and after each turn).

        Without ``rounds``, only to topics that were asked for. Turns that run at the end are
        waited for. Raises what ``look_around`` raises.
        """
        try:
            while not until() and self._fatal is None:
                self.beat()
                if rounds and self._clock() >= self._round_at:
                    self.round()
                with self._changed:
                    if not self._start_some():
                        self._changed.wait(_WAKE_SECONDS)
        finally:
            self._end()
        if self._fatal is not None:
            raise self._fatal

    def beat(self) -> None:
        """The loop lives: it came round, or its look around goes on."""
        self.turned_at = time.monotonic()

    def round(self) -> None:
        """Look around, once."""
        sight = self._look_around()
        with self._changed:
            self._line.serve(sight.topics)
            self._line.count(sight.loaded)
            self._order_at = 0.0
        self._round_at = self._clock() + self._interval

    def _start_some(self) -> bool:
        """Start turns while threads are free; whether any was started."""
        now = self._clock()
        if not 0 <= now - self._order_at < _SORT_SECONDS:
            self._order, self._order_at = self._line.ready(now), now
        left, started = [], False
        for place in self._order:
            if place.running or not self._line.knows(place):
                continue
            only_look = place.look is None
            if not self._free[only_look]:
                left.append(place)
                continue
            self._free[only_look] -= 1
            self._line.began(place)
            self._pools[only_look].submit(self._give_turn, place, only_look, place.share(now))
            started = True
        self._order = left
        return started

    # -- one turn, in its thread ---------------------------------------------------------------

    def _give_turn(self, place: Place, only_look: bool, urgency: float) -> None:
        with self._changed:
            requests = list(self._requests.get(place.topic, ()))

        def progress(done: int, total: int) -> None:
            self._moved(place.topic, done, total)
            for one in requests:
                one.moved(done, total)

        result: Turn | Exception
        try:
            result = self._turn(
                place.topic,
                now=self._now or any(one.now for one in requests),
                only_look=only_look,
                urgency=urgency,
                suspect=place.failures > 0,
                progress=progress,
            )
        except Exception as error:  # noqa: BLE001 - no topic's failure stops the others
            result = error
        with self._changed:
            self._take_back(place, only_look, requests, result)
        if not isinstance(result, StoppedError):
            self._ended(place.topic, result, place.retry_at)
        self._settle(requests, result)

    def _take_back(
        self, place: Place, only_look: bool, requests: list[Request], result: Turn | Exception
    ) -> None:
        self._free[only_look] += 1
        if isinstance(result, Turn):
            if not result.more:
                self._drop(place, requests)
            self._line.done(place, result.look, more=result.more)
            if result.more or place.wanted:
                self._order_at = 0.0
        else:
            self._drop(place, requests)
            self._line.failed(place, self._clock())
            if self._is_fatal(result):
                self._fatal = result
        self._changed.notify_all()

    def _drop(self, place: Place, requests: list[Request]) -> None:
        """These are over; later ones of the topic wait for its next turn."""
        left = [one for one in self._requests.pop(place.topic, []) if one not in requests]
        if left:
            self._requests[place.topic] = left
        place.wanted = bool(left)

    def _settle(self, requests: list[Request], result: Turn | Exception) -> None:
        """Tell those who wait, after ``ended`` has heard of it."""
        for one in requests:
            if isinstance(result, Exception):
                one.fail(result)
                continue
            if result.committed:
                one.add(result.committed)
            if not result.more:
                one.finish()
        with self._changed:
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            self._over = True
        for pool in self._pools.values():
            pool.shutdown(cancel_futures=True)
        with self._changed:
            left = [one for some in self._requests.values() for one in some]
            self._requests.clear()
        for one in left:
            if not one.done:
                one.fail(self._fatal or StoppedError("the offloader stops"))
