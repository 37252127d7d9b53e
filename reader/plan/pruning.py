"""Which segments and files cannot have a matching row, by partition, ledger and publish time."""

from collections.abc import Sequence
from datetime import timedelta

from reader.model import Segment
from reader.model.reasons import Pruned, PruneReason
from reader.plan.filters import Predicate
from reader.plan.publish_times import LearnedTimes


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
    learned: LearnedTimes | None = None,
    clock_skew: timedelta | None = None,
    closed_before: int | None = None,
) -> PruneReason | None:
    """Why no row of the segment can match, or None: it has to be read.

    ``learned``: by complete reads, or by the commit that offloaded it. ``closed_before``
    is when the partition's previous ledger was closed (ms): with ``clock_skew`` it bounds the
    publish times from below.
    """
    for one in predicates:
        if one.column in ("__partition", "__ledgerId"):
            kind, value = Pruned.LEDGER, segment.ledger_id
            if one.column == "__partition":
                kind, value = Pruned.PARTITION, segment.partition.index
            if not may_match(one, value, value):
                return PruneReason(kind, value)
    low, high = publish_range(predicates)
    if low is None and high is None:
        return None
    if low is not None and high is not None and low > high:
        return PruneReason(Pruned.EMPTY_RANGE)
    if learned is not None and learned.covers(segment.last_entry):
        if learned.messages == 0 or outside(learned.low, learned.high, low, high):
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


def outside(first: int | None, last: int | None, low: int | None, high: int | None) -> bool:
    """Whether first..last has nothing of low..high: publish times, µs, both ends inclusive.

    None: unknown (first, last), or open (low, high).
    """
    return (low is not None and last is not None and last < low) or (
        high is not None and first is not None and first > high
    )


def may_match(one: Predicate, low: int, high: int) -> bool:
    """Whether a value from low to high (inclusive) may satisfy the predicate.

    In the unit of its column, as the predicate's values: µs for a time, else a plain number.
    """
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
