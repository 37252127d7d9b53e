"""What one commit of maintenance takes out of a table and puts in; watermarks stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from offloader.output.files import LEAST_MAX_AGE_MS, WrittenFile
from reader.model import BEFORE_ALL, Partition, Position
from reader.table import PartitionNumbers, TopicNumbers, TopicTable


@dataclass(frozen=True, slots=True)
class ExpiredRows:
    """Rows of one partition that expire: none in a ledger below ``first``, none behind ``last``.

    ``given_up``: none is of a given-up message that begins behind it.
    """

    first: int
    last: Position
    given_up: Position = BEFORE_ALL

    def joined(self, other: ExpiredRows) -> ExpiredRows:
        """Return the range of both."""
        return ExpiredRows(
            min(self.first, other.first),
            max(self.last, other.last),
            max(self.given_up, other.given_up),
        )


@dataclass(frozen=True, slots=True)
class Replacement:
    """What one commit takes out and puts in.

    removes: bytes of each file, by path.
    changes: whether the table's rows are others after it.
    note: what the commit says of itself.
    expired: the rows of each partition that expire.
    expired_before: rows published before it expire (ms since the epoch); None: no row does.
    compaction_starts: ``PartitionNumbers.compaction_start`` of partitions where it has changed.
    max_age_ms: the maximum age of ``adds`` at the commit.
    """

    removes: Mapping[str, int]
    adds: tuple[WrittenFile, ...]
    changes: bool
    note: Mapping[str, Any]
    expired: Mapping[Partition, ExpiredRows] = field(default_factory=dict)
    expired_before: int | None = None
    compaction_starts: Mapping[Partition, int | None] = field(default_factory=dict)
    max_age_ms: int = LEAST_MAX_AGE_MS

    def transactions(self, table: TopicTable) -> dict[str, int]:
        """Return the numbers of the log that the commit sets on top of ``table``, by ``appId``.

        Numbers of expiry only grow: another maintainer may have come further meanwhile.
        """
        found: dict[str, int] = {}
        fields = PartitionNumbers
        for partition, start in self.compaction_starts.items():
            found |= fields.compaction_start.set(partition, start)
        for partition, rows in self.expired.items():
            known = table.numbers(partition)
            if known.expired_from is not None:
                before = ExpiredRows(known.expired_from, known.expired_upto, known.expired_given_up)
                rows = rows.joined(before)
            found |= fields.expired_from.set(partition, rows.first)
            found |= fields.expired_upto.set(partition, rows.last)
            found |= fields.expired_given_up.set(partition, rows.given_up)
            if self.expired_before is not None:
                at = max(self.expired_before, known.expired_before)
                found |= fields.expired_before.set(partition, at)
        if self.expired_before is not None:
            at = max(self.expired_before, table.topic_numbers.expired_before or 0)
            found |= TopicNumbers.expired_before.set(table.topic, at)
        return found
