"""Which topic is next. Pure: times come in, nothing is started here.

A topic is *ready* when a request waits for it, when it is new, when its last turn left more to
do, when its back-off after a failure is over, or when ``next_turn`` says so.

Of the ready ones the one that is closest to its limit goes first (``next_turn.share``), those with
a request before all others. Every fourth turn is for the one that has been ready for longest, so
none starves, whatever the others reach.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from offloader.config import OffloadConfig
from offloader.model import Observation, TopicBacklog, back_off, settings_of
from offloader.schedule.newest_backlog import newest_backlog
from offloader.schedule.next_turn import next_turn, share
from reader.model import Partition, Topic
from reader.pulsar import LoadedTopic

__all__ = ["QueuedTopic", "TopicQueue"]


_FOR_THE_LONGEST = 4

_COUNTS_AGE = 120.0
"""Seconds: what brokers count is younger, so it knows of a hold that was taken before."""


@dataclass(slots=True)
class QueuedTopic:
    """One topic in the queue. Times in seconds since the epoch; partitions by their full names.

    ``observation``: of its last turn; None: it is new, or has grown a partition. ``backlog``: the
    newest that is known, of a turn or by whoever has looked since. ``counts``: bytes that brokers
    counted last; None: nothing yet. ``written``: what they counted since the backlog was listed.
    ``unheld``: by what brokers say, the hold is missing. ``served``: the settings include the
    topic; else it is here for a request alone.
    """

    topic: Topic
    config: OffloadConfig
    partitions: frozenset[str] = frozenset()
    served: bool = False
    observation: Observation | None = None
    backlog: TopicBacklog | None = None
    counts: Mapping[str, int] | None = None
    written: dict[str, int] = field(default_factory=dict)
    unheld: bool = False
    more: bool = False
    running: bool = False
    requested: bool = False
    failures: int = 0
    retry_at: float = 0.0
    ready_since: float = math.inf

    def share(self, now: float) -> float:
        """How close it is to its limit; a new topic is closest."""
        if self.observation is None or self.backlog is None:
            return math.inf
        return share(self.backlog, self.written, now, self.config)


class TopicQueue:
    """All topics. ``always``: each gets a turn after each interval, whatever is known of it.

    ``jitter`` gives numbers from 0 to 1.
    """

    def __init__(
        self,
        config: OffloadConfig,
        *,
        always: bool = False,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._config = config
        self._always = always
        self._jitter = jitter
        self._topics: dict[Topic, QueuedTopic] = {}
        self._counted = False

    def __iter__(self) -> Iterator[QueuedTopic]:
        return iter(self._topics.values())

    def get(self, topic: Topic) -> QueuedTopic | None:
        """The topic in the queue, if it is there."""
        return self._topics.get(topic)

    def queued(self, topic: Topic) -> QueuedTopic:
        """The topic in the queue, put there if it is not; ``serve`` and ``requested`` keep it."""
        if topic not in self._topics:
            config = settings_of(self._config, topic)
            self._topics[topic] = QueuedTopic(topic, config)
        return self._topics[topic]

    # -- what is learned -----------------------------------------------------------------------

    def serve(self, found: Mapping[Topic, Collection[Partition]]) -> dict[Topic, list[Partition]]:
        """These topics exist now, with these partitions (none: not known); others are gone.

        Returns the new partitions of topics whose turn is running: they would have no hold until
        that is over.
        """
        unheld: dict[Topic, list[Partition]] = {}
        for topic, partitions in found.items():
            queued = self.queued(topic)
            new = [one for one in partitions if one.full_name not in queued.partitions]
            if new and queued.running:
                unheld[topic] = new
            elif new:
                # They have no hold yet: one turn at once, whatever failed before.
                queued.observation, queued.retry_at = None, 0.0
                queued.partitions = frozenset(one.full_name for one in partitions)
        for queued in list(self._topics.values()):
            queued.served = queued.topic in found
            self._forget(queued)
        return unheld

    def count(self, loaded: Mapping[str, LoadedTopic] | None) -> None:
        """What brokers say of partitions that they have loaded; None: they do not say.

        A count that has fallen began anew at zero, as it does when a broker loads a topic.
        """
        self._counted = loaded is not None
        if loaded is None:
            return
        for queued in self._topics.values():
            names = [one for one in queued.partitions if one in loaded]
            counts = {one: loaded[one].bytes_in for one in names}
            before = queued.counts
            if before is None:  # none of it is new to an observation that is still to come
                before = counts if queued.observation is None else {}
            for name, count in counts.items():
                known = before.get(name, 0)
                grown = count - known if count >= known else count
                queued.written[name] = queued.written.get(name, 0) + grown
            queued.counts = {**before, **counts}
            hold = queued.config.subscription
            queued.unheld = any(hold not in loaded[one].subscriptions for one in names)

    def looked(self, topic: Topic, found: TopicBacklog) -> None:
        """Somebody has asked Pulsar, or read the table's log, without a turn."""
        queued = self.get(topic)
        if queued is None:
            return
        before = queued.backlog
        queued.backlog = newest_backlog(before, found)
        if before is None or queued.backlog.at > before.at:
            queued.written = {}

    # -- turns ---------------------------------------------------------------------------------

    def ready_at(self, queued: QueuedTopic) -> float:
        """When the topic is to get its next turn."""
        if queued.running or not (queued.served or queued.requested):
            return math.inf
        if queued.requested:
            return 0.0
        if queued.failures:
            return queued.retry_at
        if queued.observation is None or queued.backlog is None or queued.more:
            return 0.0
        if self._always:
            return queued.observation.at + queued.config.interval.total_seconds()
        written = queued.written if self._counted else None
        seen, backlog = queued.observation, queued.backlog
        at = next_turn(queued.topic, seen, backlog, written, queued.config)
        return min(at, queued.observation.at + _COUNTS_AGE) if queued.unheld else at

    def ready(self, now: float) -> list[QueuedTopic]:
        """The topics that are to get a turn now, in this order."""
        found = []
        for queued in self._topics.values():
            at = self.ready_at(queued)
            if at > now:
                queued.ready_since = math.inf
                continue
            queued.ready_since = min(queued.ready_since, now)
            found.append(queued)
        return _in_order(found, now)

    def knows(self, queued: QueuedTopic) -> bool:
        """Whether it is still in the queue."""
        return self.get(queued.topic) is queued

    def began(self, queued: QueuedTopic) -> None:
        """Its turn has begun: what is written from now on belongs to the next one."""
        queued.running = True
        queued.ready_since = math.inf
        queued.written = {}

    def done(self, queued: QueuedTopic, observation: Observation, *, more: bool) -> None:
        """Its turn went well; ``more``: there is work left that is due."""
        queued.running, queued.failures = False, 0
        queued.observation, queued.more = observation, more
        backlog = queued.backlog = newest_backlog(queued.backlog, observation.backlog)
        queued.partitions |= {one.partition.full_name for one in backlog.partitions}
        self._forget(queued)

    def failed(self, queued: QueuedTopic, now: float) -> None:
        """Its turn failed; ``retry_at`` is when it is tried again."""
        queued.running = False
        queued.failures += 1
        pause = back_off(queued.failures, queued.config.interval.total_seconds(), self._jitter())
        queued.retry_at = now + pause
        self._forget(queued)

    def _forget(self, queued: QueuedTopic) -> None:
        if not (queued.served or queued.requested or queued.running):
            del self._topics[queued.topic]


def _in_order(ready: list[QueuedTopic], now: float) -> list[QueuedTopic]:
    by_share = sorted(ready, key=lambda one: (one.requested, one.share(now)), reverse=True)
    if len(by_share) < _FOR_THE_LONGEST:
        return by_share
    by_wait = iter(sorted(ready, key=lambda one: one.ready_since))
    closest = iter(by_share)
    found: dict[Topic, QueuedTopic] = {}
    while len(found) < len(ready):
        following = by_wait if len(found) % _FOR_THE_LONGEST == _FOR_THE_LONGEST - 1 else closest
        one = next(following)
        while one.topic in found:
            one = next(following)
        found[one.topic] = one
    return list(found.values())
