"""What a turn of a topic comes to: its commit, the moves of its holds, and what was observed.

``Workers``: who converts the topic, by how its last turn went.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from offloader.model.observation import Observation
from reader.model import Partition, Position, Topic

PHASES = ("list", "plan", "wait", "convert", "commit", "release")
"""What a turn's time goes to: Pulsar's lists and the table's log; schemas and splits; waiting for
a Spark job; that job; the commit; moving the hold."""

TaskCallback = Callable[[int, int], None]
"""Called with (tasks done, tasks in all) of a turn's Spark job, from any thread."""


class Workers(Enum):
    """Who converts a topic. Topics of one kind wait for no topic of another kind."""

    HEALTHY = "healthy"
    RETRIES = "retries"
    """Of topics whose last turn failed: each of their conversions may take as long as timeouts."""
    SLOW = "slow"
    """Of topics whose last conversion was slow: theirs may take hours."""

    def slots(self, cores: int) -> int:
        """Return how many of ``cores`` tasks may run at the same time.

        A task that waits for a server occupies a core: half of them are for healthy topics.
        """
        return cores if self is Workers.HEALTHY else max(1, cores // 4)


@dataclass(frozen=True, slots=True)
class Committed:
    """What one commit added.

    ``bytes``: of its files; ``stored``: of its ledgers, as BookKeeper counts them. ``rescued``:
    rows with an ``__error``.
    """

    version: int
    ledgers: int
    files: int
    rows: int
    bytes: int
    seconds: float
    reason: str
    stored: int = 0
    rescued: int = 0


@dataclass(frozen=True, slots=True)
class Release:
    """A move of one partition's hold: the next entry it needs, before and after."""

    partition: Partition
    before: Position
    after: Position


@dataclass(frozen=True, slots=True)
class Turn:
    """What came of one turn. ``more``: there is work left that is due. ``observation``:
    what is known of the topic after it. ``slow``: whether its conversion was slow; None if it had
    none."""

    topic: Topic
    committed: Committed | None
    released: tuple[Release, ...]
    more: bool
    observation: Observation
    slow: bool | None = None
