"""Entries of a ledger from its bookies: no recovery, no fencing, next replica on failure."""

from __future__ import annotations

from collections.abc import Generator, Mapping

from reader.bookkeeper.digest import code_length
from reader.bookkeeper.entry_reads import SingleReads
from reader.bookkeeper.handshake import BookieAccess
from reader.bookkeeper.pool import Bookies
from reader.bookkeeper.range_reads import BatchReads
from reader.closing import Closing
from reader.model import EntryBlock, LedgerMetadata

__all__ = ["BookKeeperClient"]


class BookKeeperClient(Closing):
    """Reads ledgers; for one thread; a context manager.

    ``addresses`` maps bookie ids that are not ``host:port`` themselves. ``timeout`` (s) is how
    long a bookie may stay silent while it owes an answer. ``access``: TLS and identity.
    """

    def __init__(
        self,
        *,
        addresses: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        password: bytes = b"",
        access: BookieAccess | None = None,
    ) -> None:
        self._bookies = Bookies(addresses or {}, timeout, password, access)

    def close(self) -> None:
        """Close all connections."""
        self._bookies.close()

    def resume(self) -> None:
        """Before it is used again after a while: see ``Bookies.resume``."""
        self._bookies.resume()

    def read(
        self, ledger: LedgerMetadata, first: int, last: int, *, block_bytes: int = 4 << 20
    ) -> Generator[EntryBlock]:
        """Entries first..last (inclusive), ascending and without gap, in blocks of about a size.

        Raises NotFoundError when every replica says that there is no such ledger,
        UnavailableError when an entry's replicas do not answer, CorruptError when they all
        answer that they do not have it. An entry of which every copy fails its digest is
        delivered and named in ``EntryBlock.damaged``; ConfigurationError where that is so of all
        entries that came first, of a ledger whose digest takes a password.
        """
        code_length(ledger.digest_type)
        # A batch ends before the first entry that its bookie does not hold.
        striped = ledger.ensemble_size != ledger.write_quorum
        reads = SingleReads if striped else BatchReads
        run = reads(self._bookies, ledger, first, last, block_bytes)
        try:
            yield from run.blocks()
        finally:
            run.abandon()
