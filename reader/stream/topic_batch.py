"""What lies between two positions of a stream: files, hot splits, and what they are filtered by.

A chunked message that is given up (``offload.chunk_timeout``) becomes a row of the table at the
place of its last chunk, which a stream may have passed. As messages are given up in the order of
their beginnings, an offset says of which there were rows by then (``PartitionOffset.given_up``),
and a batch has

1. of the rows at its places, all but those given up later than its end says;
2. of those at earlier places, the ones given up between its start and its end.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from reader import plan as plans
from reader.clients import Clients
from reader.model import Partition, Position, Tier
from reader.model.columns import FIRST_CHUNK
from reader.model.row_kinds import KIND_COLUMN, RowKind
from reader.stream.offsets import PartitionOffset

_Range = tuple[Position, Position]


@dataclass(frozen=True, slots=True)
class TopicBatch:
    """One topic's part of a batch: entries behind ``start`` up to ``end`` (inclusive) of each
    partition, as one snapshot has them, and the plan that reads them.

    ``ranges``: (first, last) of each partition that has got anything, by its index.
    """

    snapshot: plans.Snapshot
    start: Mapping[Partition, PartitionOffset]
    end: Mapping[Partition, PartitionOffset]
    ranges: Mapping[int, _Range]
    plan: plans.Plan

    @classmethod
    def of(
        cls,
        clients: Clients,
        snapshot: plans.Snapshot,
        start: Mapping[Partition, PartitionOffset],
        end: Mapping[Partition, PartitionOffset],
    ) -> TopicBatch:
        """Plan what lies between two places of each partition. Raises as ``make_plan``."""
        ranges = _ranges(start, end)
        nothing = Position(1 << 62, 0), None
        bounds: plans.Bounds = {**{one.index: nothing for one in end}, **ranges}
        plan = plans.make_plan(clients, snapshot, bounds=bounds, describe=False)
        cold = tuple(
            one
            for one in plan.cold
            if any(one.file.overlaps(index, *each) for index, each in ranges.items())
        )
        return cls(snapshot, start, end, ranges, replace(plan, cold=cold))

    def files(self) -> Mapping[str, Sequence[plans.ColdFile]]:
        """Return the files to read, by how their rows are filtered.

        whole: every row is of the batch. cut: only rows at its places are. late: rows of rule 2.
        """
        parts: dict[str, list[plans.ColdFile]] = {
            "whole": [],
            "cut": [],
            "late": [*self.late_files()],
        }
        for one in self.plan.cold:
            if one.read:
                parts["whole" if self.has_all_of(one.file) else "cut"].append(one.file)
        return parts

    def hot_reads(
        self,
        clients: Clients,
        tier: Tier,
        columns: Collection[str],
        predicates: Sequence[plans.Predicate],
        parallelism: int = 1,
    ) -> list[plans.Read]:
        """Return the reads of one tier that the batch needs, besides files.

        tier: of ``Tier.PARQUET``, encrypted entries alone. columns, predicates: what a query needs
        of the batch. parallelism: number of tasks that run at once.
        """
        plan = plans.narrow_plan(clients, self.plan, columns, predicates, parallelism=parallelism)
        snapshot = replace(self.snapshot, table=None)  # reads travel
        plan = replace(
            plan,
            snapshot=snapshot if tier.cold else replace(snapshot, ciphertext=None),
            segments=tuple(one for one in plan.segments if one.segment.tier is tier),
            cold=(),
        )
        found: list[plans.Read] = []
        for read in plans.plan_reads(plan, parallelism):
            if not isinstance(read, plans.EncryptedRead):
                found.append(read)
            elif self.has_cold_rows_of(read.partition):
                given_up = self.end[read.partition].given_up
                within = self.ranges[read.partition.index]
                found.append(replace(read, within=within, given_up_to=given_up))
        return found

    def has_cold_rows_of(self, partition: Partition) -> bool:
        """Whether it may have rows of the partition that lie in the table."""
        found, table = self.ranges.get(partition.index), self.snapshot.table
        return (
            found is not None
            and table is not None
            and found[0].ledger <= table.watermark(partition)
        )

    def has_all_of(self, file: plans.ColdFile) -> bool:
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

    # -- messages that were given up -----------------------------------------------------------

    @property
    def _late(self) -> dict[Partition, PartitionOffset]:
        """Where a stream had passed some that were given up by the end, and not at the start."""
        return {
            one: since
            for one, to in self.end.items()
            if (since := self.start[one]).given_up < to.given_up and since.given_up < since.at
        }

    def late_files(self) -> tuple[plans.ColdFile, ...]:
        """Those that may have rows of rule 2."""
        table, late = self.snapshot.table, self._late
        if table is None or not late:
            return ()
        return tuple(
            file
            for file in plans.table_files(table)
            # A message's row lies behind its beginning.
            if any(
                file.overlaps(one.index, since.given_up, since.at) for one, since in late.items()
            )
        )

    @property
    def inside(self) -> plans.Filter:
        """The filter for the rows at the batch's places."""
        ranges = sorted(self.ranges.items())
        return plans.AnyOf(tuple(plans.between(index, *each) for index, each in ranges))

    def late_filter(self, began: Mapping[Partition, PartitionOffset]) -> plans.Filter:
        """Return the filter for rule 2: rows behind where the stream ``began``."""
        nowhere = PartitionOffset()
        return plans.AnyOf(
            tuple(
                plans.AllOf(
                    (
                        plans.between(one.index, _after(began.get(one, nowhere).at), since.at),
                        _GIVEN_UP,
                        plans.behind(FIRST_CHUNK, since.given_up),
                        _not_behind(self.end[one].given_up),
                    )
                )
                for one, since in sorted(self._late.items())
            )
        )

    def unless_given_up_later(self) -> plans.Filter | None:
        """Return the filter for rule 1, or None if the table has nothing that it drops."""
        table = self.snapshot.table
        later = {
            one: to
            for one, to in sorted(self.end.items())
            if table is not None and (table.numbers(one).given_up or to.given_up) > to.given_up
        }
        if not later:
            return None
        kept: list[plans.Filter] = [
            plans.AnyOf((plans.Unequal("__partition", one.index), _not_behind(to.given_up)))
            for one, to in later.items()
        ]
        other_kinds = (
            plans.NullTest(KIND_COLUMN, True),
            plans.Unequal(KIND_COLUMN, RowKind.INCOMPLETE.value),
        )
        return plans.AnyOf((*other_kinds, plans.AllOf(tuple(kept))))


def _ranges(
    start: Mapping[Partition, PartitionOffset], end: Mapping[Partition, PartitionOffset]
) -> dict[int, _Range]:
    return {
        one.index: (_after(start[one].at), to.at)
        for one, to in end.items()
        if to.at > start[one].at
    }


def _after(at: Position) -> Position:
    return Position(at.ledger, at.entry + 1)


_GIVEN_UP = plans.Predicate(KIND_COLUMN, "=", (RowKind.INCOMPLETE.value,))


def _not_behind(at: Position) -> plans.Filter:
    """Return the filter for rows whose first chunk lies at a position or before."""
    ledger, entry = FIRST_CHUNK
    same = plans.Predicate(ledger, "=", (at.ledger,)), plans.Predicate(entry, "<=", (at.entry,))
    return plans.AnyOf((plans.Predicate(ledger, "<", (at.ledger,)), plans.AllOf(same)))
