"""What a turn works on, and what was asked of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from offloader.model import TaskCallback, Workers
from reader.model import Partition, Position, Topic
from reader.plan import DataLoss
from reader.pulsar import PartitionLedgers
from reader.table import TopicTable


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """How a turn is to be done: see ``TopicOffloader.turn``."""

    now: bool
    workers: Workers
    progress: TaskCallback


@dataclass(frozen=True, slots=True)
class HeldTopic:
    """A topic under its hold: its ledgers, and its table, which was read after them.

    ``began``: when that began, and ``read``: when the table's log was read, in seconds by a
    monotonic clock. ``began_ms``: the former in ms since the epoch. ``table``: None where there is
    none yet.
    ``lost``: ledgers that went unconverted, and that no commit has named yet. ``notes``: what is
    wrong, for people.
    """

    topic: Topic
    began_ms: int
    began: float
    read: float
    listed: Mapping[Partition, PartitionLedgers]
    table: TopicTable | None
    lost: tuple[DataLoss, ...]
    notes: tuple[str, ...]

    @property
    def recovering(self) -> bool:
        """Whether a broker cannot tell yet what is due of some partition."""
        return any(one.recovering for one in self.listed.values())

    def watermarks(self) -> dict[Partition, int]:
        """Of each partition; -1: nothing of it is in the table."""
        table = self.table
        return {one: table.watermark(one) if table else -1 for one in self.listed}

    def lookbacks(self) -> dict[Partition, Position | None]:
        """Where the first message of each begins that its watermark leaves incomplete, if any."""
        table = self.table
        return {one: table.numbers(one).lookback if table else None for one in self.listed}
