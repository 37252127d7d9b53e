"""Entries from where Pulsar stores them: the bookies, and the objects of its own tiered storage."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from reader import errors, model
from reader.sources.base import EntrySource
from reader.sources.lookback import beginning_gone
from reader.sources.salvage import Salvaged, salvage, unreadable
from reader.sources.source_clients import SourceClients


class _Listed(NamedTuple):
    """A ledger as Pulsar lists it."""

    stored: model.Stored | None
    last_entry: int
    offloaded: bool


class _Kind(Enum):
    """How a ledger's entries are read."""

    BOOKIES = "from BookKeeper"
    TIERED = "from objects"
    SALVAGED = "as far as they can be, of one that is declared lost"


_Range = tuple[int, model.Stored | None, int, int]


class StoredEntries(EntrySource):
    """A partition's entries, each ledger's by what Pulsar lists of it: BookKeeper's metadata, or
    where its tiered storage has put it. A message may begin in one, and end in the other.

    Of ledgers that are declared lost each entry comes, those that cannot be read as damaged ones.

    ``known``: ledgers that are read by this, whatever Pulsar lists by now; None of those that
    Pulsar no longer lists. It is asked for its list when it is first needed, and that list stays.
    """

    def __init__(
        self,
        clients: SourceClients,
        partition: model.Partition,
        known: Mapping[int, model.Stored | None] | None = None,
    ) -> None:
        super().__init__(partition)
        self._clients = clients
        self._known = known or {}
        self._listed: dict[int, _Listed] | None = None

    @classmethod
    def of_splits(cls, clients: SourceClients, splits: Sequence[model.Split]) -> StoredEntries:
        """Those of the splits' one partition; their own ledgers as the plan has them."""
        known = {one.ledger_id: one.metadata for one in splits}
        return cls(clients, splits[0].partition, known)

    def ledgers(self) -> Mapping[int, int]:
        return {ledger_id: one.last_entry for ledger_id, one in self._list().items()}

    def read(self, ledger_id: int, first: int, last: int) -> Generator[model.EntryBlock]:
        return self.read_all([(ledger_id, first, last)])

    def read_all(self, ranges: Sequence[tuple[int, int, int]]) -> Generator[model.EntryBlock]:
        there: list[_Range] = []
        missing: errors.NotFoundError | errors.UnsupportedError | None = None
        for ledger_id, first, last in ranges:
            try:
                stored = self._listed_or_known(ledger_id)
                if stored is None and not self._is_lost(ledger_id):
                    raise self._nothing_to_read(ledger_id)
            except (errors.NotFoundError, errors.UnsupportedError) as error:
                missing = error
                break
            if first <= last:
                there.append((ledger_id, stored, first, last))
        for kind, some in groupby(there, key=self._kind):
            if kind is _Kind.SALVAGED:
                for one in some:
                    yield from self._salvage(one)
            elif kind is _Kind.TIERED:
                yield from self._from_tiered([*some])
            else:
                yield from self._from_bookies([*some])
        if missing is not None:
            raise missing

    def aborted(
        self, ledger_id: int, transactions: Collection[model.TransactionId]
    ) -> Collection[model.TransactionId]:
        admin = self._clients.admin
        found = admin.aborted_transactions(self.partition, transactions)
        # A broker forgets the aborted transactions of a ledger that it deletes.
        if len(found) < len(transactions) and ledger_id not in admin.ledger_ids(self.partition):
            raise errors.LedgerGoneError(
                f"ledger {ledger_id} of {self.partition} has left Pulsar; "
                "which of its transactions were aborted is not known any more"
            )
        return found

    def _is_lost(self, ledger_id: int) -> bool:
        return ledger_id in self._clients.settings.pulsar.lost_ledgers

    def _kind(self, one: _Range) -> _Kind:
        ledger_id, stored, _, _ = one
        if self._is_lost(ledger_id):
            return _Kind.SALVAGED
        return _Kind.TIERED if isinstance(stored, model.OffloadContext) else _Kind.BOOKIES

    def _salvage(self, one: _Range) -> Generator[model.EntryBlock]:
        """Before anything is given as lost, and before all is, it is asked whether that is so."""
        ledger_id, stored, _, last = one
        lost = False
        with closing(self._salvaged(one)) as blocks:
            for block in blocks:
                if not lost and block.damaged:
                    self._require_listed_so(ledger_id, stored)
                    lost = True
                elif lost and int(block.entry_ids[-1]) == last:
                    try:
                        self._require_listed_so(ledger_id, stored)
                    except (errors.NotFoundError, errors.UnavailableError) as error:
                        # No other source may go on: what was given as lost may not be.
                        raise errors.PulsarLakeError(
                            f"while it was read: {error.message}", hint="try again"
                        ) from error
                yield block

    def _salvaged(self, one: _Range) -> Generator[model.EntryBlock]:
        ledger_id, stored, first, last = one
        ledger: Salvaged
        if stored is None:
            yield from unreadable(ledger_id, first, last, "Pulsar lists nothing to read it by")
            return
        if isinstance(stored, model.LedgerMetadata):
            ledger = _OnBookies(self._clients, stored)
        else:
            try:
                ledger = self._clients.tiered.salvaged(self.partition, ledger_id, stored)
            except (errors.CorruptError, errors.NotFoundError) as error:
                yield from unreadable(ledger_id, first, last, error.message)
                return
        yield from salvage(ledger_id, ledger, first, last)

    def _require_listed_so(self, ledger_id: int, stored: model.Stored | None) -> None:
        """Before anything is called lost: where Pulsar says by now that it is.

        Raises NotFoundError where that is elsewhere, LedgerGoneError where it lists it no more, and
        UnavailableError where the broker, which leaves out metadata that it cannot read just now,
        has none of any ledger.
        """
        listing = self._clients.admin.ledgers(self.partition, transactions=False)
        now = next((one for one in listing.ledgers if one.ledger_id == ledger_id), None)
        if now is None:
            raise errors.LedgerGoneError(f"ledger {ledger_id} of {self.partition} has left Pulsar")
        if now.stored is not None and now.stored != stored:
            raise errors.NotFoundError(
                f"ledger {ledger_id} of {self.partition} is stored elsewhere now"
            )
        others = [one for one in listing.ledgers if one is not now and not one.offloaded]
        if stored is None and others and not any(one.metadata for one in others):
            raise errors.UnavailableError(
                f"Pulsar lists no metadata of any ledger of {self.partition}",
                hint="check the metadata store of bookies and brokers",
            )

    def _from_bookies(self, ranges: Sequence[_Range]) -> Generator[model.EntryBlock]:
        with self._clients.bookies() as client:
            yield from client.read_ranges(
                [
                    (stored, first, last)
                    for _, stored, first, last in ranges
                    if isinstance(stored, model.LedgerMetadata)
                ]
            )

    def _from_tiered(self, ranges: Sequence[_Range]) -> Generator[model.EntryBlock]:
        yield from self._clients.tiered.read_all(
            self.partition,
            [
                (ledger_id, stored, first, last)
                for ledger_id, stored, first, last in ranges
                if isinstance(stored, model.OffloadContext)
            ],
        )

    def _listed_or_known(self, ledger_id: int) -> model.Stored | None:
        """None: nothing is listed to read it by. Raises LedgerGoneError where it is not listed,
        and UnsupportedError for what only the broker can read."""
        if ledger_id in self._known:
            return self._known[ledger_id]
        listed = self._list().get(ledger_id)
        if listed is None:
            raise self._nothing_to_read(ledger_id)
        if listed.stored is None and listed.offloaded:
            raise errors.UnsupportedError(
                f"ledger {ledger_id} of {self.partition} is in Pulsar's tiered storage, and Pulsar "
                "does not say under which name; a message may begin in it"
            )
        return listed.stored

    def _nothing_to_read(self, ledger_id: int) -> errors.NotFoundError:
        if ledger_id in self._known:
            return errors.NotFoundError(f"Pulsar lists nothing to read ledger {ledger_id} by")
        return beginning_gone(self.partition, ledger_id)

    def _list(self) -> dict[int, _Listed]:
        if self._listed is None:
            listing = self._clients.admin.ledgers(self.partition)
            self._listed = {
                one.ledger_id: _Listed(one.stored, listing.last_entry(one), one.offloaded)
                for one in listing.ledgers
            }
        return self._listed


class _OnBookies:
    """A ledger that is declared lost, as far as bookies have it."""

    def __init__(self, clients: SourceClients, metadata: model.LedgerMetadata) -> None:
        self._clients = clients
        self._metadata = metadata

    def read(self, first: int, last: int) -> Generator[model.EntryBlock]:
        with self._clients.bookies() as client:
            yield from client.read(self._metadata, first, last)

    def begin_after(
        self, entry: int, error: errors.CorruptError | errors.NotFoundError
    ) -> int | None:
        """The next one; the next ensemble's first where none of its bookies knows the ledger.

        Of a striped ledger those that were asked are not all of them.
        """
        striped = self._metadata.ensemble_size > self._metadata.write_quorum
        if isinstance(error, errors.CorruptError) or striped:
            return entry + 1
        return min((at for at, _ in self._metadata.ensembles if at > entry), default=None)
