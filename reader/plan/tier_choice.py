"""Where a tier is chosen: the ledgers of a partition as segments, each with its tier and why.

Nothing but the table's watermark decides what is cold.
"""

from collections.abc import Sequence
from dataclasses import replace

from reader.config import ReadConfig
from reader.model import Position, Segment, SegmentState, Tier
from reader.model.reasons import Reason, TierReason
from reader.pulsar import LedgerInfo, PartitionLedgers


def partition_segments(
    settings: ReadConfig,
    listing: PartitionLedgers,
    watermark: int,
    lookback: Position | None = None,
    *,
    closed_at: int | None = None,
    forced: Tier | None = None,
) -> list[Segment]:
    """The partition's ledgers as segments, each with its last readable entry and its tier.

    Entries behind an open transaction (after ``max_read``) only wait in a segment. ``lookback``:
    where the first message begins of which an end above the ``watermark`` is still to come, as
    the table has it. ``closed_at``: when the last ledger up to the watermark was closed (ms).
    ``forced``: the tier of them all.
    """
    end = min(listing.last_confirmed, listing.max_read)
    topic = listing.partition.topic
    has_tiered = any(one.has(topic.tenant, topic.namespace) for one in settings.tiered)
    follows = bool(listing.ledgers) and listing.ledgers[0].ledger_id > watermark
    opened = listing.opened_times(closed_at if follows else None)
    segments = []
    for position, info in enumerate(listing.ledgers):
        last_of_all = position == len(listing.ledgers) - 1
        closed = not last_of_all or (listing.terminated and info.closed)
        last = written = listing.last_entry(info)
        if info.ledger_id > end.ledger:
            last = -1
        elif info.ledger_id == end.ledger:
            last = min(last, end.entry)
        state: SegmentState = "sealed" if closed else "open"
        if forced is not None:
            tier, reason = forced, TierReason(Reason.FORCED)
        elif info.ledger_id <= watermark:
            tier, reason = Tier.PARQUET, TierReason(Reason.AT_WATERMARK, watermark)
        else:
            tier, reason = _hot(info, state, last, settings.query.tail_entries, has_tiered)
            if info.ledger_id in settings.pulsar.lost_ledgers and closed:
                tier, reason = _declared(info, tier), TierReason(Reason.DECLARED_LOST)
        segments.append(
            Segment(
                partition=listing.partition,
                ledger_id=info.ledger_id,
                state="offloaded" if info.ledger_id <= watermark else state,
                tier=tier,
                reason=reason,
                last_entry=last,
                entries=last + 1,
                bytes=listing.open_bytes if last_of_all else info.bytes,
                metadata=info.stored,
                closed_at=info.closed_at,
                waiting=written - last,
                identity=listing.identity(info),
                created_at=listing.created_at,
                opened_at=opened[info.ledger_id],
            )
        )
    return _with_lookback(segments, lookback)


def _with_lookback(segments: Sequence[Segment], recorded: Position | None) -> list[Segment]:
    """Where the messages of the hot segments begin at the earliest.

    The ledger named is one that is there, so that it can be seen when it has gone: where the one
    that was ``recorded`` is not any more, others that begin later may still be.
    """
    hot = [one for one in segments if not one.tier.cold and one.last_entry >= 0]
    if not hot:
        return list(segments)
    lookback = Position(hot[0].ledger_id, 0)
    if recorded is not None:
        lookback = min(lookback, max(recorded, Position(segments[0].ledger_id, 0)))
    return [replace(one, lookback=lookback) if not one.tier.cold else one for one in segments]


def _declared(info: LedgerInfo, tier: Tier) -> Tier:
    """Of one without anything to read it by: nothing can be read where it was stored."""
    return Tier.BOOKKEEPER if info.metadata is None and not info.offloaded else tier


def _hot(
    info: LedgerInfo, state: SegmentState, last: int, tail_entries: int, has_tiered: bool
) -> tuple[Tier, TierReason]:
    """Of a ledger that is not in the table. ``has_tiered``: some ``[[tiered]]`` may have it."""
    if info.offloaded:
        if has_tiered and info.offload is not None:
            return Tier.TIERED, TierReason(Reason.PULSAR_TIERED)
        return Tier.BROKER, TierReason(Reason.PULSAR_OFFLOADED)
    if info.metadata is None:
        return Tier.BROKER, TierReason(Reason.NO_METADATA)
    if state == "sealed":
        return Tier.BOOKKEEPER, TierReason(Reason.SEALED)
    if last < tail_entries:
        return Tier.BROKER, TierReason(Reason.SHORT_TAIL, tail_entries)
    return Tier.BOOKKEEPER, TierReason(Reason.OPEN)
