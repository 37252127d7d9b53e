"""Which sealed ledgers of a partition are due, and why. Pure: lists, a clock and settings in.

What is due is always a gap-free prefix of the ledgers above the watermark, so that one number,
the last of them, says what is in the table. The prefix ends before

- the open ledger: the last one, unless the topic is terminated and the ledger closed;
- a ledger that an undecided transaction reaches into (an entry above ``max_read``).

Ledgers without entries, and those that Pulsar has deleted, are passed over with the others.
"""

from collections.abc import Sequence

from offloader.config import OffloadConfig
from offloader.model import COMMIT_BYTES, Due, Trigger
from reader.model import Partition, Position
from reader.pulsar import LedgerInfo, PartitionLedgers


def sealed(partition: PartitionLedgers, watermark: int) -> tuple[LedgerInfo, ...]:
    """The ledgers above ``watermark`` that can be offloaded: a gap-free prefix, ascending."""
    found: list[LedgerInfo] = []
    for i, ledger in enumerate(partition.ledgers):
        if ledger.ledger_id <= watermark:
            continue
        if i == len(partition.ledgers) - 1 and not (partition.terminated and ledger.closed):
            break
        end = partition.last_entry(ledger)
        if end >= 0 and Position(ledger.ledger_id, end) > partition.max_read:
            break
        found.append(ledger)
    return tuple(found)


def filled(partition: PartitionLedgers, watermark: int) -> tuple[LedgerInfo, ...]:
    """Those of ``sealed`` that have entries."""
    return tuple(one for one in sealed(partition, watermark) if partition.last_entry(one) >= 0)


def opened_at(partition: PartitionLedgers) -> int | None:
    """When the open ledger was made, ms since the epoch; None where it has no entry."""
    last = partition.last_confirmed
    written = (
        partition.ledgers and partition.ledgers[-1].ledger_id == last.ledger and last.entry >= 0
    )
    return partition.opened_at if written and not partition.terminated else None


def due(
    partition: PartitionLedgers,
    watermark: int,
    *,
    clock_ms: int,
    config: OffloadConfig,
    now: bool = False,
) -> Due | None:
    """What of the partition is due; None: nothing yet.

    Ages are by the brokers' clock, which closed the ledgers. ``clock_ms``: this host's, ms since
    the epoch, for a listing without the brokers' time. ``now`` asks for all sealed ledgers,
    whatever the settings say.
    """
    ledgers, waiting = sealed(partition, watermark), filled(partition, watermark)
    if not ledgers or not (waiting or now):
        return None
    at_ms = clock_ms if partition.listed_at is None else partition.listed_at
    trigger, reason = _trigger(waiting, at_ms, config, now)
    if trigger is None:
        return None
    return Due(partition.partition, watermark, ledgers, trigger, reason, partition.created_at)


def _trigger(
    waiting: Sequence[LedgerInfo], clock_ms: int, config: OffloadConfig, now: bool
) -> tuple[Trigger | None, str]:
    if now:
        return "now", "requested"
    size = sum(ledger.bytes for ledger in waiting)
    if size >= config.threshold_bytes:
        return "size", f"{size} bytes sealed, threshold {int(config.threshold_bytes)}"
    # A ledger without a close time was closed by a recovery: older than any that has one.
    oldest_ms = min(ledger.closed_at or 0 for ledger in waiting)
    age = (clock_ms - oldest_ms) / 1000
    if age >= config.max_age.total_seconds():
        return "age", f"oldest closed {age:.0f} s ago, max_age {config.max_age.total_seconds():g} s"
    return None, ""


def overdue(partition: PartitionLedgers, watermark: int, give_up_at: int | None) -> Due | None:
    """What is due of a partition without a due ledger: chunked messages to be given up.

    ``give_up_at``: when, ms since the epoch by the broker's clock; None: there are none.
    """
    now = partition.listed_at
    if give_up_at is None or now is None or give_up_at > now:
        return None
    reason = "chunked messages were not completed within chunk_timeout"
    return Due(partition.partition, watermark, (), "chunks", reason, partition.created_at)


def within(dues: Sequence[Due], limit: int = COMMIT_BYTES) -> tuple[Due, ...]:
    """The same, cut to prefixes of about ``limit`` bytes together; at least one ledger each."""
    share = limit // max(1, sum(bool(one.ledgers) for one in dues))
    return tuple(_cut(one, share) for one in dues)


def within_few(dues: Sequence[Due], limit: int) -> tuple[Due, ...]:
    """The same for a slow topic: of few partitions, but at least one ledger in all.

    The partitions that have waited for longest come first. A ledger of each partition may take
    longer than a file may be old when it is committed.
    """
    chosen: dict[Partition, Due] = {}
    left = limit
    for one in sorted(dues, key=_closed_at):
        if not one.ledgers:
            chosen[one.partition] = one
        elif left == limit or one.ledgers[0].bytes <= left:
            chosen[one.partition] = cut = _cut(one, left)
            left -= max(1, cut.bytes)
    return tuple(chosen[one.partition] for one in dues if one.partition in chosen)


def _closed_at(one: Due) -> int:
    return min((ledger.closed_at or 0 for ledger in one.ledgers), default=0)


def _cut(one: Due, share: int) -> Due:
    total = 0
    for i, ledger in enumerate(one.ledgers):
        total += ledger.bytes
        if total > share and i > 0:
            return Due(
                one.partition,
                one.watermark,
                one.ledgers[:i],
                one.trigger,
                one.reason,
                one.created_at,
            )
    return one
