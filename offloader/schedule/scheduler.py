"""Gives turns to all topics: ``queue`` says who is ready, ``lanes`` who starts next.

One loop, in the caller's thread (``run``):

1. Every ``interval``, a *round*: Pulsar's lists say which topics there are, brokers' counts what
   was written to them (``Discovery``). An idle round asks nothing else. New partitions of a
   topic whose turn is running are held beside that turn, which may take hours. A round has a
   thread of its own: while Pulsar's answers are late, turns start all the same.
2. A new topic is observed first, which takes its hold and says how close to its limit it is.
3. A topic has one turn at a time. Turns of different topics run side by side, and meet only where
   their ledgers are converted (``convert/jobs.py``).
4. A topic that fails is retried after a growing pause, in slots that healthy topics do not use.
   So has a topic its turns whose last conversion was slow (``Workers``).
5. All pauses are counted by a monotonic clock. The host's clock is for people alone.
"""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from offloader import model
from offloader.schedule.lanes import LANES, Lane, TurnKind, new_lanes
from offloader.schedule.queue import QueuedTopic, TopicQueue
from offloader.schedule.request import Request
from reader.model import Partition, Topic

_TURNS = sum(most for _, most in LANES.values())

_HOLDS = 8
"""Threads that take holds beside running turns."""

_SORT_SECONDS = 1.0
"""How old the order of the queue may be when it is followed."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """How rounds follow each other.

    interval: seconds between two rounds.
    now: whether all sealed ledgers are due, whatever the settings say.
    wake_seconds: how often a loop without turns looks at the clock.
    """

    interval: float
    now: bool = False
    wake_seconds: float = 0.5


class TurnEngine(Protocol):
    """What gives one topic one turn (``TopicOffloader``); called from many threads."""

    def turn(
        self, topic: Topic, *, now: bool, workers: model.Workers, progress: model.TaskCallback
    ) -> model.Turn:
        """One commit of what is due, if anything is; raises what it failed with."""
        ...

    def observe(self, topic: Topic, *, now: bool) -> model.Turn:
        """The same without a conversion: ``more`` says whether something is due."""
        ...

    def hold(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        """Take the hold on partitions that were added, beside the topic's turn; raises nothing."""
        ...


class Scheduler:
    """``discover`` finds all topics, once a round; ``engine`` gives one topic one turn.

    ``ended`` gets the result of each turn: the turn or its error, and when the topic is tried
    again after one (seconds since the epoch); ``moved`` how far a turn's tasks are. Both are called
    from many threads, and what they fail with stops nothing. ``is_fatal``: after
    such an error nothing can go well any more; ``run`` raises it.
    """

    def __init__(
        self,
        queue: TopicQueue,
        discover: Callable[[], model.Discovery],
        engine: TurnEngine,
        rounds: Rounds,
        *,
        ended: Callable[[Topic, model.Turn | Exception, float], None],
        moved: Callable[[Topic, int, int], None] = lambda topic, done, total: None,
        is_fatal: Callable[[Exception], bool] = lambda error: False,
        clocks: model.Clocks = model.HOST_CLOCKS,
    ) -> None:
        self._queue = queue
        self._discover = discover
        self._engine = engine
        self._pace = rounds
        self._ended = model.listener(ended)
        self._moved = model.listener(moved)
        self._is_fatal = is_fatal
        self._clock = clocks.seconds
        self._monotonic = clocks.elapsed
        self._changed = threading.Condition(threading.RLock())
        self._requests: dict[Topic, list[Request]] = {}
        self._lanes: dict[TurnKind, Lane[QueuedTopic]] = new_lanes()
        self._turns = ThreadPoolExecutor(_TURNS, "offload-turn")
        self._holds = ThreadPoolExecutor(_HOLDS, "offload-hold")
        self._rounds = ThreadPoolExecutor(1, "offload-round")
        self._discovering: Future[model.Discovery] | None = None
        self._asked: set[Partition] = set()  # for their hold, beside their topic's turn
        self._order_at = self._round_at = -math.inf
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
                request.fail(model.StoppedError("the offloader stops"))
                return request
            self._requests.setdefault(topic, []).append(request)
            self._queue.queued(topic).requested = True
            self._order_at = -math.inf
            self._changed.notify_all()
        return request

    def looked(self, topic: Topic, found: model.TopicBacklog) -> None:
        """Tell what is not in a topic's table, as somebody saw it who gave it no turn.

        Where it is newer than what is known, it is what all see from now on.
        """
        with self._changed:
            self._queue.looked(topic, found)

    def state(self, topic: Topic) -> model.TopicState | None:
        """One topic as it is now; None: it is not in the queue."""
        with self._changed:
            found = self._queue.get(topic)
            return None if found is None else self._state(found, self._monotonic())

    def states(self) -> list[model.TopicState]:
        """All topics, as they are now."""
        with self._changed:
            now = self._monotonic()
            return [self._state(one, now) for one in self._queue]

    def _state(self, queued: QueuedTopic, now: float) -> model.TopicState:
        share = None if queued.observation is None else queued.share(now)
        pause = max(0.0, self._queue.ready_at(queued) - now)
        next_at = None if queued.running else self._clock() + pause
        return model.TopicState(
            topic=queued.topic,
            share=share,
            running=queued.running,
            failures=queued.failures,
            next_at=next_at,
            observation=queued.observation,
            backlog=queued.backlog,
            written=sum(queued.written.values()),
        )

    # -- the loop ------------------------------------------------------------------------------

    def run(self, until: Callable[[], bool], *, rounds: bool = True) -> None:
        """Give turns until ``until`` says so (asked each ``wake_seconds``, and after each turn).

        Without ``rounds``, only to topics that were asked for. Turns that run at the end are
        waited for. Raises what ``discover`` raises.
        """
        try:
            while not until() and self._fatal is None:
                self._take_round()
                if self._discovering is None:
                    self.beat()
                    if rounds and self._monotonic() >= self._round_at:
                        self._begin_round()
                with self._changed:
                    if not self.start_turns():
                        self._changed.wait(self._pace.wake_seconds)
        finally:
            self._end()
        if self._fatal is not None:
            raise self._fatal

    def beat(self) -> None:
        """The loop lives: it came round, or its discovery goes on."""
        self.turned_at = self._monotonic()

    def round(self) -> None:
        """Discover the topics, once."""
        self._serve(self._discover())

    def _begin_round(self) -> None:
        """Have a thread discover the topics; ``_take_round`` takes what it finds."""
        self._discovering = self._rounds.submit(self._discover)
        self._discovering.add_done_callback(lambda _: self._wake())

    def _take_round(self) -> None:
        """Serve what a round has found, if it is over. Raises what ``discover`` raised."""
        if self._discovering is not None and self._discovering.done():
            found, self._discovering = self._discovering, None
            self._serve(found.result())

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _serve(self, discovery: model.Discovery) -> None:
        with self._changed:
            unheld = self._queue.serve(discovery.topics)
            self._queue.count(discovery.loaded)
            self._order_at = -math.inf
        for topic, partitions in unheld.items():
            self._hold_beside(topic, partitions)
        self._round_at = self._monotonic() + self._pace.interval

    def _hold_beside(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        """Have a thread take the hold on these partitions, unless one already tries that."""
        with self._changed:
            new = [one for one in partitions if one not in self._asked]
            self._asked.update(new)
        if new:
            self._holds.submit(self._hold, topic, new)

    def _hold(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        self._engine.hold(topic, partitions)
        with self._changed:
            self._asked.difference_update(partitions)

    def start_turns(self) -> bool:
        """Start turns while slots are free; return whether any was started."""
        with self._changed:
            now = self._monotonic()
            if now - self._order_at >= _SORT_SECONDS:
                self._sort(now)
            started = False
            for kind, lane in self._lanes.items():

                def is_ready(queued: QueuedTopic, kind: TurnKind = kind) -> bool:
                    return queued.kind == kind and self._queue.is_ready(queued, now)

                while (queued := lane.start(is_ready)) is not None:
                    self._queue.began(queued, now)
                    self._turns.submit(self._give_turn, queued, kind)
                    started = True
            return started

    def _sort(self, now: float) -> None:
        by_kind: dict[TurnKind, list[QueuedTopic]] = {kind: [] for kind in self._lanes}
        for queued in self._queue.ready(now):
            by_kind[queued.kind].append(queued)
        for kind, lane in self._lanes.items():
            lane.order(
                by_kind[kind],
                rank=lambda queued: queued.rank(now),
                ready_since=lambda queued: queued.ready_since,
            )
        self._order_at = now

    # -- one turn, in its thread ---------------------------------------------------------------

    def _give_turn(self, queued: QueuedTopic, kind: TurnKind) -> None:
        with self._changed:
            requests = list(self._requests.get(queued.topic, ()))
        result: model.Turn | Exception
        try:
            result = self._turn(queued, kind, requests)
        except Exception as error:  # noqa: BLE001 - no topic's failure stops the others
            result = error
        with self._changed:
            self._take_back(queued, kind, requests, result)
            retry_in = queued.retry_at - self._monotonic()
        if not isinstance(result, model.StoppedError):
            self._ended(queued.topic, result, self._clock() + retry_in)
        self._settle(requests, result)

    def _turn(self, queued: QueuedTopic, kind: TurnKind, requests: list[Request]) -> model.Turn:
        now = self._pace.now or any(one.now for one in requests)
        if kind.observes:
            return self._engine.observe(queued.topic, now=now)

        def progress(done: int, total: int) -> None:
            self._moved(queued.topic, done, total)
            for one in requests:
                one.moved(done, total)

        return self._engine.turn(queued.topic, now=now, workers=kind.workers, progress=progress)

    def _take_back(
        self,
        queued: QueuedTopic,
        kind: TurnKind,
        requests: list[Request],
        result: model.Turn | Exception,
    ) -> None:
        now = self._monotonic()
        self._lanes[kind].end(succeeded=isinstance(result, model.Turn))
        if isinstance(result, model.Turn):
            if not result.more:
                self._drop(queued, requests)
            self._queue.done(
                queued, result.observation, more=result.more, slow=result.slow, now=now
            )
            if result.more or queued.requested or kind.workers is not model.Workers.HEALTHY:
                self._order_at = -math.inf
        else:
            self._drop(queued, requests)
            self._queue.failed(queued, now)
            if self._is_fatal(result):
                self._fatal = result
        self._changed.notify_all()

    def _drop(self, queued: QueuedTopic, requests: list[Request]) -> None:
        """These are over; later ones of the topic wait for its next turn."""
        left = [one for one in self._requests.pop(queued.topic, []) if one not in requests]
        if left:
            self._requests[queued.topic] = left
        queued.requested = bool(left)

    def _settle(self, requests: list[Request], result: model.Turn | Exception) -> None:
        """Tell those who wait, after ``ended`` has heard of it."""
        for one in requests:
            if isinstance(result, Exception):
                one.fail(result)
                continue
            if result.committed:
                one.add(result.committed)
            if not result.more:
                one.finish()
        self._wake()

    def _end(self) -> None:
        with self._changed:
            self._over = True
        for pool in (self._rounds, self._turns, self._holds):
            pool.shutdown(cancel_futures=True)
        with self._changed:
            left = [one for some in self._requests.values() for one in some]
            self._requests.clear()
        for one in left:
            if not one.done:
                one.fail(self._fatal or model.StoppedError("the offloader stops"))
