"""Where partitions end now: asked of their brokers, rarely, for all streams of a process together.

GET_LAST_MESSAGE_ID through subscriptions that are not durable and are sent nothing: a request each,
all at once, and an answer stops before an open transaction. What one stream has asked answers the
others; a partition that has not moved for a while is asked for less often. Without a broker its
ledgers say it, by the admin REST, for a minute before it is tried again.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from reader.clients import Clients
from reader.closing import Closing
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position, Topic
from reader.plan import list_ledgers
from reader.stream.losses import warn_once
from reader.stream.stream_options import matching

if TYPE_CHECKING:
    from reader.pulsar.binary import BrokerClient

_LEAST_SECONDS, _MOST_SECONDS = 0.1, 0.5
_QUIET_TIMES = 0.1
"""How old an answer may be: so much of the time since the partition last moved, within these."""
_PARTITIONS_SECONDS = 5.0
"""How late the first message of a new partition may be."""
_WITHOUT_BROKER_SECONDS = 60.0
_TOPICS_SECONDS = 10.0
"""How late the first message of a new topic of a pattern may be."""


@dataclass(slots=True)
class _Tail:
    """``at``: when it was asked for; ``moved``: when it was first seen there."""

    end: Position
    at: float
    moved: float

    def is_fresh(self, now: float) -> bool:
        quiet = _QUIET_TIMES * (now - self.moved)
        return now - self.at < min(max(quiet, _LEAST_SECONDS), _MOST_SECONDS)


class Tails(Closing):
    """Thread-safe: who comes while others wait for an answer gets the same. ``clock``: seconds."""

    def __init__(self, clients: Clients, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clients = clients
        self._clock = clock
        self._lock = Lock()
        self._lent = ExitStack()
        self._broker: BrokerClient | None = None
        self._ask_broker_at = clock()
        self._tails: dict[Partition, _Tail] = {}
        self._listed: dict[Topic, tuple[float, tuple[Partition, ...]]] = {}

    def close(self) -> None:
        """Give the broker's client back, which leaves no subscription."""
        with self._lock:
            self._broker = None
            self._lent.close()

    def partitions(self, topic: Topic, *, now: bool = False) -> tuple[Partition, ...]:
        """The topic's, as of some seconds ago or ``now``. Raises as ``AdminClient.partitions``."""
        with self._lock:
            known = self._listed.get(topic)
            fresh = known is not None and self._clock() - known[0] < _PARTITIONS_SECONDS
            if known is not None and fresh and not now:
                return known[1]
            found = tuple(self._clients.admin.partitions(topic))
            self._listed[topic] = (self._clock(), found)
            return found

    def ends(
        self, partitions: Sequence[Partition], *, now: bool = False
    ) -> dict[Partition, Position]:
        """The last entry of each that a consumer would get; entry -1: none of that ledger.

        ``now``: not by an answer to an earlier question. Raises as ``BrokerClient.last_positions``
        and ``AdminClient.ledgers``.
        """
        with self._lock:
            begun = self._clock()
            old = [
                one
                for one in partitions
                if now or (tail := self._tails.get(one)) is None or not tail.is_fresh(begun)
            ]
            if old:
                self._note(self._ask(old))
            return {one: self._tails[one].end for one in partitions}

    def _note(self, found: Iterable[tuple[Partition, Position]]) -> None:
        now = self._clock()
        for partition, end in found:
            known = self._tails.get(partition)
            if known is not None and known.end == end:
                known.at = now
            else:
                self._tails[partition] = _Tail(end, now, now)

    def _ask(self, partitions: Sequence[Partition]) -> Iterable[tuple[Partition, Position]]:
        if self._clock() >= self._ask_broker_at:
            try:
                if self._broker is None:
                    self._broker = self._lent.enter_context(self._clients.broker())
                return self._broker.last_positions(partitions).items()
            except UnavailableError:
                self._ask_broker_at = self._clock() + _WITHOUT_BROKER_SECONDS
        listed = list_ledgers(self._clients.admin, partitions)
        recovering = [one for one, found in listed.items() if found.recovering]
        if recovering:
            raise UnavailableError(f"the broker of {recovering[0]} recovers its transactions")
        return [(one, min(found.last_confirmed, found.max_read)) for one, found in listed.items()]


class PatternTopics:
    """The topics of a stream by pattern.

    A shadow topic shows the messages of its source, so it is left out if the source matches, too.
    ``pattern``: tenant, namespace and a regular expression for names.
    """

    def __init__(
        self,
        clients: Clients,
        pattern: tuple[str, str, str],
        warn: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._clients, self._pattern = clients, pattern
        self._warn, self._clock = warn_once(warn), clock
        self._matches: dict[Topic, bool] = {}
        self._sources: dict[Topic, Topic | None] = {}
        self._topics: tuple[Topic, ...] = ()
        self._topics_at = -math.inf

    def expire(self) -> None:
        """Make the next ``current`` list the topics again."""
        self._topics_at = -math.inf

    @property
    def known(self) -> tuple[Topic, ...]:
        """The topics that were listed last."""
        return self._topics

    def current(self) -> tuple[Topic, ...]:
        """Return the topics as of some seconds ago."""
        if self._clock() - self._topics_at >= _TOPICS_SECONDS:
            tenant, namespace, names = self._pattern
            listed = self._clients.admin.topics(tenant, namespace)
            new = [topic.name for topic in listed if topic not in self._matches]
            matched = set(matching(names, new))
            # A name is matched once: an expression may take long.
            self._matches = {
                topic: self._matches.get(topic, topic.name in matched) for topic in listed
            }
            found = [topic for topic in listed if self._matches[topic]]
            self._topics = self._without_shadows(found)
            self._topics_at = self._clock()
        return self._topics

    def _without_shadows(self, found: Sequence[Topic]) -> tuple[Topic, ...]:
        known = set(found)
        self._sources = {topic: at for topic, at in self._sources.items() if topic in known}
        kept = []
        for topic in found:
            if topic not in self._sources:
                self._sources[topic] = self._source(topic)
            source = self._sources[topic]
            if source is None or source not in known:
                kept.append(topic)
                continue
            self._warn(
                f"topic {topic} is a shadow of {source}, which the stream reads as well, so it is "
                "left out"
            )
        return tuple(kept)

    def _source(self, topic: Topic) -> Topic | None:
        """Return the topic whose shadow this is; None also if the role may not ask."""
        try:
            source = self._clients.admin.shadow_source(topic)
        except ConfigurationError as error:
            self._warn(
                f"if shadows match {'/'.join(self._pattern)}, their messages come twice: Pulsar "
                f"does not tell which topics are shadows ({error})"
            )
            return None
        return None if source is None else Partition.parse(source).topic
