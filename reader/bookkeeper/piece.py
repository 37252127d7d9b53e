"""A piece of a range: the entries that are asked for together and become one block."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from reader.bookkeeper.connection import Answers
from reader.bookkeeper.digest import HEADER, code_length, verify
from reader.bookkeeper.v3 import EOK
from reader.errors import PulsarLakeError
from reader.kernels.compiling import kernel
from reader.kernels.memory import empty_bytes
from reader.kernels.unaligned import move16
from reader.model import EntryBlock, LedgerMetadata

__all__ = ["ANSWERED", "ASKED", "MOST_ENTRIES", "Bodies", "Failed", "Piece", "block_of"]

MOST_ENTRIES = 16_376
_LEAST_BYTES = 1 << 12

UNASKED, ANSWERED, ASKED = range(3)

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]


class Failed(Protocol):
    """What is to be called when a connection to a bookie has failed."""

    def __call__(self, bookie: str, error: PulsarLakeError, *, silent: bool) -> None: ...


class Piece:
    """Entries first..last of a ledger, all of one ensemble.

    In the end it has a ``block``, which may end before ``last``, or an ``error``. ``estimate``:
    bytes that it may take.
    """

    __slots__ = ("block", "ensemble", "error", "estimate", "first", "last", "ledger")

    def __init__(self, ledger: LedgerMetadata, first: int, last: int, estimate: int) -> None:
        self.ledger = ledger
        self.first = first
        self.last = last
        self.estimate = estimate
        self.ensemble = ledger.ensemble_at(first)
        self.block: EntryBlock | None = None
        self.error: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.block is not None or self.error is not None


def block_of(
    piece: Piece,
    password: bytes,
    arena: Bytes,
    offsets: Int64s,
    lengths: Int64s,
    damaged: dict[int, str],
) -> EntryBlock | list[int]:
    """The block of a piece's first entries, or the rows that fail their digest.

    Those in ``damaged`` may. Ranges are those of entries as they are stored, digest and all.
    """
    ledger = piece.ledger
    entries = np.arange(piece.first, piece.first + len(offsets), dtype=np.int64)
    good = verify(ledger.digest_type, password, arena, offsets, lengths, ledger.ledger_id, entries)
    if damaged:
        good[list(damaged)] = True
    if not good.all():
        return [int(row) for row in np.flatnonzero(~good)]
    front = HEADER + code_length(ledger.digest_type)
    if damaged:
        short = np.minimum(front, lengths)
        return EntryBlock(
            ledger.ledger_id, entries, offsets + short, lengths - short, arena, damaged
        )
    return EntryBlock(ledger.ledger_id, entries, offsets + front, lengths - front, arena)


class Bodies:
    """Entries that arrive one by one, in any order: ``arena[offsets : offsets + lengths]``.

    ``lengths`` is -1 for those that are not there; ``missing``: how many. ``state``: ``UNASKED``,
    ``ANSWERED``, or ``ASKED`` + the position in the ensemble of the bookie that was asked, of the
    request that is numbered by the entry's index.
    """

    __slots__ = ("arena", "lengths", "missing", "offsets", "state", "used")

    def __init__(self, count: int, estimate: int) -> None:
        self.offsets = np.empty(count, np.int64)
        self.lengths = np.full(count, -1, np.int64)
        self.state = np.zeros(count, np.int16)
        self.missing = count
        self.arena = empty_bytes(max(_LEAST_BYTES, estimate + estimate // 4))
        self.used = 0

    def take(self, answers: Answers, base: int, position: int) -> tuple[int, Int64s]:
        """Copy the bodies of a bookie's answers to requests ``base`` + index.

        Returns how many there are to requests that were outstanding at the bookie with this
        position, and the columns of those whose body was not taken: without one, or there already.
        """
        table = answers.table
        others = np.empty(table.shape[1], np.int64)
        counts = np.zeros(4, np.int64)  # column, answers, others, bytes that the arena has to have
        while True:
            counts[3] = 0
            self.used, taken = _take(
                table, answers.buffer, base, ASKED + position, self.state, self.offsets,
                self.lengths, self.arena, self.used, others, counts,
            )  # fmt: skip
            self.missing -= taken
            if not counts[3]:
                return int(counts[1]), others[: counts[2]]
            self._grow(int(counts[3]))

    def put(self, index: int, body: Bytes | bytes) -> None:
        """Add one that is not there."""
        if self.used + len(body) > len(self.arena):
            self._grow(self.used + len(body))
        self.arena[self.used : self.used + len(body)] = np.frombuffer(body, np.uint8)
        self.offsets[index], self.lengths[index] = self.used, len(body)
        self.used += len(body)
        self.missing -= 1

    def remove(self, index: int) -> bytes:
        """Take one out again."""
        at = int(self.offsets[index])
        body = self.arena[at : at + int(self.lengths[index])].tobytes()
        self.lengths[index] = -1
        self.missing += 1
        return body

    def cut(self, count: int) -> None:
        """Only the first ``count``; of the others none is there."""
        self.missing -= len(self.lengths) - count
        self.offsets, self.lengths = self.offsets[:count], self.lengths[:count]
        self.state = self.state[:count]

    def _grow(self, least: int) -> None:
        arena = empty_bytes(2 * least)
        arena[: self.used] = self.arena[: self.used]
        self.arena = arena


@kernel
def _take(
    table: Any,
    buffer: Any,
    base: int,
    asked: int,
    state: Any,
    offsets: Any,
    lengths: Any,
    arena: Any,
    used: int,
    others: Any,
    counts: Any,
) -> Any:
    taken = 0
    for column in range(counts[0], table.shape[1]):
        index = table[0, column] - base
        if index < 0 or index >= len(lengths) or state[index] != asked:
            continue
        size = table[3, column]
        if table[1, column] == EOK and size >= 0 and lengths[index] < 0:
            if used + size > len(arena):
                counts[0] = column
                counts[3] = used + size
                return used, taken
            begin = table[2, column]
            whole = size & ~15
            for k in range(0, whole, 16):
                move16(arena, used + k, buffer, begin + k)
            for k in range(whole, size):
                arena[used + k] = buffer[begin + k]
            offsets[index] = used
            lengths[index] = size
            used += size
            taken += 1
        else:
            others[counts[2]] = column
            counts[2] += 1
        state[index] = ANSWERED
        counts[1] += 1
    return used, taken
