"""PendingEntries: the entries of a block that arrive one by one, in any order.

Most of an entry's state is numbers in arrays, and a ``BookieShare`` of one bookie.
"""

from typing import Any

import numpy as np

from reader.bookkeeper.reads.entry_retry import EntryRetry
from reader.bookkeeper.reads.pending_block import PendingBlock
from reader.bookkeeper.reads.read_messages import EntryAnswers
from reader.bookkeeper.v3 import EOK
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.compiling import kernel
from reader.kernels.memory import empty_bytes
from reader.kernels.unaligned import move16

# A request's number is the number of its block, and the entry's index in it.
INDEX_BITS = 14

_MIN_BYTES = 1 << 12
_ANSWERED, _REQUESTED = 1, 2


class BookieShare:
    """The entries that one bookie is to give. ``sent``: how many of ``indices`` are requested.

    ``unanswered``: requests without an answer.
    """

    __slots__ = ("indices", "sent", "unanswered")

    def __init__(self) -> None:
        self.indices = np.empty(0, np.int64)
        self.sent = 0
        self.unanswered = 0

    def add(self, indices: Int64s) -> None:
        """Add entries."""
        self.indices = np.concatenate((self.indices, indices)) if len(self.indices) else indices

    def take(self, limit: int) -> Int64s:
        """Return the next entries to request."""
        taken = self.indices[self.sent : self.sent + limit]
        self.sent += len(taken)
        self.unanswered += len(taken)
        return taken

    def take_back(self) -> Int64s:
        """Remove and return the entries that are not requested."""
        unsent = self.indices[self.sent :]
        self.indices = self.indices[: self.sent]
        return unsent


class PendingEntries:
    """The entries of a block; entry i has the request ``base`` + i.

    Entry i has arrived if ``lengths[i]`` is not -1, and is then
    ``arena[offsets[i] : offsets[i] + lengths[i]]``. ``missing``: how many have not arrived.
    ``used``: bytes in the arena. ``retries``: by index. ``damaged``: indices of entries whose every
    copy fails its digest.
    """

    __slots__ = (
        "_state",
        "arena",
        "base",
        "damaged",
        "lengths",
        "missing",
        "offsets",
        "pending",
        "retries",
        "shares",
        "used",
    )

    def __init__(self, pending: PendingBlock, number: int) -> None:
        count = pending.last - pending.first + 1
        self.pending = pending
        self.base = number << INDEX_BITS
        self.offsets = np.empty(count, np.int64)
        self.lengths = np.full(count, -1, np.int64)
        # 0, ANSWERED, or REQUESTED + the position in the ensemble of the bookie that was asked
        self._state = np.zeros(count, np.int16)
        self.missing = count
        self.arena = empty_bytes(max(_MIN_BYTES, pending.estimate + pending.estimate // 4))
        self.used = 0
        self.shares: dict[str, BookieShare] = {}
        self.retries: dict[int, EntryRetry] = {}
        self.damaged: set[int] = set()

    def is_over(self, index: int) -> bool:
        """Return whether an entry has arrived, or is no longer wanted."""
        return self.pending.is_done or bool(self.lengths[index] >= 0)

    def retry_of(self, index: int) -> EntryRetry:
        """Return the retry of an entry, a new one if it has none."""
        if index not in self.retries:
            self.retries[index] = EntryRetry(self.pending, index)
        return self.retries[index]

    # -- requests --------------------------------------------------------------------------------

    def take_unsent(self, bookie: str, limit: int) -> Int64s:
        """Return the next entries to request from a bookie; they count as requested."""
        indices = self.shares[bookie].take(limit)
        self._state[indices] = _REQUESTED + self.pending.ensemble.index(bookie)
        return indices

    def outstanding(self, bookie: str) -> Int64s:
        """Return the entries that were requested from a bookie, which has not answered."""
        share = self.shares[bookie]
        requested = share.indices[: share.sent]
        is_outstanding = self._state[requested] == _REQUESTED + self.pending.ensemble.index(bookie)
        return np.unique(requested[is_outstanding])  # requested again after a kept connection broke

    def forget(self, bookie: str) -> Int64s:
        """Expect no more answers of a bookie. Return the entries that were outstanding."""
        outstanding = self.outstanding(bookie)
        self._state[outstanding] = _ANSWERED
        self.shares[bookie].unanswered = 0
        return outstanding

    def bookie_of(self, index: int) -> str:
        """Return the bookie in whose share an entry is."""
        return next(bookie for bookie, share in self.shares.items() if index in share.indices)

    def cut_unsent(self) -> None:
        """End the block with the last entry that is requested."""
        shares = self.shares.values()
        last = max(int(share.indices[: share.sent].max(initial=0)) for share in shares)
        count = last + 1
        if count < len(self.lengths):
            for share in shares:
                share.indices = share.indices[share.indices < count]
            self.missing -= len(self.lengths) - count
            self.offsets, self.lengths = self.offsets[:count], self.lengths[:count]
            self._state = self._state[:count]

    # -- answers ---------------------------------------------------------------------------------

    def take(self, bookie: str, answers: EntryAnswers) -> tuple[int, Int64s]:
        """Copy the entries that a bookie gives.

        Return how many of the bookie's outstanding requests are answered, and the columns of the
        answers that gave nothing: an error, or an entry that has arrived before.
        """
        table = answers.table
        others = np.empty(table.shape[1], np.int64)
        # The column to begin with, answers, others, bytes that the arena has to have.
        counts = np.zeros(4, np.int64)
        requested = _REQUESTED + self.pending.ensemble.index(bookie)
        while True:
            counts[3] = 0
            self.used, taken = _take(
                table, answers.buffer, self.base, requested, self._state, self.offsets,
                self.lengths, self.arena, self.used, others, counts,
            )  # fmt: skip
            self.missing -= taken
            if not counts[3]:
                self.shares[bookie].unanswered -= int(counts[1])
                return int(counts[1]), others[: counts[2]]
            self._grow(int(counts[3]))

    def put(self, index: int, body: Bytes | bytes) -> None:
        """Add an entry that has not arrived."""
        if self.used + len(body) > len(self.arena):
            self._grow(self.used + len(body))
        self.arena[self.used : self.used + len(body)] = np.frombuffer(body, np.uint8)
        self.offsets[index], self.lengths[index] = self.used, len(body)
        self.used += len(body)
        self.missing -= 1

    def remove(self, index: int) -> bytes:
        """Remove an entry, and return its bytes."""
        begin = int(self.offsets[index])
        body = self.arena[begin : begin + int(self.lengths[index])].tobytes()
        self.lengths[index] = -1
        self.missing += 1
        return body

    def _grow(self, min_bytes: int) -> None:
        arena = empty_bytes(2 * min_bytes)
        arena[: self.used] = self.arena[: self.used]
        self.arena = arena


@kernel
def _take(
    table: Any,
    buffer: Any,
    base: int,
    requested: int,
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
        if index < 0 or index >= len(lengths) or state[index] != requested:
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
        state[index] = _ANSWERED
        counts[1] += 1
    return used, taken
