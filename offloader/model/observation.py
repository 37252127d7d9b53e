"""What is known of topics: of all in a round, of one at its last turn, of one in the queue.

Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reader.model import Partition, Topic
from reader.pulsar import LoadedTopic

__all__ = ["Discovery", "Observation", "TopicState"]


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a round finds: all topics that are to be served, with their partitions where known.

    ``loaded``: None where brokers do not say.
    """

    topics: Mapping[Topic, tuple[Partition, ...]]
    loaded: Mapping[str, LoadedTopic] | None


@dataclass(frozen=True, slots=True)
class Observation:
    """One topic in its turn, after the commit of that turn, if there was any.

    ``sealed`` and ``unsealed``: by full name of a partition, the bytes of sealed ledgers that are
    not in the table, and of the open ledger. ``oldest``: when the first of those sealed was
    closed. ``release_at``: when more of the hold can be released. ``rollover_at``: when an open
    ledger is to be closed. ``give_up_at``: when a chunked message that is not complete is to be
    given up. None: nothing of the kind is waiting. ``ledgers``: how many of them are
    sealed and have entries. ``notes``: what is wrong, for people.
    """

    at: float
    sealed: Mapping[str, int] = field(default_factory=dict)
    unsealed: Mapping[str, int] = field(default_factory=dict)
    oldest: float | None = None
    release_at: float | None = None
    rollover_at: float | None = None
    give_up_at: float | None = None
    ledgers: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicState:
    """One topic in the queue, for those who watch.

    ``share``: how close to its limit (1.0: there), None before the first observation. ``next_at``:
    its next turn, None while it runs. ``observation``: the last one, if any; ``written``: bytes
    since then.
    """

    topic: Topic
    share: float | None
    running: bool
    failures: int
    next_at: float | None
    observation: Observation | None
    written: int
