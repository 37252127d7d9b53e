"""What of a topic is not in its table: the one value of all who show it or go by it."""

from dataclasses import dataclass

from reader.model import Partition, Position
from reader.pulsar import PartitionLedgers


@dataclass(frozen=True, slots=True)
class Backlog:
    """What of a partition is not in the table, in bytes: ``sealed`` ledgers, and all others.

    ``watermark``: -1 where nothing is in the table. ``hold``: the next entry that Pulsar keeps for
    us, None without a hold. ``ledgers``: how many are sealed and have entries; ``tiered``: how many
    of these are in Pulsar's own tiered storage. ``oldest_ms``: when the first of them was closed
    (0: by a recovery, nobody knows when); ``closed_ms``: the first of those of which it is known.
    Ms since the epoch, None: there is none.
    """

    partition: Partition
    watermark: int
    hold: Position | None
    ledgers: int
    sealed: int
    unsealed: int
    oldest_ms: int | None
    closed_ms: int | None
    tiered: int = 0

    def lag_seconds(self, now: float) -> float:
        """Since the first was closed; ``now``: seconds since the epoch."""
        return 0.0 if self.closed_ms is None else max(0.0, now - self.closed_ms / 1000)


@dataclass(frozen=True, slots=True)
class TopicBacklog:
    """What of a topic is not in its table: Pulsar's lists, less the table's watermarks.

    ``asked``: when Pulsar was asked for the lists, and ``read``: when the table's log was read, in
    seconds by this process's monotonic clock: they say which of two backlogs is newer. ``at``: the
    former in seconds since the epoch, for people. ``version``: of the table; None: there is none.
    ``listed``: the lists, without the ledgers that were in the table; ``subscription``: whose holds
    these are.
    """

    at: float
    asked: float
    read: float
    version: int | None
    partitions: tuple[Backlog, ...]
    listed: tuple[PartitionLedgers, ...] = ()
    subscription: str = ""

    @property
    def ledgers(self) -> int:
        """How many are sealed and have entries."""
        return sum(one.ledgers for one in self.partitions)

    @property
    def sealed(self) -> int:
        """Their bytes."""
        return sum(one.sealed for one in self.partitions)

    @property
    def unsealed(self) -> int:
        """Bytes of all others."""
        return sum(one.unsealed for one in self.partitions)

    @property
    def oldest(self) -> float | None:
        """When the first of those sealed was closed, in seconds (0: nobody knows)."""
        found = [one.oldest_ms for one in self.partitions if one.oldest_ms is not None]
        return min(found) / 1000 if found else None

    def lag_seconds(self, now: float) -> float:
        """The largest of its partitions."""
        return max((one.lag_seconds(now) for one in self.partitions), default=0.0)
