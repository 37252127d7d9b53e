"""Every segment of a topic with its tier and reason, and what a time range leaves to read.

Values for ``segments``, ``explain`` and tests; nothing here is only a log line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from reader.config import ReadConfig
from reader.model import Partition, Segment, Topic
from reader.model.columns import TIMESTAMP
from reader.model.reasons import PruneReason, Reason, TierReason
from reader.plan.publish_times import LearnedTimes, PublishTimeStore
from reader.plan.snapshot import Snapshot, take_snapshot
from reader.plan.splits import Predicate, prune_reason, publish_range
from reader.pulsar.admin import AdminClient
from reader.storage import open_storage
from reader.table import LOST, OffloadedLedger, TopicTable

__all__ = ["Explanation", "PlannedSegment", "explain", "list_segments", "table_reason"]


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """A segment and what a query does with it. ``pruned`` is why it is not read, or None."""

    segment: Segment
    pruned: PruneReason | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a query over a time range reads, of all there is.

    Files and bytes are the table's Parquet files by their statistics; hot segments are in
    ``segments`` beside the cold ones.
    """

    topic: Topic
    version: int | None
    segments: tuple[PlannedSegment, ...]
    files: int
    files_read: int
    file_bytes: int
    file_bytes_read: int

    def __str__(self) -> str:
        lines = [f"{self.topic}, table version {self.version}"]
        for one in self.segments:
            s = one.segment
            fate = f"pruned: {one.pruned}" if one.pruned else "read"
            lines.append(
                f"  {s.partition.index:>3} {s.ledger_id:>8} {s.state:<9} {s.tier:<10} {fate}; "
                f"{s.reason}; {s.entries} entries, {s.bytes} bytes"
            )
        lines.append(
            f"  parquet: {self.files_read} of {self.files} files, "
            f"{self.file_bytes_read} of {self.file_bytes} bytes"
        )
        return "\n".join(lines)


def list_segments(
    config: ReadConfig, admin: AdminClient, topic: Topic, snapshot: Snapshot | None = None
) -> list[Segment]:
    """All segments of the topic, by partition and ledger: the table's and Pulsar's."""
    found = snapshot or take_snapshot(config, admin, topic)
    table = _table(config, found)
    known = PublishTimeStore(config, topic).known()
    hot = [_with_range(one, known.get((one.partition.index, one.ledger_id))) for one in found.hot]
    cold = _offloaded(table, topic) if table else {}
    for one in found.cold:
        key = (one.partition.index, one.ledger_id)
        if key not in cold and one.entries:
            cold[key] = one
    return sorted([*cold.values(), *hot], key=lambda s: (s.partition, s.ledger_id))


def explain(
    config: ReadConfig,
    admin: AdminClient,
    topic: Topic,
    predicates: Sequence[Predicate] = (),
    snapshot: Snapshot | None = None,
) -> Explanation:
    """What a query with ``predicates`` reads of ``topic``."""
    found = snapshot or take_snapshot(config, admin, topic)
    known = PublishTimeStore(config, topic).known()
    planned: list[PlannedSegment] = []
    closed_before: dict[int, int | None] = {}
    for one in list_segments(config, admin, topic, found):
        index = one.partition.index
        learned = known.get((index, one.ledger_id))
        if one.state == "offloaded" and one.rows is not None:
            learned = LearnedTimes(
                index, one.ledger_id, 0, one.last_entry, one.rows,
                one.min_publish_time, one.max_publish_time,
            )  # fmt: skip
        pruned = prune_reason(
            one, predicates, learned, config.query.clock_skew, closed_before.get(index)
        )
        closed_before[index] = one.closed_at
        planned.append(PlannedSegment(one, pruned))
    table = _table(config, found)
    files, kept = _files(table, predicates) if table else ([], [])
    return Explanation(
        topic=topic,
        version=found.version,
        segments=tuple(planned),
        files=len(files),
        files_read=len(kept),
        file_bytes=sum(files),
        file_bytes_read=sum(kept),
    )


def _table(config: ReadConfig, snapshot: Snapshot) -> TopicTable | None:
    if snapshot.version is None:
        return None
    return TopicTable.open(open_storage(config.storage), snapshot.topic, snapshot.version)


def _with_range(segment: Segment, known: LearnedTimes | None) -> Segment:
    if known is None or not known.covers(segment.last_entry) or segment.state != "sealed":
        return segment
    return replace(
        segment,
        rows=known.messages,
        min_publish_time=known.low,
        max_publish_time=known.high,
    )


def _offloaded(table: TopicTable, topic: Topic) -> dict[tuple[int, int], Segment]:
    recorded = {(one.partition, one.ledger): one for one in table.ledgers()}
    oldest = min((c["version"] for c in table.commits()), default=0)
    if oldest > 0:  # log clean-up has removed commits: ask the rows themselves
        recorded = _from_rows(table) | recorded
    return {
        key: Segment(
            partition=Partition(topic, one.partition),
            ledger_id=one.ledger,
            state="lost" if one.tier == LOST else "offloaded",
            tier="parquet",
            reason=table_reason(table, one),
            last_entry=one.entries - 1,
            entries=one.entries,
            bytes=one.bytes,
            min_publish_time=one.min_publish_time,
            max_publish_time=one.max_publish_time,
            # How many are left, only the rows know.
            rows=one.rows if table_reason(table, one).expired_before is None else None,
        )
        for key, one in recorded.items()
    }


def table_reason(table: TopicTable, one: OffloadedLedger) -> TierReason:
    """What became of a ledger of the table, row expiry included."""
    if one.tier == LOST:
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
            tier="bookkeeper",
            min_publish_time=None if first is None else pa.scalar(first, TIMESTAMP).value,
            max_publish_time=None if last is None else pa.scalar(last, TIMESTAMP).value,
        )
        found[(one.partition, one.ledger)] = one
    return found


def _files(table: TopicTable, predicates: Sequence[Predicate]) -> tuple[list[int], list[int]]:
    """Sizes of all data files, and of those whose publish times may match."""
    actions = table.files()
    sizes = actions.column("size_bytes").to_pylist()
    low, high = publish_range(predicates)
    names = actions.schema.names
    if "min.__publishTime" not in names or (low is None and high is None):
        return sizes, sizes
    firsts = pc.cast(actions.column("min.__publishTime"), TIMESTAMP).cast(pa.int64()).to_pylist()
    lasts = pc.cast(actions.column("max.__publishTime"), TIMESTAMP).cast(pa.int64()).to_pylist()
    kept = [
        size
        for size, first, last in zip(sizes, firsts, lasts, strict=True)
        if (low is None or last is None or last >= low)
        and (high is None or first is None or first <= high)
    ]
    return sizes, kept
