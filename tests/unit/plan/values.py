"""Segments and snapshots for the tests of this folder."""

import pyarrow as pa

from reader.model import LedgerIdentity, LedgerMetadata, Partition, Segment, Tier, Topic
from reader.model.reasons import Reason, TierReason
from reader.plan.filters import Predicate
from reader.plan.snapshot import Snapshot

TOPIC = Topic("public", "default", "t")
LEDGER = LedgerMetadata(7, "CLOSED", 1, 1, 1, 99, "CRC32C", ((0, ("b:1",)),))


def segment(ledger: int = 7, entries: int = 100, size: int = 1000, partition: int = 0) -> Segment:
    return Segment(
        partition=Partition(TOPIC, partition),
        ledger_id=ledger,
        state="sealed",
        tier=Tier.BOOKKEEPER,
        reason=TierReason(Reason.SEALED),
        last_entry=entries - 1,
        entries=entries,
        bytes=size,
        metadata=LEDGER,
        identity=LedgerIdentity("2026-01-01T00:00:00Z", 1000 + ledger, entries - 1, size),
    )


def snapshot(*hot: Segment) -> Snapshot:
    return Snapshot(TOPIC, "", None, pa.schema([]), (), (), hot)


def time(op: str, *values: int) -> Predicate:
    return Predicate("__publishTime", op, values)
