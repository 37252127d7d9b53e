"""Entries from where Pulsar stores them: the bookies, and the objects of its own tiered storage."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from reader.errors import LedgerGoneError, NotFoundError, UnsupportedError
from reader.model import (
    EntryBlock,
    LedgerMetadata,
    OffloadContext,
    Partition,
    Split,
    Stored,
    TransactionId,
)
from reader.sources.base import EntrySource
from reader.sources.source_clients import SourceClients

__all__ = ["StoredEntries"]


class _Listed(NamedTuple):
    """A ledger as Pulsar lists it."""

    stored: Stored | None
    last_entry: int
    offloaded: bool


class StoredEntries(EntrySource):
    """A partition's entries, each ledger's by what Pulsar lists of it: BookKeeper's metadata, or
    where its tiered storage has put it. A message may begin in one, and end in the other.

    ``known``: ledgers that are read by this, whatever Pulsar lists by now; None of those that
    Pulsar no longer lists. It is asked for its list when it is first needed, and that list stays.
    """

    def __init__(
        self,
        clients: SourceClients,
        partition: Partition,
        known: Mapping[int, Stored | None] | None = None,
    ) -> None:
        super().__init__(partition)
        self._clients = clients
        self._known = known or {}
        self._listed: dict[int, _Listed] | None = None

    @classmethod
    def of_splits(cls, clients: SourceClients, splits: Sequence[Split]) -> StoredEntries:
        """Those of the splits' one partition; their own ledgers as the plan has them."""
        known = {one.ledger_id: one.metadata for one in splits}
        return cls(clients, splits[0].partition, known)

    def ledgers(self) -> Mapping[int, int]:
        return {ledger_id: one.last_entry for ledger_id, one in self._list().items()}

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        return self.read_all([(ledger_id, first, last)])

    def read_all(self, ranges: Sequence[tuple[int, int, int]]) -> Generator[EntryBlock]:
        there: list[tuple[int, Stored, int, int]] = []
        missing: NotFoundError | UnsupportedError | None = None
        for ledger_id, first, last in ranges:
            try:
                stored = self._stored(ledger_id)
            except (NotFoundError, UnsupportedError) as error:
                missing = error
                break
            if first <= last:
                there.append((ledger_id, stored, first, last))
        for kind, some in groupby(there, key=lambda one: type(one[1])):
            if kind is OffloadContext:
                yield from self._from_tiered([*some])
            else:
                yield from self._from_bookies([*some])
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

    def _from_bookies(
        self, ranges: Sequence[tuple[int, Stored, int, int]]
    ) -> Generator[EntryBlock]:
        with self._clients.bookies() as client:
            yield from client.read_ranges(
                [
                    (stored, first, last)
                    for _, stored, first, last in ranges
                    if isinstance(stored, LedgerMetadata)
                ]
            )

    def _from_tiered(self, ranges: Sequence[tuple[int, Stored, int, int]]) -> Generator[EntryBlock]:
        yield from self._clients.tiered.read_all(
            self.partition,
            [
                (ledger_id, stored, first, last)
                for ledger_id, stored, first, last in ranges
                if isinstance(stored, OffloadContext)
            ],
        )

    def _stored(self, ledger_id: int) -> Stored:
        """Raises NotFoundError, and UnsupportedError for what only the broker can read."""
        if ledger_id in self._known:
            found = self._known[ledger_id]
            if found is None:
                raise NotFoundError(f"Pulsar lists nothing to read ledger {ledger_id} by")
            return found
        listed = self._list().get(ledger_id, _Listed(None, -1, False))
        if listed.stored is not None:
            return listed.stored
        what = f"ledger {ledger_id} of {self.partition}"
        if listed.offloaded:
            raise UnsupportedError(
                f"{what} is in Pulsar's tiered storage, and Pulsar does not say under which name; "
                "a message begins in it"
            )
        raise LedgerGoneError(f"{what} has left BookKeeper; a message begins in it")

    def _list(self) -> dict[int, _Listed]:
        if self._listed is None:
            listing = self._clients.admin.ledgers(self.partition)
            self._listed = {
                one.ledger_id: _Listed(one.stored, listing.last_entry(one), one.offloaded)
                for one in listing.ledgers
            }
        return self._listed
