"""What lies between two positions of a stream: files, hot splits, and what they are filtered by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reader.clients import Clients
from reader.model import Partition, Position
from reader.plan import ColdFile, Plan, Predicate, Snapshot, make_plan
from reader.stream.offsets import PartitionOffset

__all__ = ["TopicBatch", "position_filter"]

_Range = tuple[Position, Position]


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """One topic's part of a batch: entries behind ``start`` up to ``end`` (inclusive) of each
    partition, as one snapshot has them."""

    snapshot: Snapshot
    start: Mapping[Partition, PartitionOffset]
    end: Mapping[Partition, PartitionOffset]

    @property
    def ranges(self) -> dict[int, _Range]:
        """(first, last) of each partition that has got anything, by its index."""
        return {
            one.index: (Position(self.start[one].at.ledger, self.start[one].at.entry + 1), to.at)
            for one, to in self.end.items()
            if to.at > self.start[one].at
        }

    def plan(
        self,
        clients: Clients,
        columns: Collection[str] | None = None,
        predicates: Sequence[Predicate] = (),
        *,
        parallelism: int = 1,
    ) -> Plan:
        """What is read of it. Raises as ``make_plan``."""
        ranges = self.ranges
        nothing = Position(1 << 62, 0)
        starts = {one.index: nothing for one in self.end}
        starts |= {index: first for index, (first, _) in ranges.items()}
        plan = make_plan(
            clients,
            self.snapshot,
            columns,
            predicates,
            start=starts,
            end={index: last for index, (_, last) in ranges.items()},
            parallelism=parallelism,
            describe=False,
        )
        return replace(
            plan,
            cold=tuple(
                one
                for one in plan.cold
                if any(one.file.overlaps(index, *each) for index, each in ranges.items())
            ),
        )

    def has_cold_rows_of(self, partition: Partition) -> bool:
        """Whether it may have rows of the partition that lie in the table."""
        found, table = self.ranges.get(partition.index), self.snapshot.table
        return (
            found is not None
            and table is not None
            and found[0].ledger <= table.watermark(partition)
        )

    def has_all_of(self, file: ColdFile) -> bool:
        """Whether every row of the file is of this batch, by the file's statistics."""
        low, high = file.limit("__partition")
        least, greatest = file.limit("__ledgerId")
        found = self.ranges.get(low) if low is not None and low == high else None
        if found is None or least is None or greatest is None:
            return False
        (first, last), (low_entry, high_entry) = found, file.limit("__entryId")
        one = least == greatest
        begins = Position(least, low_entry if one and low_entry is not None else 0)
        ends = Position(greatest, high_entry) if one and high_entry is not None else None
        return begins >= first and (ends <= last if ends is not None else greatest < last.ledger)


def position_filter(ranges: Mapping[int, _Range]) -> str:
    """As Spark's SQL: the rows from a first to a last position (inclusive) of partitions."""
    ledger, entry = "__ledgerId", "__entryId"
    parts = [
        f"(__partition = {index}"
        f" AND ({ledger} > {low.ledger} OR ({ledger} = {low.ledger} AND {entry} >= {low.entry}))"
        f" AND ({ledger} < {high.ledger}"
        f" OR ({ledger} = {high.ledger} AND {entry} <= {high.entry})))"
        for index, (low, high) in sorted(ranges.items())
    ]
    return " OR ".join(parts) or "false"
