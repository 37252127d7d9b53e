"""Work on tables beside the turns: topic by topic, in a thread of its own, so that none waits.

Maintenance, and following in Iceberg. Each topic has a turn once in an interval, at its own time
within it, and sooner when commits have added enough files. A failing one is retried after growing
pauses and does not affect the others.
"""

import random
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from offloader.model import HOST_CLOCKS, Clocks, StoppedError, back_off, listener
from reader.model import Topic

_WAKE_SECONDS = 0.5


class WorkResult(Protocol):
    """What a turn comes to."""

    @property
    def more(self) -> bool:
        """Whether the next turn has to come at once."""
        ...


_Result = TypeVar("_Result", bound=WorkResult)


@dataclass(slots=True)
class _Schedule:
    due_at: float
    files: int = 0  # added since its last turn
    failures: int = 0


@dataclass(frozen=True, slots=True)
class WorkPace:
    """How often a worker gives a topic a turn. All times are seconds.

    interval: the time between two turns; 0: no turns at all.
    files: the number of files, added by commits, that are a reason for a turn.
    within: the time in which a new topic's first turn comes; None: the interval.
    spread: the time between the first turns of many new topics, as far as the interval allows: a
        commit's turn has not to wait for all of them.
    pause: the time after a first failure; None: the interval.
    """

    interval: float
    files: int
    within: float | None = None
    spread: float = 0.0
    pause: float | None = None


class TopicWorker(Generic[_Result]):
    """``work`` does one topic; ``ended`` is told the result and when the topic's next turn is
    (seconds since the epoch, for people). Both are called in the worker's thread, ``name``.

    ``wake_seconds``: how often a worker without work looks at the clock.
    """

    def __init__(
        self,
        work: Callable[[Topic], _Result],
        ended: Callable[[Topic, _Result | Exception, float], None],
        *,
        name: str,
        pace: WorkPace,
        clocks: Clocks = HOST_CLOCKS,
        jitter: Callable[[], float] = random.random,
        wake_seconds: float = _WAKE_SECONDS,
    ) -> None:
        self._work = work
        self._ended = listener(ended)
        self._interval = pace.interval
        within = pace.interval if pace.within is None else pace.within
        self._within = min(within, pace.interval)
        self._spread = pace.spread
        self._pause = pace.interval if pace.pause is None else pace.pause
        self._files = pace.files
        self._clock = clocks.seconds
        self._elapsed = clocks.elapsed
        self._jitter = jitter
        self._wake_seconds = wake_seconds
        self._changed = threading.Condition()
        self._schedules: dict[Topic, _Schedule] = {}
        self._over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin, unless it is off."""
        if self._interval > 0:
            self._thread.start()

    def request_stop(self) -> None:
        """``raise_if_stopped`` raises from now on; does not wait for that."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def stop(self, patience: float | None = None) -> None:
        """End, after the commit that is on its way; ``raise_if_stopped`` raises from now on.

        ``patience``: seconds to wait for that; None: as long as it takes.
        """
        self.request_stop()
        if self._thread.is_alive():
            self._thread.join(patience)

    def raise_if_stopped(self) -> None:
        """Raises StoppedError where the worker is to end."""
        if self._over:
            raise StoppedError("the offloader stops")

    def serve(self, topics: Iterable[Topic]) -> None:
        """These topics exist now; others are gone."""
        with self._changed:
            now = self._elapsed()
            found = list(topics)
            new = sum(one not in self._schedules for one in found)
            within = min(max(self._within, new * self._spread), self._interval)
            self._schedules = {
                one: self._schedules.get(one) or _Schedule(now + self._jitter() * within)
                for one in found
            }

    def committed(self, topic: Topic, files: int) -> None:
        """A commit has added files."""
        with self._changed:
            schedule = self._schedules.get(topic)
            if schedule is None:
                return
            schedule.files += files
            if schedule.files >= self._files and not schedule.failures:
                schedule.due_at = min(schedule.due_at, self._elapsed())
                self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                topic = None
                while not self._over and (topic := self._next()) is None:
                    self._changed.wait(self._wake_seconds)
                if self._over or topic is None:
                    return
                schedule = self._schedules[topic]
                schedule.files = 0
            self._give_turn(topic, schedule)

    def _next(self) -> Topic | None:
        """The one that has been due for longest."""
        now = self._elapsed()
        due = [(schedule.due_at, topic) for topic, schedule in self._schedules.items()]
        at, topic = min(due, key=lambda one: one[0], default=(now + 1, None))
        return topic if at <= now else None

    def _give_turn(self, topic: Topic, schedule: _Schedule) -> None:
        result: _Result | Exception
        try:
            result = self._work(topic)
        except StoppedError:
            return
        except Exception as error:  # noqa: BLE001 - no topic's failure stops the others
            result = error
        with self._changed:
            now = self._elapsed()
            if isinstance(result, Exception):
                schedule.failures += 1
                schedule.due_at = now + back_off(schedule.failures, self._pause, self._jitter())
            else:
                schedule.failures = 0
                # As many files may have come during the turn (``committed``).
                at_once = result.more or schedule.files >= self._files
                schedule.due_at = now + (0.0 if at_once else self._interval)
            next_at = self._clock() + schedule.due_at - now
        self._ended(topic, result, next_at)
