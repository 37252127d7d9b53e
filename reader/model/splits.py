"""A split: the entries of one segment that one task reads."""

from dataclasses import dataclass

from reader.model.ledgers import LedgerIdentity, SegmentState, Stored, Tier
from reader.model.positions import Position
from reader.model.reasons import TierReason
from reader.model.topics import Partition


@dataclass(frozen=True, slots=True)
class Split:
    """What one Spark task reads: entries first..last (inclusive) of one segment.

    ``state``, ``reason``, ``metadata``, ``lookback``, ``identity`` and ``opened_at`` are the
    segment's; ``bytes`` is an estimate. ``whole``: these are all entries of the segment, so its
    rows in the table have to be as many as the commit says.
    """

    partition: Partition
    ledger_id: int
    first_entry: int
    last_entry: int
    tier: Tier
    reason: TierReason
    state: SegmentState
    bytes: int
    metadata: Stored | None
    whole: bool
    lookback: Position | None = None
    identity: LedgerIdentity | None = None
    opened_at: int | None = None

    @property
    def entries(self) -> int:
        return self.last_entry - self.first_entry + 1
