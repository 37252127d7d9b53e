"""Entries from the bookies."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping

from reader.errors import LedgerGoneError, NotFoundError
from reader.model import EntryBlock, LedgerMetadata, Partition, Split, TransactionId
from reader.sources.base import EntrySource
from reader.sources.source_clients import SourceClients

__all__ = ["BookKeeperEntries"]


class BookKeeperEntries(EntrySource):
    """A partition's entries, read from the bookies.

    ``known``: metadata of ledgers by which they are read, whatever Pulsar lists by now. Pulsar is
    asked for its list when it is first needed, and that list stays.
    """

    def __init__(
        self,
        clients: SourceClients,
        partition: Partition,
        known: Mapping[int, LedgerMetadata] | None = None,
    ) -> None:
        super().__init__(partition)
        self._clients = clients
        self._known = known or {}
        self._listed: dict[int, tuple[LedgerMetadata | None, int]] | None = None

    @classmethod
    def of_split(cls, clients: SourceClients, split: Split) -> BookKeeperEntries:
        """Those of the split's partition; its own ledger by the metadata of the plan.

        Raises NotFoundError where the plan has none.
        """
        if split.metadata is None:
            raise NotFoundError(f"Pulsar no longer lists ledger {split.ledger_id}")
        return cls(clients, split.partition, {split.ledger_id: split.metadata})

    def ledgers(self) -> Mapping[int, int]:
        return {ledger_id: last for ledger_id, (_, last) in self._list().items()}

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        metadata = self._known.get(ledger_id) or self._list().get(ledger_id, (None, -1))[0]
        if metadata is None:
            raise LedgerGoneError(
                f"ledger {ledger_id} of {self.partition} has left BookKeeper; "
                "a message begins in it"
            )
        if first > last:
            return
        with self._clients.bookies() as client:
            yield from client.read(metadata, first, last)

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

    def _list(self) -> dict[int, tuple[LedgerMetadata | None, int]]:
        if self._listed is None:
            listing = self._clients.admin.ledgers(self.partition)
            self._listed = {
                one.ledger_id: (one.metadata, listing.last_entry(one)) for one in listing.ledgers
            }
        return self._listed
