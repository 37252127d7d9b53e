"""Why a segment is read from its tier, and why it is not read at all.

The enumerations carry the meaning: code compares them, and a snapshot's token holds their values.
Their texts are for people alone, and nothing else writes them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum


class Reason(Enum):
    """Why a segment is read from its tier. Values are stored (``docs/formats.md``): keep them."""

    FORCED = "forced"
    AT_WATERMARK = "at-watermark"
    IN_TABLE = "in-table"
    OLDER_COMMIT = "older-commit"
    LOST = "lost"
    DECLARED_LOST = "declared-lost"
    PULSAR_OFFLOADED = "pulsar-offloaded"
    PULSAR_TIERED = "pulsar-tiered"
    NO_METADATA = "no-metadata"
    SEALED = "sealed"
    OPEN = "open"
    SHORT_TAIL = "short-tail"


_REASONS = {
    Reason.FORCED: "forced",
    Reason.AT_WATERMARK: "at or below the watermark {}",
    Reason.IN_TABLE: "in the table, read from {}",
    Reason.OLDER_COMMIT: "in the table; its commit is older than those read from the log",
    Reason.LOST: "deleted before it was offloaded",
    Reason.DECLARED_LOST: "declared lost (pulsar.lost_ledgers): what can be read of it",
    Reason.PULSAR_OFFLOADED: "moved away by Pulsar's own tiered storage",
    Reason.PULSAR_TIERED: "moved there by Pulsar, not in the table yet",
    Reason.NO_METADATA: "Pulsar gives no ledger metadata",
    Reason.SEALED: "sealed, not offloaded yet",
    Reason.OPEN: "open, up to the last confirmed entry",
    Reason.SHORT_TAIL: "open, at most {} entries",
}


@dataclass(frozen=True, slots=True)
class TierReason:
    """A reason and what belongs to it; ``str`` is its text.

    ``detail``: AT_WATERMARK: the watermark; IN_TABLE, and DECLARED_LOST in the table: the tier that
    the offloader read; SHORT_TAIL: the most entries of one. None otherwise.
    ``expired_before``: rows published before it have expired (ms since the epoch); None: none has.
    """

    kind: Reason
    detail: int | str | None = None
    expired_before: int | None = None

    def __str__(self) -> str:
        text = _REASONS[self.kind].format(self.detail)
        if self.expired_before is None:
            return text
        at = datetime.fromtimestamp(self.expired_before / 1000, UTC)
        return f"{text}; rows published before {at:%Y-%m-%d %H:%M:%S}Z have expired"


class Pruned(Enum):
    """Why a segment is not read: no row of it can match, or it has none to give."""

    PARTITION = "partition"
    LEDGER = "ledger"
    EMPTY_RANGE = "empty-range"
    PUBLISH_TIMES = "publish-times"
    CLOSE_TIMES = "close-times"
    POSITIONS = "positions"
    EMPTY = "empty"
    WAITING = "waiting"
    LOST = "lost"
    UNNEEDED = "unneeded"


_PRUNED = {
    Pruned.PARTITION: "__partition is {}",
    Pruned.LEDGER: "__ledgerId is {}",
    Pruned.EMPTY_RANGE: "the time range is empty",
    Pruned.PUBLISH_TIMES: "learned publish times lie outside",
    Pruned.CLOSE_TIMES: "closed outside the range, clock_skew {} (not exact)",
    Pruned.POSITIONS: "outside the positions asked for",
    Pruned.EMPTY: "nothing in it",
    Pruned.WAITING: "all of it is behind an open transaction",
    Pruned.LOST: "its messages are lost",
    Pruned.UNNEEDED: "Spark answers the query without it",
}


@dataclass(frozen=True, slots=True)
class PruneReason:
    """Why a segment is not read, and what belongs to it; ``str`` is its text.

    ``detail``: PARTITION, LEDGER: the segment's number; CLOSE_TIMES: the clocks' allowance.
    """

    kind: Pruned
    detail: int | timedelta | None = None

    def __str__(self) -> str:
        return _PRUNED[self.kind].format(self.detail)
