"""Entries of a ledger from its bookies: no recovery, no fencing, next replica on failure."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping

from reader.bookkeeper.digest import code_length
from reader.bookkeeper.entry_reads import EntryReads
from reader.bookkeeper.handshake import BookieAccess
from reader.bookkeeper.pool import BookiePool
from reader.bookkeeper.range_reads import RangeReads
from reader.closing import Closing
from reader.model import EntryBlock, LedgerMetadata

__all__ = ["BookKeeperClient"]


class BookKeeperClient(Closing):
    """Reads ledgers; for one thread; a context manager.

    ``addresses`` maps bookie ids that are not ``host:port`` themselves. ``timeout``: seconds that a
    bookie may stay silent while an answer is outstanding. ``password``: of ledgers whose metadata
    has none. ``access``: TLS and identity. ``clock``: seconds. ``pool``: its connections.
    """

    def __init__(
        self,
        *,
        addresses: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        password: bytes = b"",
        access: BookieAccess | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pool = BookiePool(addresses or {}, timeout, password, access, clock=clock)

    def close(self) -> None:
        """Close all connections."""
        self.pool.close()

    def resume(self, access: BookieAccess | None = None) -> None:
        """To be called before it is used again after a while: see ``BookiePool.resume``."""
        self.pool.resume(access)

    def read(
        self, ledger: LedgerMetadata, first: int, last: int, *, block_bytes: int = 4 << 20
    ) -> Generator[EntryBlock]:
        """Entries first..last (inclusive) of one ledger: see ``read_ranges``."""
        return self.read_ranges([(ledger, first, last)], block_bytes=block_bytes)

    def read_ranges(
        self,
        ranges: Iterable[tuple[LedgerMetadata, int, int]],
        *,
        block_bytes: int = 4 << 20,
    ) -> Generator[EntryBlock]:
        """Ranges (ledger, first entry, last entry) in their order, in blocks of about a size.

        A block has entries of one range, ascending and without a gap; one that is empty has none.
        An error comes after all blocks of the ranges before it, and ends the generator.

        Raises NotFoundError where every replica answers that there is no such ledger,
        UnavailableError where an entry's replicas do not answer, CorruptError where all of them
        answer that they do not have it, UnsupportedError for an unknown type of digest. An entry of
        which every copy fails its digest is delivered and named in ``EntryBlock.damaged``;
        ConfigurationError where that is so of the whole first block, of a ledger whose digest takes
        a password.
        """
        for ledger, first, last in ranges:
            code_length(ledger.digest_type)
            # The answer to a range read ends before the first entry that the bookie does not hold.
            striped = ledger.ensemble_size != ledger.write_quorum
            reads = EntryReads if striped else RangeReads
            run = reads(self.pool, ledger, first, last, block_bytes)
            try:
                yield from run.blocks()
            finally:
                run.abandon()
