"""One history of the scheduler in virtual time: topics, servers that fail, and clocks that jump.

The bound: a topic whose servers answer, and that has something due, is committed; a new one
whose broker answers has its hold. How soon follows from the rules of ``lanes`` and ``jobs``: a
failing topic delays the others by its timeout once, until it succeeds again.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any
from unittest.mock import patch

from offloader.config import OffloadConfig
from offloader.convert.job_rules import PATIENCE_SECONDS
from offloader.model import Clocks, Discovery, Observation, TaskCallback, Turn, Workers
from offloader.schedule import Rounds, Scheduler, TopicQueue
from offloader.schedule.lanes import LANES, TurnKind
from offloader.schedule.queue import QueuedTopic
from reader.bookkeeper import SilentBookies
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from tests.simulation.liveness.conversions import (
    CORES,
    SILENT_SECONDS,
    ConversionResult,
    ModelledJobs,
    WaitingConversion,
)
from tests.simulation.liveness.servers import Outage, Server, State, draw_server
from tests.support.backlogs import backlog_of

EPOCH = 1_790_000_000.0
INTERVAL, MAX_AGE = 60.0, 300.0
ANSWER, ADMIN_TIMEOUT = 0.05, 30.0
LONGEST_PAUSE = 900.0
TICK = 15.0
JOBS_THAT_BECOME_SLOW = 2 * 2 * PATIENCE_SECONDS
"""Two jobs of topics that were healthy when their conversions began."""
SMALL, HOT = (1 << 20,), (128 << 20,) * 8

_LOOKS = LANES[TurnKind(observes=True, workers=Workers.HEALTHY)][1]

SLACK = INTERVAL + 2 * TICK
"""A round or a topic's interval, and turns and jobs of topics that do not fail."""


class LateError(AssertionError):
    """A healthy topic had no turn, or no hold, within its bound."""


@dataclass(slots=True, eq=False)
class LiveTopic:
    """``due_at``: when what is sealed becomes due. ``hot``: there is always more.

    ``failed_at``: of its last turn that failed, since one went well. ``retried``: a turn has failed
    since its last commit. ``slow``: its last conversion was, or its storage. ``running``: the kind
    of its turn; ``doomed``: that turn waits for a server that is silent or slow.
    """

    topic: Topic
    broker: Server
    rack: Server
    packs: tuple[int, ...]
    listed_at: float
    due_at: float
    held: bool = False
    failed_at: float | None = None
    retried: bool = False
    slow: bool = False
    running: TurnKind | None = None
    doomed: bool = False

    @property
    def hot(self) -> bool:
        return len(self.packs) > 1

    def delay(self) -> float:
        """How long it keeps one slot of the healthy topics when its bookies begin to fail."""
        slow = self.rack.latency + max(self.packs) / self.rack.pace
        return max(SILENT_SECONDS, min(slow, PATIENCE_SECONDS))


@dataclass(slots=True)
class _Failures:
    """(when, delay) of turns that failed or were slow, and the turn before was not."""

    first: list[tuple[float, float]] = field(default_factory=list)

    def since(self, at: float) -> list[float]:
        return [delay for when, delay in self.first if when >= at]


class ScheduleWorld:
    """``topics``: if they are not drawn; their storage is up, and no bound is checked.

    ``waits``: the longest waits, by what was waited for. ``commits``: of each topic, (when, how
    long it waited for that).
    """

    def __init__(
        self, seed: int, hours: float = 1.0, topics: Sequence[LiveTopic] | None = None
    ) -> None:
        random = self._random = Random(seed)
        self.until = hours * 3600
        self.now = 0.0
        self._numbers = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        every = random.choice((1200.0, 3600.0, 20_000.0))

        def make(name: str, *states: State) -> Server:
            return draw_server(random, name, self.until, every, states)

        brokers = [make(f"broker-{n}", "refuses", "silent", "silent") for n in range(3)]
        racks = [make(f"rack-{n}", "refuses", "silent", "silent", "slow") for n in range(3)]
        crowded = random.random() < 0.4
        if crowded:  # more topics than there are slots fail for long, and are silent about it
            begins = random.uniform(0, 600)
            ends = begins + random.uniform(900, 2400)
            racks[0].outages = [Outage(begins, ends, random.choice(("silent", "slow")))]
        self.storage = (
            make("storage", "refuses", "silent") if random.random() < 0.3 else Server("storage")
        )
        self.topics: dict[Topic, LiveTopic] = {}
        hot = random.choice((0.0, 0.1, 0.6))
        for number in range(random.choice((60, 110) if crowded else (5, 30, 70, 100))):
            topic = Topic("public", "default", f"t{number}")
            listed_at = random.choice((0.0, 0.0, random.uniform(0, self.until)))
            self.topics[topic] = LiveTopic(
                topic,
                random.choice(brokers),
                random.choices(racks, (6 if crowded else 1, 1, 1))[0],
                HOT if random.random() < hot else SMALL,
                listed_at,
                listed_at + random.choice((0.0, random.uniform(0, 2 * MAX_AGE))),
            )
        self._checks = topics is None
        if topics is not None:
            self.storage = Server("storage")
            self.topics = {one.topic: one for one in topics}
        self._processes = [SilentBookies() for _ in range(CORES)]
        self._ahead = random.choice((0.0, 8 * 3600.0))
        self._failures = _Failures()
        self._outcomes: dict[Topic, Turn | Exception] = {}
        self._jobs = ModelledJobs(self._after, lambda: self.now)
        self.turns = 0
        self.waits: dict[str, float] = {}
        self.commits: dict[Topic, list[tuple[float, float]]] = {one: [] for one in self.topics}
        with patch("offloader.schedule.scheduler.ThreadPoolExecutor", lambda *_: self):
            self._scheduler = Scheduler(
                TopicQueue(
                    OffloadConfig(
                        interval=timedelta(seconds=INTERVAL), max_age=timedelta(seconds=MAX_AGE)
                    ),
                    jitter=random.random,
                ),
                self._discover,
                self,
                Rounds(INTERVAL),
                ended=self._ended,
                clocks=Clocks(lambda: int(self._clock() * 1000), lambda: self.now),
            )

    # -- virtual time --------------------------------------------------------------------------

    def run(self) -> None:
        """Let the time go by. Raises LateError."""
        self._after(self._random.uniform(0, self.until), self._jump)
        round_at = tick_at = 0.0
        while self.now < self.until:
            if self.now >= round_at:
                self._scheduler.round()
                round_at = self.now + INTERVAL
            if self.now >= tick_at:
                self._check_all()
                tick_at = self.now + TICK
            self._scheduler.start_turns()
            self.now = min([tick_at, *(one[0] for one in self._events[:1])])
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()

    def _after(self, seconds: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), call))

    def _clock(self) -> float:
        """The host's."""
        return EPOCH + self.now + self._ahead

    def _jump(self) -> None:
        self._ahead = self._random.choice((0.0, -8 * 3600.0, 8 * 3600.0, 5.0, -100.0))
        self._after(self._random.expovariate(1 / 1200), self._jump)

    # -- the scheduler's pools -----------------------------------------------------------------

    def submit(self, give_turn: Callable[..., None], *values: Any) -> None:
        """Begin a turn; it is given at its end, when its outcome is known."""
        queued, kind = values
        if not isinstance(queued, QueuedTopic):
            give_turn(*values)  # a hold beside a turn
            return
        live = self.topics[queued.topic]

        def end(outcome: Turn | Exception) -> None:
            self._outcomes[live.topic] = outcome
            live.running, live.doomed = None, False
            give_turn(queued, kind)

        state = live.broker.state(self.now)
        live.running, live.doomed = kind, state == "silent"
        if state != "up":
            error = UnavailableError(f"{live.broker.name} {state}")
            self._after(ADMIN_TIMEOUT if state == "silent" else ANSWER, lambda: end(error))
        elif kind.observes:
            self._after(ANSWER, lambda: self._observed(live, end))
        elif self.now < live.due_at:
            self._after(ANSWER, lambda: end(self._turn_of(live)))
        else:
            self._after(ANSWER, lambda: self._convert(live, kind, end))

    def shutdown(self, **_: Any) -> None:
        pass

    def _observed(self, live: LiveTopic, end: Callable[[Turn | Exception], None]) -> None:
        self._note("hold", live, max(live.listed_at, live.broker.up_since(self.now)))
        live.held = True
        end(self._turn_of(live))

    def _convert(
        self, live: LiveTopic, kind: TurnKind, end: Callable[[Turn | Exception], None]
    ) -> None:
        states: set[str] = set()

        def run(size: int) -> tuple[float, bool]:
            state = live.rack.state(self.now)
            states.add(state)
            live.doomed = live.doomed or state in ("silent", "slow")
            if not self._allows(live.rack):
                states.add("known as silent")
                return 0.1, True
            slow = live.rack.latency + size / live.rack.pace
            seconds = {"up": 0.05, "refuses": 1.0, "silent": SILENT_SECONDS, "slow": slow}[state]
            return seconds, state in ("refuses", "silent")

        def converted(result: ConversionResult) -> None:
            storage = self.storage.state(self.now)
            if result == "failed":
                end(UnavailableError(f"{live.rack.name} {states}"))
            elif result == "given up":
                end(self._turn_of(live, slow=True))
            elif storage != "up":
                wait = ADMIN_TIMEOUT if storage == "silent" else ANSWER
                self._after(wait, lambda: end(UnavailableError(f"storage {storage}")))
            else:
                self._after(0.2, lambda: self._committed(live, end, slow=result == "slow"))

        self._jobs.submit(WaitingConversion(live.packs, kind.workers, run, converted))

    def _allows(self, rack: Server) -> bool:
        """Return whether one of Spark's processes asks the rack, by what it remembers of it."""
        process, pool = self._random.choice(self._processes), object()
        if not process.allows(rack.name, pool, self.now):
            return False
        process.record_request(rack.name, pool, SILENT_SECONDS, self.now)
        if rack.state(self.now) == "silent":
            why = f"{rack.name} is silent"
            self._after(
                SILENT_SECONDS / 2, lambda: process.record_silence(rack.name, pool, why, self.now)
            )
        else:
            process.record_answer(rack.name)
        return True

    def _committed(
        self, live: LiveTopic, end: Callable[[Turn | Exception], None], *, slow: bool
    ) -> None:
        self._note("turn", live, self._due_since(live))
        self.commits[live.topic].append((self.now, self.now - self._due_since(live)))
        live.retried = False
        wait = 0.0 if live.hot else self._random.expovariate(1 / 120) + MAX_AGE
        live.due_at = self.now + wait
        end(self._turn_of(live, slow=slow))

    # -- the engine ----------------------------------------------------------------------------

    def _turn_of(self, live: LiveTopic, *, slow: bool | None = None) -> Turn:
        oldest = EPOCH + live.due_at - MAX_AGE  # by the brokers' clock
        there = live.due_at - MAX_AGE <= self.now
        # ``at`` of a backlog says which is newer: by the monotonic clock, as the product does.
        found = backlog_of({live.topic.full_name: 10}, {}, oldest if there else None, at=self.now)
        seen = Observation(self._clock(), found, brokers_ahead=-self._ahead)
        return Turn(live.topic, None, (), self.now >= live.due_at, seen, slow)

    def turn(self, topic: Topic, *, now: bool, workers: Workers, progress: TaskCallback) -> Turn:
        return self.observe(topic, now=now)

    def observe(self, topic: Topic, *, now: bool) -> Turn:
        self.turns += 1
        outcome = self._outcomes.pop(topic)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def hold(self, topic: Topic, partitions: Sequence[Partition]) -> None:
        pass

    def _discover(self) -> Discovery:
        there: Mapping[Topic, tuple[Partition, ...]] = {
            one.topic: () for one in self.topics.values() if one.listed_at <= self.now
        }
        return Discovery(there, {})

    def _ended(self, topic: Topic, result: Turn | Exception, retry_at: float) -> None:
        live = self.topics[topic]
        good = isinstance(result, Turn) and not result.slow
        if not good and not live.slow and live.failed_at is None:
            self._failures.first.append((self.now, live.delay()))
        if isinstance(result, Turn):
            live.failed_at = None
            live.slow = live.slow if result.slow is None else result.slow
            return
        live.failed_at, live.retried = self.now, True

    # -- the bounds ----------------------------------------------------------------------------

    def _due_since(self, live: LiveTopic) -> float:
        """When its commit could begin: it was due, held, and its servers answered."""
        servers = (live.broker, live.rack, self.storage)
        return max(live.due_at, *(one.up_since(self.now) for one in servers))

    def _check_all(self) -> None:
        for live in self.topics.values():
            if live.listed_at > self.now:
                continue
            if live.held:
                self._note("turn", live, self._due_since(live))
            else:
                since = max(live.listed_at, live.broker.up_since(self.now))
                self._note("hold", live, since)

    def _note(self, what: str, live: LiveTopic, since: float) -> None:
        """Compare a wait until now with its bound."""
        waited = self.now - since
        if waited <= 0:
            return
        kind = f"{what}, retried" if live.retried else f"{what}, slow" if live.slow else what
        self.waits[kind] = max(self.waits.get(kind, 0.0), waited)
        most = self._bound(what, since, live)
        if waited > most and self._checks:
            raise LateError(
                f"{live.topic.name} waits for its {kind} for {waited:.0f} s, not {most:.0f}"
            )

    def _bound(self, what: str, since: float, live: LiveTopic) -> float:
        """How long what is due at ``since`` may wait: ``SLACK``, and what delays it."""
        # Each topic that fails or is slow for the first time, in its turn; and those that are
        # about to.
        first = self._failures.since(since)
        first += [
            one.delay()
            for one in self.topics.values()
            if one.running is not None
            and one.failed_at is None
            and not one.slow
            and (one.doomed or one.rack.state(self.now) in ("silent", "slow"))
        ]
        if what == "hold":
            most = SLACK + ADMIN_TIMEOUT * len(first) / _LOOKS
        else:
            # Retries and slow topics leave one of the slots.
            most = SLACK + sum(first) / (CORES - 2)
            if any(one > SILENT_SECONDS for one in first):
                most += JOBS_THAT_BECOME_SLOW
        if live.retried:
            failing = sum(one.retried for one in self.topics.values())
            most += LONGEST_PAUSE + SILENT_SECONDS * (failing + 4)
        if live.slow and what == "turn":
            # Each slow topic before it, and two more that are chosen by their share.
            slow = [one.delay() for one in self.topics.values() if one.slow]
            most += 3 * sum(slow)
        return most
