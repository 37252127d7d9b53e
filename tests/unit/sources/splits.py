"""Splits for tests."""

from reader.model import LedgerMetadata, Partition, Split, Tier, Topic
from reader.model.reasons import Reason, TierReason

PARTITION = Partition(Topic.parse("a/b/c"), -1)


def split(
    ledger: int = 1,
    first: int = 0,
    last: int = 1,
    *,
    tier: Tier = Tier.BOOKKEEPER,
    short_tail: bool = False,
    metadata: LedgerMetadata | None = None,
) -> Split:
    """A split of a sealed ledger, or of an open one with a short tail."""
    return Split(
        partition=PARTITION,
        ledger_id=ledger,
        first_entry=first,
        last_entry=last,
        tier=tier,
        state="open" if short_tail else "sealed",
        reason=TierReason(Reason.SHORT_TAIL if short_tail else Reason.SEALED),
        metadata=metadata,
        bytes=1,
        whole=True,
    )


def metadata_of(ledger: int, *bookies: str) -> LedgerMetadata:
    """Of a closed ledger with entries 0 to 9."""
    return LedgerMetadata(
        ledger_id=ledger,
        state="CLOSED",
        ensemble_size=len(bookies),
        write_quorum=1,
        ack_quorum=1,
        last_entry=9,
        digest_type="CRC32C",
        ensembles=((0, bookies),),
    )
