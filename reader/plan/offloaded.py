"""The segments that a topic's table holds, by what its commits say of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from reader.model import Partition, Segment, Tier
from reader.model.columns import TIMESTAMP
from reader.model.reasons import Reason, TierReason
from reader.plan.cold_files import ColdFile, table_files
from reader.table import OffloadedLedger, TopicTable
from reader.table.log import recorded_ledgers

__all__ = ["ColdPart", "cold_part", "offloaded_segments"]


@dataclass(frozen=True, slots=True)
class ColdPart:
    """What one version of a topic's table holds: offloaded and lost segments, and its files."""

    segments: tuple[Segment, ...]
    files: tuple[ColdFile, ...]


def cold_part(table: TopicTable) -> ColdPart:
    """All of the version. Where log clean-up has removed commits, the rows themselves are asked."""
    commits = list(table.commits())
    recorded = {(one.partition, one.ledger): one for one in recorded_ledgers(commits)}
    if not commits or commits[-1].version > 0:
        recorded = _from_rows(table) | recorded
    return ColdPart(offloaded_segments(table, recorded.values()), table_files(table))


def offloaded_segments(
    table: TopicTable, recorded: Iterable[OffloadedLedger]
) -> tuple[Segment, ...]:
    """Ledgers that commits recorded, as segments; the last record of a ledger counts."""
    found = {(one.partition, one.ledger): _segment(table, one) for one in recorded}
    return tuple(found.values())


def _segment(table: TopicTable, one: OffloadedLedger) -> Segment:
    reason = _reason(table, one)
    return Segment(
        partition=Partition(table.topic, one.partition),
        ledger_id=one.ledger,
        state="lost" if one.lost else "offloaded",
        tier=Tier.PARQUET,
        reason=reason,
        last_entry=one.entries - 1,
        entries=one.entries,
        bytes=one.bytes,
        min_publish_time=one.min_publish_time,
        max_publish_time=one.max_publish_time,
        # How many are left, only the rows know.
        rows=one.rows if reason.expired_before is None else None,
    )


def _reason(table: TopicTable, one: OffloadedLedger) -> TierReason:
    if one.lost:
        return TierReason(Reason.LOST)
    return TierReason(Reason.IN_TABLE, one.tier, _expired_before(table, one))


def _expired_before(table: TopicTable, one: OffloadedLedger) -> int | None:
    """Rows of the ledger published before this (ms) have expired; None: none has."""
    before, oldest = table.expired_before, one.min_publish_time
    if before is None or oldest is None or oldest >= before * 1000:
        return None
    expired = table.expired(Partition(table.topic, one.partition))
    return before if one.ledger <= expired else None


def _from_rows(table: TopicTable) -> dict[tuple[int, int], OffloadedLedger]:
    keys = ["__partition", "__ledgerId"]
    parts = []
    for batch in table.batches([*keys, "__entryId", "__publishTime"]):
        parts.append(
            pa.Table.from_batches([batch])
            .group_by(keys)
            .aggregate(
                [
                    ("__entryId", "max"),
                    ("__entryId", "count"),
                    ("__publishTime", "min"),
                    ("__publishTime", "max"),
                ]
            )
        )
    if not parts:
        return {}
    total = (
        pa.concat_tables(parts)
        .group_by(keys)
        .aggregate(
            [
                ("__entryId_max", "max"),
                ("__entryId_count", "sum"),
                ("__publishTime_min", "min"),
                ("__publishTime_max", "max"),
            ]
        )
    )
    found = {}
    for row in total.to_pylist():
        first, last = row["__publishTime_min_min"], row["__publishTime_max_max"]
        one = OffloadedLedger(
            partition=row["__partition"],
            ledger=row["__ledgerId"],
            entries=row["__entryId_max_max"] + 1,
            rows=row["__entryId_count_sum"],
            bytes=0,
            tier=Tier.BOOKKEEPER,
            min_publish_time=None if first is None else pa.scalar(first, TIMESTAMP).value,
            max_publish_time=None if last is None else pa.scalar(last, TIMESTAMP).value,
        )
        found[(one.partition, one.ledger)] = one
    return found
