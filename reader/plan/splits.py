"""From a snapshot to what Spark tasks read, and why: pruning and splitting of hot segments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from reader.model import LedgerMetadata, Partition, Position, Segment, SegmentState, Tier
from reader.model.columns import BROKER_LOSSY, METADATA_NAMES
from reader.model.reasons import Pruned, PruneReason, Reason, TierReason
from reader.plan.publish_times import LearnedTimes
from reader.plan.snapshot import Snapshot

__all__ = [
    "Predicate",
    "Split",
    "known_rows",
    "pack_splits",
    "plan_splits",
    "prune_reason",
    "publish_range",
]

_MIN_SPLIT_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Predicate:
    """One conjunct of a filter, for pruning only: Spark evaluates all of them again.

    ``op``: one of = < <= > >= in. ``values``: one value (several for "in"); times as µs.
    """

    column: str
    op: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """What one Spark task reads: entries first..last (inclusive) of one segment.

    ``state``, ``reason`` and ``reach`` are the segment's; ``bytes`` is an estimate.
    """

    partition: Partition
    ledger_id: int
    first_entry: int
    last_entry: int
    tier: Tier
    reason: TierReason
    state: SegmentState
    bytes: int
    metadata: LedgerMetadata | None
    whole: bool
    reach: Position | None = None

    @property
    def entries(self) -> int:
        return self.last_entry - self.first_entry + 1


def publish_range(predicates: Sequence[Predicate]) -> tuple[int | None, int | None]:
    """The range (µs, both ends inclusive, None: open) that the predicates leave for publish time.

    An empty range comes out with its low end above its high end.
    """
    low: int | None = None
    high: int | None = None
    for one in predicates:
        if one.column != "__publishTime" or any(v is None for v in one.values) or not one.values:
            continue
        if one.op in ("=", ">=", ">", "in"):
            value = min(one.values) + (1 if one.op == ">" else 0)
            low = value if low is None else max(low, value)
        if one.op in ("=", "<=", "<", "in"):
            value = max(one.values) - (1 if one.op == "<" else 0)
            high = value if high is None else min(high, value)
    return low, high


def prune_reason(
    segment: Segment,
    predicates: Sequence[Predicate],
    known: LearnedTimes | None = None,
    clock_skew: timedelta | None = None,
    closed_before: int | None = None,
) -> PruneReason | None:
    """Why no row of the segment can match, or None: it has to be read.

    ``known`` is what complete reads learned. ``closed_before`` is when the partition's previous
    ledger was closed (ms): with ``clock_skew`` it bounds the publish times from below.
    """
    for one in predicates:
        if one.column in ("__partition", "__ledgerId"):
            kind, value = Pruned.LEDGER, segment.ledger_id
            if one.column == "__partition":
                kind, value = Pruned.PARTITION, segment.partition.index
            if not _may_match(one, value, value):
                return PruneReason(kind, value)
    low, high = publish_range(predicates)
    if low is None and high is None:
        return None
    if low is not None and high is not None and low > high:
        return PruneReason(Pruned.EMPTY_RANGE)
    if known is not None and known.covers(segment.last_entry):
        if known.messages == 0 or _outside(known.low, known.high, low, high):
            return PruneReason(Pruned.PUBLISH_TIMES)
        return None
    if clock_skew is not None:
        skew = int(clock_skew.total_seconds() * 1e6)
        first = None if closed_before is None else closed_before * 1000 - skew
        last = None if segment.closed_at is None else segment.closed_at * 1000 + skew
        if (first is not None and high is not None and first > high) or (
            last is not None and low is not None and last < low
        ):
            return PruneReason(Pruned.CLOSE_TIMES, clock_skew)
    return None


def _outside(first: int | None, last: int | None, low: int | None, high: int | None) -> bool:
    return (low is not None and last is not None and last < low) or (
        high is not None and first is not None and first > high
    )


def _may_match(one: Predicate, low: int, high: int) -> bool:
    values = [v for v in one.values if v is not None]
    if not values:
        return True
    match one.op:
        case "=" | "in":
            return any(low <= v <= high for v in values)
        case "<":
            return bool(low < values[0])
        case "<=":
            return bool(low <= values[0])
        case ">":
            return bool(high > values[0])
        case ">=":
            return bool(high >= values[0])
    return True


def known_rows(
    segments: Sequence[Segment], known: Mapping[tuple[int, int], LearnedTimes]
) -> tuple[int, tuple[Segment, ...]]:
    """(the rows of those segments whose number is known, the other segments)."""
    count = 0
    left = []
    for one in segments:
        found = known.get((one.partition.index, one.ledger_id))
        whole = found is not None and found.first == 0 and found.last == one.last_entry
        if found is not None and whole and one.state == "sealed":
            count += found.messages
        else:
            left.append(one)
    return count, tuple(left)


def plan_splits(
    snapshot: Snapshot,
    *,
    predicates: Sequence[Predicate] = (),
    columns: Collection[str] = METADATA_NAMES,
    target_bytes: int = 128 << 20,
    parallelism: int = 1,
    known: Mapping[tuple[int, int], LearnedTimes] | None = None,
    clock_skew: timedelta | None = None,
) -> list[Split]:
    """The splits of the snapshot's hot segments that may hold matching rows.

    ``known`` maps (partition index, ledger id) to learned ranges. A segment is cut by entry
    range so that a split is about ``target_bytes``, less where ``parallelism`` tasks would
    otherwise be idle. A short tail goes through the broker only if the query needs none of the
    columns that pulsar-client cannot give.
    """
    lossy = set(BROKER_LOSSY)
    if any(one.encoding == "SEPARATED" for one in snapshot.schemas):
        lossy |= set(snapshot.fields.names)  # partly in the key, of which the client blurs the kind
    needed = next((name for name in columns if name in lossy), None)
    kept = []
    closed_before: dict[int, int | None] = {}
    for segment in snapshot.hot:
        index = segment.partition.index
        reason = prune_reason(
            segment,
            predicates,
            (known or {}).get((index, segment.ledger_id)),
            clock_skew,
            closed_before.get(index),
        )
        closed_before[index] = segment.closed_at
        if reason is None:
            kept.append(_tail_tier(segment, needed))
    total = sum(segment.bytes for segment in kept)
    target = max(_MIN_SPLIT_BYTES, min(target_bytes, total // max(1, parallelism)))
    return [split for segment in kept for split in _cut(segment, target)]


def _tail_tier(segment: Segment, needed: str | None) -> Segment:
    if segment.reason.kind is not Reason.SHORT_TAIL or segment.metadata is None or needed is None:
        return segment
    return replace(
        segment,
        tier="bookkeeper",
        reason=TierReason(Reason.SHORT_TAIL_COLUMN, needed),
    )


def _cut(segment: Segment, target: int) -> list[Split]:
    count = max(1, -(-segment.bytes // target))
    if segment.tier == "broker":
        count = 1  # every reader of a partition costs the broker a cursor
    step = -(-segment.entries // count)
    return [
        Split(
            partition=segment.partition,
            ledger_id=segment.ledger_id,
            first_entry=first,
            last_entry=min(first + step - 1, segment.last_entry),
            tier=segment.tier,
            reason=segment.reason,
            state=segment.state,
            bytes=segment.bytes * min(step, segment.entries - first) // segment.entries,
            metadata=segment.metadata,
            whole=step >= segment.entries,
            reach=segment.reach,
        )
        for first in range(0, segment.entries, step)
    ]


def _same_reader(one: Split, other: Split) -> bool:
    return one.tier == other.tier == "broker" and one.partition == other.partition


def pack_splits(splits: Sequence[Split], target_bytes: int, most: int = 64) -> list[list[Split]]:
    """Neighbouring small splits put together, so that a task has about ``target_bytes`` to do.

    Never more than ``most`` splits a task, and the order of splits is kept. What the broker gives
    of a partition stays together: one reader has to see all chunks of a message.
    """
    packs: list[list[Split]] = []
    size = 0
    for split in splits:
        fits = packs and size + split.bytes <= target_bytes and len(packs[-1]) < most
        if fits or (packs and _same_reader(packs[-1][-1], split)):
            packs[-1].append(split)
            size += split.bytes
        else:
            packs.append([split])
            size = split.bytes
    return packs
