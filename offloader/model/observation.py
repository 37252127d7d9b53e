"""What is known of topics: of all in a round, of one at its last turn, of one in the queue.

Times are seconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from offloader.model.backlogs import TopicBacklog
from reader.model import Partition, Topic
from reader.pulsar import LoadedTopic


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

    ``at``: when it began. ``backlog``: what is not in the table. ``release_at``: when more of the
    hold can be released. ``rollover_at``: when an open ledger is to be closed. ``give_up_at``:
    when a chunked message that is not complete is to be given up. None: nothing of the kind is
    waiting. ``notes``: what is wrong, for people. ``brokers_ahead``: seconds by which the brokers'
    clock was ahead of this host's.
    """

    at: float
    backlog: TopicBacklog
    release_at: float | None = None
    rollover_at: float | None = None
    give_up_at: float | None = None
    notes: tuple[str, ...] = ()
    brokers_ahead: float = 0.0


@dataclass(frozen=True, slots=True)
class TopicState:
    """One topic in the queue, for those who watch.

    ``share``: how close to its limit (1.0: there), None before the first observation. ``next_at``:
    its next turn, None while it runs. ``observation``: of its last turn, if any. ``backlog``: the
    newest that is known, of that turn or by whoever has looked since; ``written``: bytes since
    then.
    """

    topic: Topic
    share: float | None
    running: bool
    failures: int
    next_at: float | None
    observation: Observation | None
    backlog: TopicBacklog | None
    written: int
