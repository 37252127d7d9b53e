"""When each topic is ready for a turn, and its rank among the ready topics. Pure.

A topic is *ready* when a request waits for it, when it is new, when its last turn left more to
do, when its pause after a failure is over, or when ``next_turn`` says so. A retry that succeeds
ends the pauses of two more topics: what has failed for all of them may be over.

Rank: topics with a request first; then those that failed least often; then those that are closest
to their limit (``next_turn.share``). ``lanes`` says who starts. All times are seconds of one
monotonic clock.
"""

import heapq
import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from offloader.backlog import newest_backlog
from offloader.config import OffloadConfig
from offloader.model import Observation, TopicBacklog, Workers, back_off, settings_of
from offloader.schedule.lanes import TurnKind
from offloader.schedule.next_turn import next_turn, share
from reader.model import Partition, Topic
from reader.pulsar import LoadedTopic

_BROUGHT_FORWARD = 2
"""A success frees a slot of the lane for retries, and adds one."""

_MOST_DOUBLED = 6
"""64 turns of 256 MiB: what a topic loses that comes back in vain is little of that."""

_COUNTS_AGE = 120.0
"""Seconds: what brokers count is younger, so it knows of a hold that was taken before."""


@dataclass(slots=True)
class QueuedTopic:
    """One topic in the queue. Times by a monotonic clock, in seconds; partitions by full names.

    ``observation``: of its last turn, which began at ``observed_at``; None: it is new, or has grown
    a partition. ``began_at``: when the running turn began. ``backlog``: the
    newest that is known, of a turn or by whoever has looked since. ``counts``: bytes that brokers
    counted last; None: nothing yet. ``written``: what they counted since the backlog was listed.
    ``slow``: the workers of slow topics convert it, for ``trial`` more turns that are in time.
    ``relapses``: how often it was slow among the healthy topics. ``unheld``: by what brokers say,
    the hold is missing. ``served``: the settings include the topic; else it is here for a request
    alone.
    """

    topic: Topic
    config: OffloadConfig
    partitions: frozenset[str] = frozenset()
    served: bool = False
    observation: Observation | None = None
    observed_at: float = 0.0
    began_at: float = 0.0
    backlog: TopicBacklog | None = None
    counts: Mapping[str, int] | None = None
    written: dict[str, int] = field(default_factory=dict)
    unheld: bool = False
    more: bool = False
    slow: bool = False
    trial: int = 0
    relapses: int = 0
    running: bool = False
    requested: bool = False
    failures: int = 0
    retry_at: float = 0.0
    ready_since: float = math.inf

    @property
    def kind(self) -> TurnKind:
        """The kind of its next turn."""
        observes = self.observation is None
        if self.slow and not observes:
            return TurnKind(observes, Workers.SLOW)
        return TurnKind(observes, Workers.RETRIES if self.failures else Workers.HEALTHY)

    def share(self, now: float) -> float:
        """How close it is to its limit; a new topic is closest."""
        if self.observation is None or self.backlog is None:
            return math.inf
        seen = self.observation
        brokers_time = seen.at + seen.brokers_ahead + now - self.observed_at
        return share(self.backlog, self.written, brokers_time, self.config)

    def rank(self, now: float) -> tuple[bool, int, float]:
        """Return a key by which the topic that starts first is the greatest."""
        return self.requested, -self.failures, self.share(now)


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
        if before is None or queued.backlog.asked > before.asked:
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
            return queued.observed_at + queued.config.interval.total_seconds()
        written = queued.written if self._counted else None
        seen, backlog = queued.observation, queued.backlog
        pause = next_turn(queued.topic, seen, backlog, written, queued.config)
        return queued.observed_at + (min(pause, _COUNTS_AGE) if queued.unheld else pause)

    def ready(self, now: float) -> list[QueuedTopic]:
        """The topics that are to get a turn now, in no order."""
        found = []
        for queued in self._topics.values():
            if self.ready_at(queued) > now:
                queued.ready_since = math.inf
                continue
            queued.ready_since = min(queued.ready_since, now)
            found.append(queued)
        return found

    def is_ready(self, queued: QueuedTopic, now: float) -> bool:
        """Whether it is still in the queue, and is to get a turn now."""
        return self.get(queued.topic) is queued and self.ready_at(queued) <= now

    def began(self, queued: QueuedTopic, now: float) -> None:
        """Its turn has begun: what is written from now on belongs to the next one."""
        queued.running, queued.began_at = True, now
        queued.ready_since = math.inf
        queued.written = {}

    def done(
        self,
        queued: QueuedTopic,
        observation: Observation,
        *,
        more: bool,
        slow: bool | None = None,
        now: float,
    ) -> None:
        """Its turn went well; ``more``: there is work left that is due. ``slow``: see ``Turn``."""
        kind, retried = queued.kind, queued.failures > 0
        if slow is not None:
            self._judge(queued, kind, slow)
        queued.running, queued.failures = False, 0
        queued.observation, queued.more = observation, more
        queued.observed_at = queued.began_at
        backlog = queued.backlog = newest_backlog(queued.backlog, observation.backlog)
        queued.partitions |= {one.partition.full_name for one in backlog.partitions}
        self._forget(queued)
        if retried:
            self._bring_forward(kind, now)

    def _judge(self, queued: QueuedTopic, kind: TurnKind, slow: bool) -> None:
        """Say who converts it from now on, after a conversion.

        What is in time with the few slots of slow topics may be slow again with all cores, and be
        given up each time. So a topic that comes back in vain stays for twice as many turns.
        """
        if kind.workers is Workers.SLOW:
            queued.trial -= not slow
            queued.slow = queued.trial > 0
        elif slow:
            queued.slow, queued.trial = True, 1 << min(queued.relapses, _MOST_DOUBLED)
            queued.relapses += 1
        else:
            queued.relapses //= 2

    def _bring_forward(self, kind: TurnKind, now: float) -> None:
        """End the pauses of topics that wait to retry the same kind of turn."""
        pausing = (
            one
            for one in self._topics.values()
            if one.retry_at > now and one.kind == kind and not one.running
        )
        for queued in heapq.nsmallest(_BROUGHT_FORWARD, pausing, key=lambda one: one.retry_at):
            queued.retry_at = now

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
