"""What a split's decoder asks about the rest of the partition: a ``PartitionContext``.

Rare, and so lazy: a chunked message that began before the split, a transaction that ended after
it. Headers before the split are read backwards, in windows that grow, until the message's first
chunk is found, and never beyond ``reach``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from reader.bookkeeper import BookieAccess, BookKeeperClient
from reader.closing import Closing
from reader.config import ReadConfig
from reader.decode import Chunk, Decryption, Transactions, chunk_headers
from reader.errors import CorruptError, LedgerGoneError
from reader.model import EntryBlock, LedgerMetadata, Partition, Position
from reader.pulsar.admin import AdminClient
from reader.tls import client_context

__all__ = ["Surroundings", "open_bookies"]

_FIRST_WINDOW = 32
_MOST_ENTRIES = 8192


def open_bookies(config: ReadConfig) -> BookKeeperClient:
    """A client for the bookies of the configuration."""
    pulsar, bookkeeper = config.pulsar, config.pulsar.bookkeeper
    access = BookieAccess(
        tls=client_context(
            "pulsar.bookkeeper",
            trust=bookkeeper.tls_trust_certs_file,
            certificate=bookkeeper.tls_certificate_file,
            key=bookkeeper.tls_key_file,
            verify_hostname=bookkeeper.tls_verify_hostname,
        )
        if bookkeeper.tls
        else None,
        user=bookkeeper.sasl_user,
        password=bookkeeper.sasl_secret(),
    )
    return BookKeeperClient(
        access=access,
        addresses=pulsar.bookies,
        timeout=pulsar.bookie_timeout.total_seconds(),
        password=pulsar.bookkeeper_password.get_secret_value().encode(),
    )


@dataclass(frozen=True, slots=True)
class _Ledger:
    metadata: LedgerMetadata | None
    last_entry: int


@dataclass
class Surroundings(Closing):
    """The entries of ``partition`` before ``start``, back to ``reach``; a context manager."""

    config: ReadConfig
    partition: Partition
    start: Position
    reach: Position
    decryption: Decryption | None = None
    _chunks: list[tuple[bytes, Chunk]] = field(default_factory=list)
    _bookies: BookKeeperClient | None = None
    _admin: AdminClient | None = None
    _listed: dict[int, _Ledger] | None = None
    _windows: Iterator[list[tuple[bytes, Chunk]]] | None = None

    def close(self) -> None:
        """Close the connections that were needed."""
        for one in (self._bookies, self._admin):
            if one is not None:
                one.close()

    def aborted(self, most: int, least: int) -> bool:
        """As the broker says. Raises UnsupportedError where it has no transactions."""
        return self._pulsar().transaction_aborted(self.partition, most, least)

    def chunks_before(self, uuid: bytes) -> Sequence[Chunk]:
        """From the message's latest first chunk on, or from ``reach``."""
        while True:
            found = [chunk for name, chunk in self._chunks if name == uuid]
            begun = [i for i, chunk in enumerate(found) if chunk.chunk_id == 0]
            if begun:
                return found[begun[-1] :]
            if not self._look_further():
                if self.reach.ledger not in self._ledgers():
                    self._gone(self.reach.ledger)
                return found

    def all_chunks(self) -> list[tuple[bytes, Chunk]]:
        """(uuid, chunk) of every chunk from ``reach`` to ``start``, in log order."""
        while self._look_further():
            pass
        return self._chunks

    def entry(self, ledger: int, entry: int) -> bytes:
        (block,) = self._read(ledger, entry, entry)
        if block.damaged:
            raise CorruptError(f"entry {ledger}:{entry} of {self.partition}: {block.damaged[0]}")
        at = int(block.offsets[0])
        return block.arena[at : at + int(block.lengths[0])].tobytes()

    # -- backwards -----------------------------------------------------------------------------

    def _look_further(self) -> bool:
        if self._windows is None:
            self._windows = self._backwards()
        window = next(self._windows, None)
        if window is None:
            return False
        self._chunks = window + self._chunks
        return True

    def _backwards(self) -> Iterator[list[tuple[bytes, Chunk]]]:
        transactions = Transactions(self.aborted)
        size = _FIRST_WINDOW
        for ledger_id in sorted(self._ledgers(), reverse=True):
            if not self.reach.ledger <= ledger_id <= self.start.ledger:
                continue
            first = self.reach.entry if ledger_id == self.reach.ledger else 0
            stop = self._ledgers()[ledger_id].last_entry + 1
            if ledger_id == self.start.ledger:
                stop = min(stop, self.start.entry)
            while stop > first:
                low = max(first, stop - size)
                found = []
                for block in self._read(ledger_id, low, stop - 1):
                    found += chunk_headers(block, transactions, self.decryption)
                yield found
                stop, size = low, min(size * 4, _MOST_ENTRIES)

    def _read(self, ledger_id: int, first: int, last: int) -> Iterator[EntryBlock]:
        ledger = self._ledgers().get(ledger_id)
        if ledger is None or ledger.metadata is None:
            self._gone(ledger_id)
        if self._bookies is None:
            self._bookies = open_bookies(self.config)
        return self._bookies.read(ledger.metadata, first, last)

    def _gone(self, ledger_id: int) -> NoReturn:
        raise LedgerGoneError(
            f"ledger {ledger_id} of {self.partition} has left BookKeeper; a message begins in it"
        )

    def _ledgers(self) -> dict[int, _Ledger]:
        if self._listed is None:
            listing = self._pulsar().ledgers(self.partition)
            self._listed = {
                one.ledger_id: _Ledger(one.metadata, listing.last_entry(one))
                for one in listing.ledgers
            }
        return self._listed

    def _pulsar(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self.config.pulsar)
        return self._admin
