"""Entries through the broker: where bookies are out of reach, and for what only brokers can read.

What a broker hides from every reader, markers and what aborted transactions wrote, it leaves out
without a word; and so it does with others: what an entry filter refuses, what it cannot parse, a
ledger that was trimmed. **So each entry of a range is accounted for**: it came, or the broker says
over REST that it is hidden (a small request each), or it is an error that names it.

A topic that was just loaded gives nothing until its transactions are recovered, and the broker
forgets meanwhile what was aborted. So an entry that is neither there nor hidden is asked for once
more, after that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from itertools import chain
from threading import Lock
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reader.closing import Closing
from reader.errors import LedgerGoneError, NotFoundError, UnavailableError, UnsupportedError
from reader.model import EntryBlock, Partition, Split, TransactionId
from reader.pulsar.binary import BrokerClient
from reader.sources.base import EntrySource
from reader.sources.source_clients import SourceClients
from reader.sources.stored import StoredEntries

LendBroker = Callable[[], AbstractContextManager[BrokerClient]]


class _Missing(NamedTuple):
    """An entry that the broker does not give, and the error that says so."""

    entry: int
    error: UnsupportedError


class HeldBroker(Closing):
    """Keeps one client for reads that follow each other: it goes on with its subscription.

    A new one takes some 15 ms of the broker's CPU, more than a small ledger.
    """

    def __init__(self, clients: SourceClients) -> None:
        self._clients = clients
        self._stack = ExitStack()
        self._client: BrokerClient | None = None
        self._lock = Lock()

    def close(self) -> None:
        """Give it back; nobody reads by now."""
        self._client = None
        self._stack.close()

    @contextmanager
    def lend(self) -> Iterator[BrokerClient]:
        """The one, or another one while that is lent (to who reads while a lookback is done)."""
        if not self._lock.acquire(blocking=False):
            with self._clients.broker() as other:
                yield other
            return
        try:
            if self._client is None:
                self._client = self._stack.enter_context(self._clients.broker())
            yield self._client
        finally:
            self._lock.release()


class BrokerEntries(EntrySource):
    """A partition's entries, as the broker gives them to a consumer.

    The two columns of ``reader.model.columns.BROKER_NULLS`` are in them if the broker shows them.
    ``lend``: a client of the broker, if not any of the ``clients``.
    """

    def __init__(
        self, clients: SourceClients, partition: Partition, lend: LendBroker | None = None
    ) -> None:
        super().__init__(partition)
        self._clients = clients
        self._lend = lend or clients.broker
        self._listed: Mapping[int, int] | None = None

    @classmethod
    def of_splits(
        cls, clients: SourceClients, lend: LendBroker, splits: Sequence[Split]
    ) -> BrokerEntries:
        """Those of the splits' one partition."""
        return cls(clients, splits[0].partition, lend)

    def ledgers(self) -> Mapping[int, int]:
        if self._listed is None:
            listing = self._clients.admin.ledgers(self.partition)
            self._listed = {one.ledger_id: listing.last_entry(one) for one in listing.ledgers}
        return self._listed

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        """See ``EntrySource``. What is declared lost no broker gives: that is read where it is.

        Raises UnsupportedError where the broker gives no entry and does not say that it is hidden.
        """
        if self._is_lost(ledger_id):
            with closing(self._stored().read(ledger_id, first, last)) as blocks:
                yield from blocks
            return
        hidden: set[int] = set()
        asked_again: int | None = None
        while first <= last:
            missing: _Missing | None = None
            with (
                self._lend() as client,
                closing(client.read(self.partition, ledger_id, first, last)) as blocks,
            ):
                for block in blocks:
                    gaps = _gaps(first, block.entry_ids)
                    missing = self._first_missing(ledger_id, gaps, hidden)
                    if missing:
                        break
                    yield block
                    first = int(block.entry_ids[-1]) + 1
            missing = missing or self._first_missing(ledger_id, range(first, last + 1), hidden)
            if missing is None:
                return
            if missing.entry == asked_again:
                raise missing.error
            asked_again = missing.entry
            self._clients.admin.ledgers(self.partition)  # waits for transactions

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        """None: the broker gives no entry before its transaction is decided, and none of those that
        it knows were aborted, which it does until the ledger of the transaction's end is deleted.
        """
        return self._stored().aborted(ledger_id, transactions) if self._is_lost(ledger_id) else ()

    def _is_lost(self, ledger_id: int) -> bool:
        """Not of the open one, which the broker has."""
        lost = self._clients.settings.pulsar.lost_ledgers
        return ledger_id in lost and ledger_id < max(self.ledgers(), default=-1)

    def _stored(self) -> StoredEntries:
        return StoredEntries(self._clients, self.partition)

    def _first_missing(
        self, ledger_id: int, entries: Iterable[int], hidden: set[int]
    ) -> _Missing | None:
        """The first of entries that did not come of which the broker does not say that it hides it.

        ``hidden``: those of which it did. Raises LedgerGoneError where the ledger was trimmed.
        """
        for entry in entries:
            if entry in hidden:
                continue
            error = self._why_missing(ledger_id, entry)
            if error is not None:
                return _Missing(entry, error)
            hidden.add(entry)
        return None

    def _why_missing(self, ledger_id: int, entry: int) -> UnsupportedError | None:
        """None where every reader goes without this entry."""
        name = f"entry {ledger_id}:{entry} of {self.partition}"
        try:
            if self._clients.admin.is_hidden(self.partition, ledger_id, entry):
                return None
        except (NotFoundError, UnavailableError) as error:
            if ledger_id not in self._clients.admin.ledger_ids(self.partition):
                raise LedgerGoneError(
                    f"ledger {ledger_id} of {self.partition} has been trimmed"
                ) from error
            return UnsupportedError(
                f"the broker does not give {name}, and does not say what it is: {error.message}",
                hint="it is damaged, or a compressed chunk of an aborted transaction; "
                "BookKeeper's reader knows",
            )
        return UnsupportedError(
            f"the broker does not give {name}, which has messages",
            hint="an entry filter of the broker refuses it; BookKeeper's reader gives it",
        )


def _gaps(first: int, entry_ids: npt.NDArray[np.int64]) -> Iterable[int]:
    """What is not there of the entries from ``first`` to the last of ``entry_ids``."""
    before = np.concatenate([[first - 1], entry_ids[:-1]])
    jumps = np.flatnonzero(entry_ids - before > 1)
    return chain.from_iterable(range(int(before[i]) + 1, int(entry_ids[i])) for i in jumps)
