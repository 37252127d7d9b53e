"""What of a write is in a partition already: read by producer name and sequence ids."""

from collections.abc import Generator
from contextlib import closing

import numpy as np
import pyarrow.compute as pc

from reader.clients import Clients
from reader.errors import UnavailableError
from reader.model import BEFORE_ALL, Partition, Position
from reader.pulsar import PartitionLedgers
from reader.sink.manifest import PartitionEntries

_SEQUENCE = pc.field("__sequenceId")


class Arrived:
    """How often the entries of these sequence ids are there; read when made.

    Of a batch only its first message counts: those of an encrypted one have no ids of their own.

    What lies behind ``entries.end`` is read: a position, as the clocks of the driver that decided
    and of the tasks that send may be days apart. Of another log of the same name (a topic that was
    made again, another cluster) all is read.

    ``lowest``, ``highest``: of those that are there; None: none is. ``incomplete``: whether some
    may be in messages that were lost, or are in a table that is not seen. ``hidden``: whether
    transactions of others hide the end of the log. Memory: two bytes an id. Raises as
    ``read_behind`` does.
    """

    def __init__(
        self, clients: Clients, partition: Partition, name: str, entries: PartitionEntries
    ) -> None:
        first, ids = entries.first, entries.ids
        listing = clients.admin.ledgers(partition)  # before it is read: what it hides may be there
        self.hidden = listing.recovering or listing.max_read < listing.last_confirmed
        self._clients = clients
        self.partition = partition
        self._first, self._before = first, entries.before
        same_log = bool(listing.created_at) and listing.created_at == entries.end.created_at
        self._end = entries.end.last if same_log else BEFORE_ALL
        self._times = np.zeros(ids, np.uint16)
        self._ours = pc.field("__producerName") == name
        sent = self._ours & (first <= _SEQUENCE) & (first + ids > _SEQUENCE)
        self.incomplete = False
        for found in self._read(listing, self._end, sent):
            np.add.at(self._times, found - first, 1)
        there = np.flatnonzero(self._times)
        self.lowest = int(there[0]) + first if len(there) else None
        self.highest = int(there[-1]) + first if len(there) else None

    def times(self, first: int, last: int) -> int:
        """How often the entry of these ids is there."""
        return int(self._times[first - self._first : last - self._first + 1].max(initial=0))

    def require_visible(self) -> None:
        """Raises UnavailableError where the end of the log cannot be read."""
        if self.hidden:
            raise UnavailableError(
                f"transactions that others have open hide the end of {self.partition}, so what "
                "has arrived there cannot be told",
                hint="it goes on once they have ended",
            )

    def maybe_deleted(self) -> bool:
        """Return whether messages behind ``entries.end`` may have been deleted.

        Pulsar deletes whole ledgers, in order: nothing is deleted while the ledger of that
        position, or an earlier one, is listed. That it is not listed any more proves nothing: it
        is dropped as well if it was empty when the topic was unloaded. Where the table has what
        was deleted, earlier versions of the write are found there. A loss behind that position,
        or a table that is not the one for which Pulsar deleted, leaves it open.
        """
        if self.incomplete:
            return True
        # Listed after the read: what is deleted in between is missed by both.
        listed = self._clients.admin.ledger_ids(self.partition)
        if min(listed, default=self._end.ledger + 1) <= self._end.ledger:
            return False
        if self._before < 0:
            return True
        older = self._ours & (self._first > _SEQUENCE)
        listing = self._clients.admin.ledgers(self.partition)
        with closing(self._read(listing, BEFORE_ALL, older)) as found:
            return not any(len(some) for some in found)

    def _read(
        self, listing: PartitionLedgers, end: Position, where: pc.Expression
    ) -> Generator[np.ndarray]:
        """Yield the sequence ids of the rows behind ``end``."""
        from reader.scan import read_behind  # rarely needed

        where &= pc.field("__batchIndex") <= 0
        rows = read_behind(self._clients, listing, end, ["__sequenceId"], where)
        self.incomplete = self.incomplete or rows.incomplete
        with closing(rows.batches) as batches:
            for batch in batches:
                yield batch.column(0).to_numpy(zero_copy_only=False)
