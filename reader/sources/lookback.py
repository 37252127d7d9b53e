"""The rest of a partition, as seen from the entries that are read: chunks and transactions.

The one implementation of ``reader.decode.PartitionContext``, for whatever keeps the partition's
entries (``PartitionEntries``). It is rarely asked, and so reads nothing before it is: about a
chunked message that began earlier, or a transaction that ended later. Headers are read backwards
from the given entries, in portions, until the message's first chunk is found, and never beyond the
lookback position. The chunks that were passed are remembered, up to MOST_PASSED: then they are
forgotten, and the headers are read forwards from the lookback position, as a decoder reads them,
with its bounds on what it remembers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain, takewhile

from reader import decode
from reader.errors import CorruptError, LedgerGoneError
from reader.model import EntryBlock, Partition, Position, TransactionId
from reader.sources.base import PartitionEntries

MOST_PASSED = 131_072
"""The maximum number of chunks that a walk backwards remembers, some 500 bytes each."""


def beginning_gone(partition: Partition, ledger_id: int) -> LedgerGoneError:
    """Return the error for a ledger that is gone, and in which a message may begin that is read."""
    return LedgerGoneError(
        f"ledger {ledger_id} of {partition} has left Pulsar; a message may begin in it"
    )


class Lookback:
    """What lies in ``partition`` before ``end``, back to ``first``; for one thread.

    ``first``: where a message that ends behind ``end`` begins at the earliest; None: nobody knows,
    and so all entries that there are. ``known``: by uuid, how far messages have come before ``end``
    that need not be looked for. ``decryption``: opens encrypted entries, without which they are
    rows of their own.
    """

    def __init__(
        self,
        entries: PartitionEntries,
        partition: Partition,
        *,
        end: Position,
        first: Position | None = None,
        decryption: decode.Decryption | None = None,
        known: Mapping[bytes, decode.ChunkSequence] | None = None,
    ) -> None:
        self._end = end
        self._known = known or {}
        self._walk = _Walk(entries, partition, end, first, decryption)

    def before(self, end: Position) -> Lookback:
        """The same as seen from an earlier position; what was read already is not read again."""
        found = copy(self)
        found._end = end  # noqa: SLF001 - its own
        return found

    def aborted(
        self, ledger_id: int, transactions: Collection[TransactionId]
    ) -> Collection[TransactionId]:
        """See ``reader.decode.PartitionContext``. Raises as ``PartitionEntries.aborted`` does."""
        return self._walk.entries.aborted(ledger_id, transactions)

    def pick(self, ledger: int, entries: Sequence[int]) -> Iterator[EntryBlock]:
        """See ``reader.decode.PartitionContext``. Raises as ``PartitionEntries.pick`` does, and
        CorruptError for an entry that is damaged or hidden."""
        missing = set(entries)
        for block in self._walk.entries.pick(ledger, entries):
            ids = block.entry_ids.tolist()
            for i, why in block.damaged.items():
                raise CorruptError(f"entry {ledger}:{ids[i]} of {self._walk.partition}: {why}")
            missing -= set(ids)
            yield block
        for entry in sorted(missing):
            raise CorruptError(f"entry {ledger}:{entry} of {self._walk.partition} is hidden")

    def sequence_before(self, uuid: bytes) -> decode.ChunkSequence:
        """By the chunks from the message's latest first chunk on, or from the lookback position.

        Raises LedgerGoneError where the ledger of that position has left the store, and as
        ``PartitionEntries.windows`` does.
        """
        if uuid in self._known:
            return self._known[uuid]
        while True:
            found = self._walk.found.get(uuid)
            if found is not None and found.begins_before(self._end):
                return found.before(self._end)
            if not self._walk.go_on():
                break
        if self._walk.too_long:
            sequence = self._walk.in_order.sequence_before(uuid, self._end)
        else:
            sequence = found.before(self._end) if found is not None else decode.NO_CHUNKS
        if not sequence:
            self._walk.require_first()
        return sequence

    def incomplete(self) -> dict[bytes, decode.ChunkSequence]:
        """The chunked messages that have begun and are not complete yet, by uuid.

        Reads all headers back to the lookback position, and remembers these messages however many
        they are. Raises as ``PartitionEntries.windows``.
        """
        while self._walk.go_on():
            pass
        if self._walk.too_long:
            return self._walk.in_order.incomplete_before(self._end)
        sequences = {uuid: one.before(self._end) for uuid, one in self._walk.found.items()}
        return {uuid: chunks for uuid, chunks in sequences.items() if decode.is_incomplete(chunks)}


class _Found:
    """The chunks of one message that were passed, and how far it had come after each of them."""

    def __init__(self) -> None:
        self._backwards: list[decode.Chunk] = []
        self._begin: Position | None = None
        self._ends: list[tuple[Position, decode.ChunkSequence]] = []

    def add_earlier(self, chunk: decode.Chunk) -> None:
        self._backwards.append(chunk)
        self._ends = []
        if chunk.chunk_id == 0:
            self._begin = _position(chunk)

    def begins_before(self, end: Position) -> bool:
        """Whether a first chunk was passed that lies before ``end``."""
        return self._begin is not None and self._begin < end

    def before(self, end: Position) -> decode.ChunkSequence:
        if not self._ends:
            sequence = decode.NO_CHUNKS
            for chunk in reversed(self._backwards):
                sequence = decode.add_chunk(sequence, chunk)[0]
                self._ends.append((_position(chunk), sequence))
        i = bisect_left(self._ends, end, key=lambda one: one[0])
        return self._ends[i - 1][1] if i else decode.NO_CHUNKS


class _Walk:
    """The walk backwards. ``found``: the chunks that were passed so far, by uuid.

    ``too_long``: it has passed MOST_PASSED chunks, and has forgotten them.
    """

    def __init__(
        self,
        entries: PartitionEntries,
        partition: Partition,
        end: Position,
        first: Position | None,
        decryption: decode.Decryption | None,
    ) -> None:
        self.entries = entries
        self.found: dict[bytes, _Found] = {}
        self.partition = partition
        self.too_long = False
        self._end, self._first = end, first
        self._decryption = decryption
        self._first_is_there: bool | None = None
        self._passed = 0
        self._portions = self._read(forwards=False)

    def go_on(self) -> bool:
        """Read one portion more; False where there is none, or the walk is too long."""
        portion = next(self._portions, None)
        if portion is None:
            return False
        for uuid, chunk in reversed(portion):
            self.found.setdefault(uuid, _Found()).add_earlier(chunk)
        return True

    @cached_property
    def in_order(self) -> _InOrder:
        """The chunks that the walk may pass, in the order of the log."""
        return _InOrder(lambda: chain.from_iterable(self._read(forwards=True)))

    def require_first(self) -> None:
        if self._first_is_there is None:
            self._first_is_there = self._first is None or self.entries.has_ledger(
                self._first.ledger
            )
        if not self._first_is_there:
            assert self._first is not None
            raise beginning_gone(self.partition, self._first.ledger)

    def _read(self, *, forwards: bool) -> Iterator[list[tuple[bytes, decode.Chunk]]]:
        transactions = decode.Transactions(self.entries.aborted)
        first = self._first or Position(0, 0)
        for blocks in self.entries.windows(self._end, first, forwards=forwards):
            found: list[tuple[bytes, decode.Chunk]] = []
            for block in blocks:
                found += decode.chunk_headers(block, transactions, self._decryption)
                if not forwards and self._passed + len(found) > MOST_PASSED:
                    self.too_long = True
                    self.found.clear()
                    return
            if not forwards:
                self._passed += len(found)
            yield sorted(found, key=lambda one: _position(one[1]))


class _InOrder:
    """How far messages have come at a position, by all chunks before it, in the order of the log.

    ``read`` begins anew. It remembers what a decoder does (``ChunkMemory``), however many chunks
    there are.
    """

    def __init__(self, read: Callable[[], Iterator[tuple[bytes, decode.Chunk]]]) -> None:
        self._read = read
        self._upto: Position | None = None
        self._memory = decode.ChunkMemory()
        self._chunks: Iterator[tuple[bytes, decode.Chunk]] = iter(())
        self._next: tuple[bytes, decode.Chunk] | None = None

    def sequence_before(self, uuid: bytes, end: Position) -> decode.ChunkSequence:
        """Return how far a message has come. If positions ascend, the log is read once."""
        if self._upto is None or end < self._upto:
            self._chunks, self._memory = self._read(), decode.ChunkMemory()
            self._next = next(self._chunks, None)
        self._upto = end
        while self._next is not None and _position(self._next[1]) < end:
            other, chunk = self._next
            before, room = self._memory.get(other) or decode.NO_CHUNKS, self._memory.has_room(chunk)
            self._memory.put(other, decode.add_chunk(before, chunk, has_room=room)[0])
            self._next = next(self._chunks, None)
        return self._memory.get(uuid) or decode.NO_CHUNKS

    def incomplete_before(self, end: Position) -> dict[bytes, decode.ChunkSequence]:
        """Return the messages that are incomplete, of which all are remembered, but no others."""
        found: dict[bytes, decode.ChunkSequence] = {}
        for uuid, chunk in takewhile(lambda one: _position(one[1]) < end, self._read()):
            sequence = decode.add_chunk(found.pop(uuid, decode.NO_CHUNKS), chunk)[0]
            if decode.is_incomplete(sequence):
                found[uuid] = sequence
        return found


def _position(chunk: decode.Chunk) -> Position:
    return Position(chunk.ledger, chunk.entry)
