"""PendingBlock: a block whose entries are requested; and the check of their digests."""

from collections.abc import Collection

import numpy as np

from reader.bookkeeper.digest import HEADER, code_length, verify
from reader.kernels.array_types import Bytes, Int64s
from reader.model import EntryBlock, LedgerMetadata

MAX_ENTRIES = 16_376
_DAMAGED = "digest mismatch on every replica"


class PendingBlock:
    """Entries first..last of a ledger, all of one ensemble, which are to become one block.

    In the end it has a ``block``, which may end before ``last``, or an ``error``. ``estimate``:
    bytes that the entries may take.
    """

    __slots__ = ("block", "ensemble", "error", "estimate", "first", "last", "ledger")

    def __init__(self, ledger: LedgerMetadata, first: int, last: int, estimate: int) -> None:
        self.ledger = ledger
        self.first = first
        self.last = last
        self.estimate = estimate
        self.ensemble = ledger.ensemble_at(first)
        self.block: EntryBlock | None = None
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.block is not None or self.error is not None

    def complete(
        self,
        password: bytes,
        arena: Bytes,
        offsets: Int64s,
        lengths: Int64s,
        damaged: Collection[int] = (),
    ) -> list[int]:
        """Make the block of its first entries, if all of them pass their digest.

        Entry i is ``arena[offsets[i] : offsets[i] + lengths[i]]``, as bookies store it. Those in
        ``damaged`` need not pass. ``password``: of ledgers whose metadata has none. Return the
        indices of the entries that fail, [] if there is a block.
        """
        ledger = self.ledger
        digest = ledger.digest_type
        ids = np.arange(self.first, self.first + len(offsets), dtype=np.int64)
        good = verify(
            digest, ledger.password or password, arena, offsets, lengths, ledger.ledger_id, ids
        )
        front: int | Int64s = HEADER + code_length(digest)
        if damaged:
            good[list(damaged)] = True
            front = np.minimum(front, lengths)
        if not good.all():
            return [int(row) for row in np.flatnonzero(~good)]
        self.block = EntryBlock(
            ledger.ledger_id, ids, offsets + front, lengths - front, arena,
            dict.fromkeys(damaged, _DAMAGED),
        )  # fmt: skip
        return []
