"""What of a write is in a partition already: read over all tiers, by producer name and ids."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow.compute as pc

from reader.clients import Clients
from reader.errors import UnavailableError
from reader.model import Partition
from reader.sink.manifest import PartitionEntries

__all__ = ["Arrived"]

_SEQUENCE = pc.field("__sequenceId")
_CLOCKS = timedelta(hours=1)
"""How far the clocks of two machines may be apart."""


class Arrived:
    """How often each of these sequence ids is there; read when made.

    ``created``: when they were decided to be sent, in ms since the epoch: none is older.
    ``lowest``, ``highest``: of those that are there; None: none is. ``hidden``: whether
    transactions of others hide the end of the log. Memory: two bytes an id. Raises as
    ``TopicReader.scan`` does.
    """

    def __init__(
        self,
        clients: Clients,
        partition: Partition,
        name: str,
        entries: PartitionEntries,
        created: int,
    ) -> None:
        first, ids = entries.first, entries.ids
        listing = clients.admin.ledgers(partition)  # before it is read: what it hides may be there
        self.hidden = listing.recovering or listing.max_read < listing.last_confirmed
        self._trimmed_since_loaded = listing.trimmed
        self._clients = clients
        self._partition = partition
        self._first, self._before = first, entries.before
        self._times = np.zeros(ids, np.uint16)
        self._ours = pc.field("__producerName") == name
        since = datetime.fromtimestamp(created / 1000, UTC) - _CLOCKS
        sent = self._ours & (first <= _SEQUENCE) & (first + ids > _SEQUENCE)
        for found in self._read(since, sent):
            np.add.at(self._times, found - first, 1)
        there = np.flatnonzero(self._times)
        self.lowest = int(there[0]) + first if len(there) else None
        self.highest = int(there[-1]) + first if len(there) else None

    def times(self, first: int, last: int) -> int:
        """The most often that one of these ids is there."""
        return int(self._times[first - self._first : last - self._first + 1].max(initial=0))

    def require_visible(self) -> None:
        """Raises UnavailableError where the end of the log cannot be read."""
        if self.hidden:
            raise UnavailableError(
                f"transactions that others have open hide the end of {self._partition}, so what "
                "has arrived there cannot be told",
                hint="it goes on once they have ended",
            )

    def trimmed(self) -> bool:
        """Whether messages may have been deleted that are behind the beginning of the write.

        Earlier versions of it are before that. Of the first one it is known only since the topic
        was loaded: True is certain then, False is not.
        """
        if self._before < 0:
            return self._trimmed_since_loaded
        with closing(self._read(None, self._ours & (self._first > _SEQUENCE))) as older:
            return not any(len(found) for found in older)

    def _read(self, start: datetime | None, where: pc.Expression) -> Generator[np.ndarray]:
        """The sequence ids of what was published from then on."""
        from reader.scan import TopicReader  # rarely needed

        where &= pc.field("__partition") == self._partition.index
        with closing(TopicReader(self._clients, self._partition.topic)) as topic:
            for batch in topic.scan(columns=["__sequenceId"], start=start, filter=where):
                yield batch.column(0).to_numpy(zero_copy_only=False)
