"""The chunks of a message so far, and what one more makes of them.

A message has as many chunks as its producer says, in as many entries: whatever is done for each of
them takes the same time, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, overload

from reader.decode.tables import MAX_INFLATED

# Of one decoder: messages that are incomplete at a time, their chunks, and the chunks of messages
# that have ended and are still remembered. A chunk takes some 200 bytes, a message 300 more.
MOST_OPEN = 10_000
MOST_OPEN_CHUNKS = 131_072
MOST_ENDED = 32_768

Outcome = Literal["incomplete", "complete", "duplicate", "stray"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Chunk ``chunk_id`` (from 0) of the ``num_chunks`` of a message, in entry (ledger, entry).

    ``size``: bytes of its payload. ``publish_time``: µs since the epoch. ``encrypted``: no key
    opened it, so it is a row of its own.
    """

    ledger: int
    entry: int
    chunk_id: int
    num_chunks: int
    size: int
    publish_time: int
    encrypted: bool = False


class ChunkSequence(Sequence[Chunk]):
    """The chunks 0 to k of a message so far; all of them, once complete; none after a stray one.

    A value: it never changes. ``with_next`` takes the same time, however long it is, as sequences
    share a list that only grows, and each has its length; one that grows a second time, in another
    way, makes a list of its own. ``size``: bytes of the chunks' payloads. One thread lets it grow,
    any number read.
    """

    __slots__ = ("_length", "_shared", "size")

    def __init__(self, chunks: Iterable[Chunk] = ()) -> None:
        self._shared = list(chunks)
        self._length = len(self._shared)
        self.size = sum(one.size for one in self._shared)

    def with_next(self, chunk: Chunk) -> ChunkSequence:
        """This one with a chunk more."""
        shared = self._shared
        there = shared[self._length : self._length + 1]
        if there != [chunk]:
            if there or not self._length:
                shared = shared[: self._length]
            shared.append(chunk)
        found = ChunkSequence()
        found._shared = shared
        found._length = self._length + 1
        found.size = self.size + chunk.size
        return found

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Chunk: ...
    @overload
    def __getitem__(self, index: slice) -> ChunkSequence: ...
    def __getitem__(self, index: int | slice) -> Chunk | ChunkSequence:
        if isinstance(index, slice):
            return ChunkSequence(self._shared[: self._length][index])
        return self._shared[range(self._length)[index]]

    def __iter__(self) -> Iterator[Chunk]:
        return islice(self._shared, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChunkSequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ChunkSequence({list(self)})"

    def __reduce__(self) -> tuple[type[ChunkSequence], tuple[tuple[Chunk, ...]]]:
        return ChunkSequence, (tuple(self),)


NO_CHUNKS = ChunkSequence()


def add_chunk(
    sequence: ChunkSequence, chunk: Chunk, *, has_room: bool = True
) -> tuple[ChunkSequence, Outcome, ChunkSequence]:
    """(the sequence with ``chunk``, what this chunk does, the chunks that its row consists of).

    ``has_room``: see ``ChunkMemory``; where there is none, a chunk that leaves its message
    incomplete is stray.
    """
    if chunk.chunk_id == 0:
        sequence = NO_CHUNKS
    elif chunk.chunk_id < len(sequence):
        return sequence, "duplicate", NO_CHUNKS
    elif not is_incomplete(sequence):
        sequence = NO_CHUNKS
    chunks = sequence.with_next(chunk)
    fits = chunk.chunk_id == len(sequence) and chunk.num_chunks == chunks[0].num_chunks
    if not fits or chunks.size > MAX_INFLATED:
        return NO_CHUNKS, "stray", chunks
    if len(chunks) == chunk.num_chunks:
        return chunks, "complete", chunks
    return (chunks, "incomplete", chunks) if has_room else (NO_CHUNKS, "stray", chunks)


class ChunkMemory:
    """How far messages have come, by uuid, in bounded memory.

    Messages that are incomplete are all remembered, and ``has_room`` says whether a chunk may be
    one of theirs. Of those that have ended, complete or stray, the last are remembered, with
    MOST_ENDED chunks in all: a producer may send their chunks again.
    """

    def __init__(self) -> None:
        self._open: dict[bytes, ChunkSequence] = {}
        self._ended: dict[bytes, ChunkSequence] = {}
        self._chunks = 0
        self._ended_chunks = 0

    @property
    def incomplete(self) -> Mapping[bytes, ChunkSequence]:
        """The messages that are incomplete."""
        return self._open

    def has_room(self, chunk: Chunk) -> bool:
        """Return whether a message may be left incomplete with this chunk."""
        room = chunk.chunk_id > 0 or len(self._open) < MOST_OPEN
        return room and self._chunks < MOST_OPEN_CHUNKS

    def get(self, uuid: bytes) -> ChunkSequence | None:
        """Return how far the message has come; None if that is not remembered."""
        found = self._open.get(uuid)
        return self._ended.get(uuid) if found is None else found

    def put(self, uuid: bytes, sequence: ChunkSequence) -> None:
        """Remember how far the message has come now."""
        self._chunks -= len(self._open.pop(uuid, NO_CHUNKS))
        ended = self._ended.pop(uuid, None)
        if ended is not None:
            self._ended_chunks -= max(len(ended), 1)
        if is_incomplete(sequence):
            self._open[uuid] = sequence
            self._chunks += len(sequence)
            return
        self._ended[uuid] = sequence
        self._ended_chunks += max(len(sequence), 1)
        while self._ended_chunks > MOST_ENDED and len(self._ended) > 1:
            oldest = next(iter(self._ended))
            self._ended_chunks -= max(len(self._ended.pop(oldest)), 1)

    def items(self) -> Iterator[tuple[bytes, ChunkSequence]]:
        """Return (uuid, how far it has come) of each message that is remembered."""
        return chain(self._open.items(), self._ended.items())


def is_incomplete(sequence: ChunkSequence) -> bool:
    """Whether a message has begun and is not complete yet."""
    return bool(sequence) and len(sequence) < sequence[0].num_chunks


def opened_part(sequence: ChunkSequence) -> ChunkSequence:
    """Up to the last chunk that is no row of its own; none where all are."""
    end = len(sequence)
    while end and sequence[end - 1].encrypted:
        end -= 1
    return sequence if end == len(sequence) else sequence[:end]
