"""What of a partition is due, and what is not in the table yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reader.model import Partition
from reader.pulsar import LedgerInfo

__all__ = ["COMMIT_BYTES", "Backlog", "Due", "Trigger"]

Trigger = Literal["now", "size", "age", "chunks"]

COMMIT_BYTES = 4 << 30
"""One commit takes about so many stored bytes: a long backlog makes progress as it goes, and a
failure or a stop costs at most this much work."""


@dataclass(frozen=True, slots=True)
class Due:
    """The ledgers of one partition that go into the next commit.

    ``ledgers`` ascend, without gap, above ``watermark``; the last of them is the next watermark.
    There are none where all that is due is to give up chunked messages. ``bytes`` is what
    BookKeeper stores of them.
    """

    partition: Partition
    watermark: int
    ledgers: tuple[LedgerInfo, ...]
    trigger: Trigger
    reason: str
    created_at: str

    @property
    def upto(self) -> int:
        """The partition's watermark once these are committed."""
        return self.ledgers[-1].ledger_id if self.ledgers else self.watermark

    @property
    def bytes(self) -> int:
        return sum(ledger.bytes for ledger in self.ledgers)


@dataclass(frozen=True, slots=True)
class Backlog:
    """What of a partition is not in the table, in bytes: ``sealed`` ledgers, and all others.

    ``ledgers``: how many are sealed and have entries. ``oldest_ms``: when the first of the sealed
    was closed (0: by a recovery), ms since the epoch.
    """

    partition: Partition
    ledgers: int
    sealed: int
    unsealed: int
    oldest_ms: int | None
