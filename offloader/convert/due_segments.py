"""What is due: as segments and splits to read, and as the ledgers that a commit lists."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from offloader.convert.stored_entries import Source
from offloader.model import Due
from offloader.output import LedgerRows, WrittenFile
from reader.config import ReadConfig
from reader.errors import UnsupportedError
from reader.model import Partition, Segment, Split, Tier
from reader.model.columns import BROKER_NULLS
from reader.model.reasons import Reason, TierReason
from reader.plan import DataLoss, cut_ranges, partition_segments, whole
from reader.pulsar import PartitionLedgers
from reader.table import OffloadedLedger, TopicTable


def due_segments(
    settings: ReadConfig,
    source: Source,
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    dues: Sequence[Due],
) -> dict[tuple[Partition, int], Segment]:
    """What is due, as segments with their tier; forced to the broker where it is set so.

    Raises UnsupportedError for what only the broker can give, without that setting.
    """
    found = {}
    for one in dues:
        wanted = {ledger.ledger_id for ledger in one.ledgers}
        listing, lookback, closed_at = listed[one.partition], None, None
        if table is not None:
            numbers = table.numbers(one.partition)
            lookback, closed_at = numbers.lookback, numbers.closed_at
        for segment in partition_segments(
            settings, listing, one.watermark, lookback, closed_at=closed_at
        ):
            if segment.ledger_id not in wanted:
                continue
            if source == "broker" and segment.reason.kind is not Reason.DECLARED_LOST:
                forced = TierReason(Reason.FORCED)
                segment = replace(segment, tier=Tier.BROKER, reason=forced)
            elif segment.tier is Tier.BROKER and segment.last_entry >= 0:
                if segment.reason.kind is Reason.DECLARED_LOST:
                    raise UnsupportedError(
                        f"ledger {segment.ledger_id} of {one.partition} is declared lost, and no "
                        "place is named that may have what is left of it",
                        hint="name the bucket or directory of Pulsar's tiered storage in "
                        "[[tiered]], also where nothing is in it any more of this ledger",
                    )
                where = ""
                if segment.reason.kind is Reason.PULSAR_OFFLOADED:
                    where = "name the place in [[tiered]]; else "
                elif segment.reason.kind is Reason.NO_METADATA:
                    where = (
                        "where BookKeeper has lost them, pulsar.lost_ledgers = "
                        f"[{segment.ledger_id}] declares it lost (docs/operations.md); else "
                    )
                raise UnsupportedError(
                    f"ledger {segment.ledger_id} of {one.partition}: {segment.reason}",
                    hint=f"{where}only the broker can give it; "
                    'offload.source = "broker" allows that, at '
                    f"the cost of {' and '.join(BROKER_NULLS)} where the broker does not show them",
                )
            found[one.partition, segment.ledger_id] = segment
    return found


def due_splits(segments: Mapping[tuple[Partition, int], Segment], target_bytes: int) -> list[Split]:
    """What to read of them, in splits of about ``target_bytes``."""
    filled = [whole(one) for one in segments.values() if one.last_entry >= 0]
    return [split for some in cut_ranges(filled, target_bytes) for split in some]


def due_ledgers(
    listed: Mapping[Partition, PartitionLedgers],
    dues: Sequence[Due],
    segments: Mapping[tuple[Partition, int], Segment],
    files: Sequence[WrittenFile],
    losses: Sequence[DataLoss] = (),
    lost_ledgers: Collection[int] = (),
) -> tuple[OffloadedLedger, ...]:
    """What the commit says of each ledger; rows are counted by the tasks that wrote them.

    ``losses`` that it steps over are said before the ledger that follows them. ``lost_ledgers``:
    those that operators have declared lost: said of one that has rescued rows. Who has named a
    wrong one, or has restored it in time, has lost nothing.
    """
    counted: dict[int, list[LedgerRows]] = {}
    for file in files:
        for part in file.ledgers:
            counted.setdefault(part.ledger, []).append(part)
    found = []
    for one in dues:
        lost = {loss.before: loss.ledger for loss in losses if loss.partition == one.partition}
        for ledger in one.ledgers:
            if ledger.ledger_id in lost:
                gone = lost[ledger.ledger_id]
                found.append(OffloadedLedger.lost_one(one.partition.index, gone))
            parts = counted.get(ledger.ledger_id, [])
            lows = [p.min_publish_time for p in parts if p.min_publish_time is not None]
            highs = [p.max_publish_time for p in parts if p.max_publish_time is not None]
            found.append(
                OffloadedLedger(
                    partition=one.partition.index,
                    ledger=ledger.ledger_id,
                    entries=listed[one.partition].last_entry(ledger) + 1,
                    rows=sum(part.rows for part in parts),
                    bytes=ledger.bytes,
                    tier=segments[one.partition, ledger.ledger_id].tier,
                    min_publish_time=min(lows, default=None),
                    max_publish_time=max(highs, default=None),
                    closed_at=listed[one.partition].closed_at(ledger),
                    # Each entry that could not be read is one of these rows.
                    declared_lost=ledger.ledger_id in lost_ledgers
                    and any(part.rescued for part in parts),
                )
            )
    return tuple(found)
