"""What of a partition is due."""

from dataclasses import dataclass
from typing import Literal

from reader.model import Partition
from reader.pulsar import LedgerInfo

Trigger = Literal["now", "size", "age", "chunks"]

COMMIT_BYTES = 4 << 30
"""One commit takes about so many stored bytes: a long backlog makes progress as it goes, and a
failure or a stop costs at most this much work."""

SLOW_COMMIT_BYTES = 256 << 20
"""The same of a slow topic: other slow topics wait, and its files must not be too old."""


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
