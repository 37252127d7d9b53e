"""Entries from the bookies."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence

from reader.errors import LedgerGoneError, NotFoundError
from reader.model import EntryBlock, LedgerMetadata, Partition, Split, TransactionId
from reader.sources.base import EntrySource
from reader.sources.source_clients import SourceClients

__all__ = ["BookKeeperEntries"]


class BookKeeperEntries(EntrySource):
    """A partition's entries, read from the bookies.

    ``known``: metadata of ledgers by which they are read, whatever Pulsar lists by now; None of
    those that Pulsar no longer lists. It is asked for its list when it is first needed, and that
    list stays.
    """

    def __init__(
        self,
        clients: SourceClients,
        partition: Partition,
        known: Mapping[int, LedgerMetadata | None] | None = None,
    ) -> None:
        super().__init__(partition)
        self._clients = clients
        self._known = known or {}
        self._listed: dict[int, tuple[LedgerMetadata | None, int]] | None = None

    @classmethod
    def of_splits(cls, clients: SourceClients, splits: Sequence[Split]) -> BookKeeperEntries:
        """Those of the splits' one partition; their own ledgers by the metadata of the plan."""
        known = {one.ledger_id: one.metadata for one in splits}
        return cls(clients, splits[0].partition, known)

    def ledgers(self) -> Mapping[int, int]:
        return {ledger_id: last for ledger_id, (_, last) in self._list().items()}

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        return self.read_all([(ledger_id, first, last)])

    def read_all(self, ranges: Sequence[tuple[int, int, int]]) -> Generator[EntryBlock]:
        there: list[tuple[LedgerMetadata, int, int]] = []
        missing: NotFoundError | None = None
        for ledger_id, first, last in ranges:
            try:
                metadata = self._metadata(ledger_id)
            except NotFoundError as error:
                missing = error
                break
            if first <= last:
                there.append((metadata, first, last))
        if there:
            with self._clients.bookies() as client:
                yield from client.read_ranges(there)
        if missing is not None:
            raise missing

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        admin = self._clients.admin
        found = admin.aborted_transactions(self.partition, transactions)
        # A broker forgets the aborted transactions of a ledger that it deletes.
        if len(found) < len(transactions) and ledger_id not in admin.ledger_ids(self.partition):
            raise LedgerGoneError(
                f"ledger {ledger_id} of {self.partition} has left Pulsar; "
                "which of its transactions were aborted is not known any more"
            )
        return found

    def _metadata(self, ledger_id: int) -> LedgerMetadata:
        """Raises NotFoundError."""
        if ledger_id in self._known:
            found = self._known[ledger_id]
            if found is None:
                raise NotFoundError(f"Pulsar no longer lists ledger {ledger_id}")
            return found
        found = self._list().get(ledger_id, (None, -1))[0]
        if found is None:
            raise LedgerGoneError(
                f"ledger {ledger_id} of {self.partition} has left BookKeeper; "
                "a message begins in it"
            )
        return found

    def _list(self) -> dict[int, tuple[LedgerMetadata | None, int]]:
        if self._listed is None:
            listing = self._clients.admin.ledgers(self.partition)
            self._listed = {
                one.ledger_id: (one.metadata, listing.last_entry(one)) for one in listing.ledgers
            }
        return self._listed
