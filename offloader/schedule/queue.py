"""Which topic is next: the waiting line. Pure: times come in, nothing is started here.

A topic is *ready* when a request waits for it, when it is new, when its last turn left more to
do, when its back-off after a failure is over, or when ``look.next_turn`` says so.

Of the ready ones the one that is closest to its limit goes first (``look.share``), those with a
request before all others. Every fourth place is for the one that has been ready for longest, so
none starves, whatever the others reach.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from offloader.config import OffloadConfig
from offloader.model.patterns import settings_of
from offloader.schedule.observation import Look, next_turn, share
from reader.model import Partition, Topic
from reader.pulsar.admin import LoadedTopic

__all__ = ["BACK_OFF_MOST", "Line", "Place", "back_off"]

BACK_OFF_MOST = 900.0
"""Seconds: the longest pause after a failure, unless the topic's interval is longer."""

_FOR_THE_LONGEST = 4

_COUNTS_AGE = 120.0
"""Seconds: what brokers count is younger, so it knows of a hold that was taken before."""


def back_off(times: int, interval: float, jitter: float) -> float:
    """Seconds until the next try after so many failures in a row; ``jitter``: 0 to 1.

    From the interval (at least a second) on, doubled each time, and then half of it at random.
    """
    first = max(interval, 1.0)
    longest = min(first * 2.0 ** min(times - 1, 60), max(first, BACK_OFF_MOST))
    return longest * (0.5 + 0.5 * jitter)


@dataclass(slots=True)
class Place:
    """One topic in the line. Times in seconds since the epoch; partitions by their full names.

    ``look``: the last whole look; None: it is new, or has grown a partition. ``counts``: what
    brokers counted last; None: nothing yet. ``written``: what they counted since the look.
    ``unheld``: by what brokers say, the hold is missing. ``served``: the settings include the
    topic; else it is here for a request alone.
    """

    topic: Topic
    config: OffloadConfig
    partitions: frozenset[str] = frozenset()
    served: bool = False
    look: Look | None = None
    counts: Mapping[str, int] | None = None
    written: dict[str, int] = field(default_factory=dict)
    unheld: bool = False
    more: bool = False
    running: bool = False
    wanted: bool = False
    failures: int = 0
    retry_at: float = 0.0
    ready_since: float = math.inf

    def share(self, now: float) -> float:
        """How close it is to its limit; a new topic is closest."""
        return math.inf if self.look is None else share(self.look, self.written, now, self.config)


class Line:
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
        self._places: dict[Topic, Place] = {}
        self._counted = False

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places.values())

    def place(self, topic: Topic) -> Place:
        """The topic's place, made where there is none; ``serve`` and ``wanted`` keep it."""
        if topic not in self._places:
            config = settings_of(self._config, topic)
            self._places[topic] = Place(topic, config)
        return self._places[topic]

    # -- what is learned -----------------------------------------------------------------------

    def serve(self, found: Mapping[Topic, Iterable[Partition]]) -> None:
        """These topics exist now, with these partitions (none: not known); others are gone."""
        for topic, partitions in found.items():
            place = self.place(topic)
            there = frozenset(one.full_name for one in partitions)
            if there - place.partitions and not place.running:
                place.look = None  # its new partitions have no hold yet
                place.partitions = there
        for place in list(self._places.values()):
            place.served = place.topic in found
            self._forget(place)

    def count(self, loaded: Mapping[str, LoadedTopic] | None) -> None:
        """What brokers say of partitions that they have loaded; None: they do not say.

        A count that has fallen began anew at zero, as it does when a broker loads a topic.
        """
        self._counted = loaded is not None
        if loaded is None:
            return
        for place in self._places.values():
            names = [one for one in place.partitions if one in loaded]
            counts = {one: loaded[one].bytes_in for one in names}
            before = place.counts
            if before is None:  # none of it is new to a look that is still to come
                before = counts if place.look is None else {}
            for name, count in counts.items():
                known = before.get(name, 0)
                grown = count - known if count >= known else count
                place.written[name] = place.written.get(name, 0) + grown
            place.counts = {**before, **counts}
            hold = place.config.subscription
            place.unheld = any(hold not in loaded[one].subscriptions for one in names)

    # -- turns ---------------------------------------------------------------------------------

    def ready_at(self, place: Place) -> float:
        """When the topic is to get its next turn."""
        if place.running or not (place.served or place.wanted):
            return math.inf
        if place.wanted:
            return 0.0
        if place.failures:
            return place.retry_at
        if place.look is None or place.more:
            return 0.0
        if self._always:
            return place.look.at + place.config.interval.total_seconds()
        written = place.written if self._counted else None
        at = next_turn(place.topic, place.look, written, place.config)
        return min(at, place.look.at + _COUNTS_AGE) if place.unheld else at

    def ready(self, now: float) -> list[Place]:
        """The topics that are to get a turn now, in this order."""
        found = []
        for place in self._places.values():
            at = self.ready_at(place)
            if at > now:
                place.ready_since = math.inf
                continue
            place.ready_since = min(place.ready_since, now)
            found.append(place)
        return _in_order(found, now)

    def knows(self, place: Place) -> bool:
        """Whether it is still in the line."""
        return self._places.get(place.topic) is place

    def began(self, place: Place) -> None:
        """Its turn has begun: what is written from now on belongs to the next one."""
        place.running = True
        place.ready_since = math.inf
        place.written = {}

    def done(self, place: Place, look: Look, *, more: bool) -> None:
        """Its turn went well; ``more``: there is work left that is due."""
        place.running, place.failures = False, 0
        place.look, place.more = look, more
        place.partitions |= look.sealed.keys()
        self._forget(place)

    def failed(self, place: Place, now: float) -> None:
        """Its turn failed; ``retry_at`` is when it is tried again."""
        place.running = False
        place.failures += 1
        pause = back_off(place.failures, place.config.interval.total_seconds(), self._jitter())
        place.retry_at = now + pause
        self._forget(place)

    def _forget(self, place: Place) -> None:
        if not (place.served or place.wanted or place.running):
            del self._places[place.topic]


def _in_order(ready: list[Place], now: float) -> list[Place]:
    by_share = sorted(ready, key=lambda one: (one.wanted, one.share(now)), reverse=True)
    if len(by_share) < _FOR_THE_LONGEST:
        return by_share
    by_wait = iter(sorted(ready, key=lambda one: one.ready_since))
    closest = iter(by_share)
    found: dict[Topic, Place] = {}
    while len(found) < len(ready):
        line = by_wait if len(found) % _FOR_THE_LONGEST == _FOR_THE_LONGEST - 1 else closest
        one = next(line)
        while one.topic in found:
            one = next(line)
        found[one.topic] = one
    return list(found.values())
