"""The rest of a partition, as seen from the entries that are read: chunks and transactions.

The one implementation of ``reader.decode.PartitionContext``, for whatever keeps the partition's
entries (``PartitionEntries``). It is rarely asked, and so reads nothing before it is: about a
chunked message that began earlier, or a transaction that ended later. Headers are read backwards
from the given entries, in portions, until the message's first chunk is found, and never beyond the
lookback position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy

from reader.decode import (
    Chunk,
    ChunkSequence,
    Decryption,
    Transactions,
    add_chunk,
    chunk_headers,
    is_incomplete,
)
from reader.errors import LedgerGoneError
from reader.model import Partition, Position
from reader.sources.base import PartitionEntries

__all__ = ["Lookback"]


class Lookback:
    """What lies in ``partition`` before ``end``, back to ``first``; for one thread.

    ``first``: where a message that ends behind ``end`` begins at the earliest; None: nobody knows,
    and so all entries that there are. ``known``: chunks before ``end`` that need not be looked for,
    by uuid. ``decryption``: opens encrypted entries, without which they are rows of their own.
    """

    def __init__(
        self,
        entries: PartitionEntries,
        partition: Partition,
        *,
        end: Position,
        first: Position | None = None,
        decryption: Decryption | None = None,
        known: Mapping[bytes, Sequence[Chunk]] | None = None,
    ) -> None:
        self._end = end
        self._known = known or {}
        self._walk = _Walk(entries, partition, end, first, decryption)

    def before(self, end: Position) -> Lookback:
        """The same as seen from an earlier position; what was read already is not read again."""
        found = copy(self)
        found._end = end  # noqa: SLF001 - its own
        return found

    def aborted(self, most: int, least: int) -> bool:
        """See ``reader.decode.PartitionContext``. Raises UnsupportedError where nobody can tell."""
        return self._walk.entries.aborted(most, least)

    def entry(self, ledger: int, entry: int) -> bytes:
        """See ``reader.decode.PartitionContext``. Raises as ``PartitionEntries.entry`` does."""
        return self._walk.entries.entry(ledger, entry)

    def chunks_before(self, uuid: bytes) -> Sequence[Chunk]:
        """From the message's latest first chunk on, or from the lookback position.

        Raises LedgerGoneError where the ledger of that position has left the store, and as
        ``PartitionEntries.windows`` does.
        """
        if uuid in self._known:
            return self._known[uuid]
        while True:
            found = [chunk for name, chunk in self._before() if name == uuid]
            begun = [i for i, chunk in enumerate(found) if chunk.chunk_id == 0]
            if begun:
                return found[begun[-1] :]
            if not self._walk.go_on():
                self._walk.require_first()
                return found

    def incomplete(self) -> dict[bytes, ChunkSequence]:
        """The chunked messages that have begun and are not complete yet, by uuid.

        Reads all headers back to the lookback position. Raises as ``PartitionEntries.windows``.
        """
        while self._walk.go_on():
            pass
        sequences: dict[bytes, ChunkSequence] = {}
        for uuid, chunk in self._before():
            sequences[uuid] = add_chunk(sequences.get(uuid, ()), chunk)[0]
        return {uuid: chunks for uuid, chunks in sequences.items() if is_incomplete(chunks)}

    def _before(self) -> list[tuple[bytes, Chunk]]:
        return [one for one in self._walk.chunks if _position(one[1]) < self._end]


class _Walk:
    """The walk backwards: (uuid, chunk) of each chunk passed so far, in the order of the log."""

    def __init__(
        self,
        entries: PartitionEntries,
        partition: Partition,
        end: Position,
        first: Position | None,
        decryption: Decryption | None,
    ) -> None:
        self.entries = entries
        self.chunks: list[tuple[bytes, Chunk]] = []
        self._partition = partition
        self._first = first
        self._decryption = decryption
        self._portions = self._backwards(end, first or Position(0, 0))

    def go_on(self) -> bool:
        """Read one portion more; False where there is none."""
        portion = next(self._portions, None)
        if portion is None:
            return False
        self.chunks = portion + self.chunks
        return True

    def require_first(self) -> None:
        if self._first is not None and not self.entries.has_ledger(self._first.ledger):
            raise LedgerGoneError(
                f"ledger {self._first.ledger} of {self._partition} has left BookKeeper; "
                "a message begins in it"
            )

    def _backwards(self, end: Position, first: Position) -> Iterator[list[tuple[bytes, Chunk]]]:
        transactions = Transactions(self.entries.aborted)
        for blocks in self.entries.windows(end, first):
            found = []
            for block in blocks:
                found += chunk_headers(block, transactions, self._decryption)
            yield sorted(found, key=lambda one: _position(one[1]))


def _position(chunk: Chunk) -> Position:
    return Position(chunk.ledger, chunk.entry)
