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

from reader.clients import Clients
from reader.model import Partition, Position
from reader.model.columns import GIVEN_UP_ERROR, GIVEN_UP_PLACE
from reader.plan import ColdFile, Plan, Predicate, Snapshot, make_plan, table_files
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
            one.index: (_after(self.start[one].at), to.at)
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

    # -- messages that were given up -----------------------------------------------------------

    @property
    def _late(self) -> dict[Partition, PartitionOffset]:
        """Where a stream had passed some that were given up by the end, and not at the start."""
        return {
            one: since
            for one, to in self.end.items()
            if (since := self.start[one]).given_up < to.given_up and since.given_up < since.at
        }

    def late_files(self) -> tuple[ColdFile, ...]:
        """Those that may have rows of rule 2."""
        table, late = self.snapshot.table, self._late
        if table is None or not late:
            return ()
        return tuple(
            file
            for file in table_files(table)
            # A message's row lies behind its beginning.
            if any(
                file.overlaps(one.index, since.given_up, since.at) for one, since in late.items()
            )
        )

    def late_filter(self, began: Mapping[Partition, PartitionOffset]) -> str:
        """As Spark's SQL: the rows of rule 2, behind where the stream ``began``."""
        nowhere = PartitionOffset()
        parts = [
            f"({position_filter({one.index: (_after(began.get(one, nowhere).at), since.at)})}"
            f" AND {_IS_GIVEN_UP}"
            f" AND coalesce({_begins_behind(since.given_up)}, false)"
            f" AND NOT {_begins_behind(self.end[one].given_up)})"
            for one, since in sorted(self._late.items())
        ]
        return " OR ".join(parts) or "false"

    def unless_given_up_later(self) -> str:
        """As Spark's SQL, a filter for rule 1; "" where the table has nothing that it drops."""
        table = self.snapshot.table
        later = [
            f"(__partition = {one.index} AND {_begins_behind(to.given_up)})"
            for one, to in sorted(self.end.items())
            if table is not None and (table.numbers(one).given_up or to.given_up) > to.given_up
        ]
        return f"coalesce(NOT ({_IS_GIVEN_UP} AND ({' OR '.join(later)})), true)" if later else ""


def _after(at: Position) -> Position:
    return Position(at.ledger, at.entry + 1)


_IS_GIVEN_UP = f"startswith(__error, '{GIVEN_UP_ERROR}')"


def _begins_behind(at: Position) -> str:
    """As Spark's SQL, of a row of ``GIVEN_UP_ERROR``; NULL where it does not say."""
    ledger, entry = (
        f"try_cast(regexp_extract(__error, '{GIVEN_UP_PLACE}', {group}) AS BIGINT)"
        for group in (1, 2)
    )
    return f"({ledger} > {at.ledger} OR ({ledger} = {at.ledger} AND {entry} > {at.entry}))"


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
