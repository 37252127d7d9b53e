"""BlockPlanner: ranges of entries, split into blocks of about a size."""

from collections.abc import Iterable

from reader.bookkeeper.digest import code_length
from reader.bookkeeper.reads.pending_block import MAX_ENTRIES, PendingBlock
from reader.model import EntryBlock, LedgerMetadata

_FIRST_ENTRIES = 64  # of a striped ledger, before the size of its entries is known
_USUAL_BYTES = 1024  # of an entry, before any has arrived

Range = tuple[LedgerMetadata, int, int]


def is_striped(ledger: LedgerMetadata) -> bool:
    """Return whether bookies lack entries: an answer to a range read would end early."""
    return ledger.ensemble_size != ledger.write_quorum


class BlockPlanner:
    """Plans the blocks of ranges (ledger, first entry, last entry), in their order.

    ``error``: what is wrong with the next range, or with the iterable of the ranges.
    """

    def __init__(self, ranges: Iterable[Range], block_bytes: int) -> None:
        self._ranges = iter(ranges)
        self._block_bytes = block_bytes
        self._rest: Range | None = None  # of the range that is being split
        self._probed: int | None = None  # a ledger of whose entries the first were planned
        self._mean: dict[int, int] = {}  # bytes of an entry of the last block, by ledger
        self._usual = _USUAL_BYTES
        self.error: Exception | None = None

    def next_block(self) -> PendingBlock | None:
        """Plan the next block.

        Return None at the end, and while the size of the ledger's entries is not known.
        """
        if self._rest is None and not self._next_range():
            return None
        assert self._rest is not None
        ledger, first, last = self._rest
        mean = self._mean_of(ledger)
        if mean is not None:
            # Not quite a block: an answer that is full leaves an entry or two to be asked for.
            count = max(1, min(MAX_ENTRIES, self._block_bytes * 15 // (16 * mean)))
        elif self._probed == ledger.ledger_id:
            return None
        else:
            count = _FIRST_ENTRIES if is_striped(ledger) else MAX_ENTRIES
        # A block ends with its ensemble.
        ends = [begin - 1 for begin, _ in ledger.ensembles if begin > first]
        stop = min(first + count - 1, last, *ends)
        self._rest = None if stop == last else (ledger, stop + 1, last)
        self._probed = ledger.ledger_id if mean is None and self._rest else None
        return self.block_of(ledger, first, stop)

    def block_of(self, ledger: LedgerMetadata, first: int, last: int) -> PendingBlock:
        """Return a block of entries first..last."""
        mean = self._mean_of(ledger) or self._usual
        return PendingBlock(ledger, first, last, min((last - first + 1) * mean, self._block_bytes))

    def put_back(self, ledger: LedgerMetadata, first: int, last: int) -> None:
        """Plan entries first..last again, which lie just before the rest of the range."""
        self._rest = (ledger, first, self._rest[2] if self._rest else last)

    def learn_sizes(self, block: EntryBlock) -> None:
        """Plan the following blocks by the sizes of a block's entries."""
        self._usual = max(1, int(block.lengths.sum()) // len(block))
        self._mean[block.ledger_id] = self._usual

    def _next_range(self) -> bool:
        try:
            for ledger, first, last in self._ranges:
                code_length(ledger.digest_type)
                if first <= last:
                    self._rest = (ledger, first, last)
                    return True
        except Exception as error:  # noqa: BLE001 - raised after the blocks of the ranges before
            self.error = error
            self._ranges = iter(())
        return False

    def _mean_of(self, ledger: LedgerMetadata) -> int | None:
        """Return the bytes of an entry: in the last block, or in the whole sealed ledger."""
        mean = self._mean.get(ledger.ledger_id)
        if mean is None and ledger.length >= 0 <= ledger.last_entry:
            mean = max(1, ledger.length // (ledger.last_entry + 1))
        return mean
