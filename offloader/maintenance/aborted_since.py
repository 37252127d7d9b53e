"""Rows of a table that Pulsar has called aborted since they were offloaded as committed.

A transaction that was committed may be aborted later: by a message that comes late, and the next
transaction after it (decision 31), or by an administrator. Pulsar's readers lose its messages then;
the table has them, and keeps them. Here they are found, and nothing is changed.

It takes the headers of entries, which only Pulsar has, and so whole ledgers: the last ones that the
table has and Pulsar has not deleted, up to 64 MiB a partition, and only of topics of which the
broker knows aborted transactions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from reader.clients import Clients
from reader.decode import entries_in_transactions
from reader.errors import NotFoundError, UnsupportedError
from reader.model import Partition, Position, Stored, TransactionId
from reader.pulsar import PartitionLedgers
from reader.sources import StoredEntries
from reader.table import TopicTable

LOOKED_AT_BYTES = 64 << 20
"""Of ledgers, at most, of each partition."""


class _Ledger(NamedTuple):
    """By what a ledger is read, and its last entry."""

    stored: Stored
    last_entry: int


_Written = dict[TransactionId, list[Position]]
"""The entries of each transaction, in their order."""


@dataclass(frozen=True, slots=True)
class AbortedRows:
    """``rows`` of the table, in ``transactions``; ``first``: the place of one of them."""

    rows: int = 0
    transactions: int = 0
    first: tuple[Partition, Position] | None = None


class AbortedSince:
    """Asks Pulsar. Each transaction is told of once; for one thread."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._told: set[tuple[Partition, TransactionId]] = set()

    def find(self, table: TopicTable, raise_if_stopped: Callable[[], None]) -> AbortedRows:
        """What was not told of before. ``raise_if_stopped`` is called all the while.

        Raises UnavailableError and others of ours where Pulsar cannot be asked.
        """
        rows = 0
        first: tuple[Partition, Position] | None = None
        found: set[tuple[Partition, TransactionId]] = set()
        for partition in table.partitions():
            raise_if_stopped()
            for transaction, (count, at) in self._find(table, partition, raise_if_stopped).items():
                found.add((partition, transaction))
                rows += count
                first = first or (partition, at)
        self._told |= found  # not before all partitions were asked: an error tells of none
        return AbortedRows(rows, len(found), first)

    def _find(
        self, table: TopicTable, partition: Partition, raise_if_stopped: Callable[[], None]
    ) -> Mapping[TransactionId, tuple[int, Position]]:
        """Rows of each transaction that is aborted, and where the first of them is."""
        admin = self._clients.admin
        try:
            listing = admin.ledgers(partition, transactions=False)
        except NotFoundError:
            return {}
        if listing.created_at != table.created_at(partition):
            return {}  # a topic of the same name
        ledgers = _last_ledgers(listing, table.watermark(partition))
        if not ledgers or not admin.may_have_aborted(partition):
            return {}
        written = self._written(ledgers, partition, raise_if_stopped)
        new = {one: at for one, at in written.items() if (partition, one) not in self._told}
        # Those without a row were aborted when they were offloaded, or their rows have expired.
        found = _rows_of(table, partition, new)
        aborted = admin.aborted_transactions(partition, found)
        return {one: there for one, there in found.items() if one in aborted}

    def _written(
        self,
        ledgers: Mapping[int, _Ledger],
        partition: Partition,
        raise_if_stopped: Callable[[], None],
    ) -> _Written:
        known = {ledger: one.stored for ledger, one in ledgers.items()}
        entries = StoredEntries(self._clients, partition, known)
        written: _Written = {}
        for ledger, one in ledgers.items():
            try:
                for block in entries.read(ledger, 0, one.last_entry):
                    raise_if_stopped()
                    for transaction, numbers in entries_in_transactions(block).items():
                        places = (Position(ledger, number) for number in numbers)
                        written.setdefault(transaction, []).extend(places)
            except NotFoundError:
                continue  # deleted since
            except UnsupportedError:
                continue  # only the broker can read it, and gives no aborted message
        return written


def _last_ledgers(listing: PartitionLedgers, watermark: int) -> dict[int, _Ledger]:
    """Ledgers up to the watermark that are stored somewhere, in their order."""
    found: dict[int, _Ledger] = {}
    left = LOOKED_AT_BYTES
    for one in reversed(listing.ledgers):
        if one.ledger_id > watermark or one.stored is None or not one.closed:
            continue
        left -= one.bytes
        if left < 0 and found:
            break
        found[one.ledger_id] = _Ledger(one.stored, listing.last_entry(one))
    return dict(reversed(found.items()))


def _rows_of(
    table: TopicTable, partition: Partition, written: _Written
) -> dict[TransactionId, tuple[int, Position]]:
    """How many rows the table has of each transaction of which it has any, and where they begin."""
    owners = {at: one for one, places in written.items() for at in places}
    if not owners:
        return {}
    places = sorted(owners)
    ledgers = np.unique(np.array([at.ledger for at in places], np.int64))
    keys = _keys(
        ledgers,
        np.array([at.ledger for at in places], np.int64),
        np.array([at.entry for at in places], np.int64),
    )
    counts = np.zeros(len(keys), np.int64)
    where = (pc.field("__partition") == partition.index) & pc.field("__ledgerId").isin(
        ledgers.tolist()
    )
    for batch in table.batches(("__ledgerId", "__entryId"), where):
        ledger_ids, entry_ids = (
            pc.fill_null(batch.column(name), -1).to_numpy() for name in batch.schema.names
        )
        found = _keys(ledgers, ledger_ids, entry_ids)
        at = np.minimum(np.searchsorted(keys, found), len(keys) - 1)
        np.add.at(counts, at[keys[at] == found], 1)
    rows: dict[TransactionId, tuple[int, Position]] = {}
    for i in np.flatnonzero(counts).tolist():
        one = owners[places[i]]
        before, first = rows.get(one, (0, places[i]))
        rows[one] = before + int(counts[i]), first
    return rows


def _keys(
    ledgers: npt.NDArray[np.int64],
    ledger_ids: npt.NDArray[np.int64],
    entries: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """(ledger, entry) as numbers of the same order; the ids are among ``ledgers``."""
    return np.searchsorted(ledgers, ledger_ids).astype(np.int64) << 32 | entries & 0xFFFF_FFFF
