"""A broker's stream of bytes, taken apart in bulk: bytes in, messages and commands out. No I/O.

A frame is ``u32 size``, ``u32 size of the command``, the command (``BaseCommand``), and for MESSAGE
the entry behind it, as it is stored. What a read of the socket brought is split by one call of a
kernel, which stops only at other commands. Entries stay where they were read to: nothing is copied
but the beginning of a frame that an arena has no room for.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reader.errors import CorruptError
from reader.kernels.compiling import kernel
from reader.kernels.memory import empty_bytes, empty_int64s
from reader.kernels.protobuf_wire import field
from reader.kernels.unaligned import u32

MOST_BYTES = 512 << 20
"""Of a frame. Brokers have ``maxMessageSize`` (5 MiB, or what they are set to) and some headers."""
_LEAST_ARENA = 64 << 10
_ROWS = 8192
LEDGER, ENTRY, OFFSET, LENGTH, MESSAGES = range(5)


@dataclass(frozen=True, slots=True)
class Rows:
    """Entries in an arena: int64 of shape (5, entries), by LEDGER, ENTRY, OFFSET, LENGTH, MESSAGES.

    MESSAGES: how many the entry counts for, when a consumer permits messages.
    """

    arena: npt.NDArray[np.uint8]
    values: npt.NDArray[np.int64]


class FrameReader:
    """What was received, and how far it was taken apart.

    ``arena_bytes``: of new arenas, each of which is given out with what is in it. A larger frame
    gets a larger one, that doubles as its bytes arrive: no number alone makes it allocate.
    Entries are those of the consumer that is followed, each once, ascending.
    """

    def __init__(self, arena_bytes: int = _LEAST_ARENA) -> None:
        self.arena_bytes = arena_bytes
        self._consumer = -1
        self._after = np.full(2, -1, np.int64)
        self._arena = empty_bytes(max(arena_bytes, _LEAST_ARENA))
        self._filled = 0
        self._parsed = 0
        self._given = False  # rows of this arena were given out: its bytes stay what they are
        self._rows = empty_int64s(5 * _ROWS).reshape(5, _ROWS)

    def follow(self, consumer: int, ledger: int, entry: int) -> None:
        """Give the entries of this consumer that lie behind a position, and of no other."""
        self._consumer = consumer
        self._after[:] = ledger, entry

    def room(self) -> memoryview:
        """Where to receive the next bytes to; never empty."""
        if self._parsed == self._filled and not self._given:
            self._parsed = self._filled = 0
            if len(self._arena) < self.arena_bytes:
                self._new_arena()
        if self._filled == len(self._arena):
            self._new_arena()
        return self._arena.data[self._filled :]

    def received(self, count: int) -> None:
        """So many bytes were written to ``room``."""
        self._filled += count

    def messages(self) -> Rows | None:
        """The next entries; None where a command stands, or more bytes are needed.

        Raises CorruptError for what is not the protocol.
        """
        arena = self._arena
        count, at = _split(
            arena, self._parsed, self._filled, self._consumer, self._after, self._rows
        )
        if at < 0:
            raise CorruptError("a broker sent what is no frame of Pulsar's protocol")
        self._parsed = at
        if not count:
            return None
        self._given = True
        return Rows(arena, self._rows[:, :count].copy())

    def command(self) -> bytes | None:
        """The command that stands next, to be asked for after ``messages`` gave None.

        None where more bytes are needed.
        """
        start, end = self._parsed, self._filled
        if end - start < 8:
            return None
        size, inner = (int.from_bytes(self._arena[at : at + 4]) for at in (start, start + 4))
        if end - start - 4 < size:
            return None
        self._parsed = start + 4 + size
        return self._arena[start + 8 : start + 8 + inner].tobytes()

    def _new_arena(self) -> None:
        rest = self._arena[self._parsed : self._filled]
        # Of a frame that begins at the start of an arena and does not fit, twice as much.
        arena = empty_bytes(max(self.arena_bytes, _LEAST_ARENA, 2 * len(rest)))
        arena[: len(rest)] = rest
        self._arena, self._parsed, self._filled, self._given = arena, 0, len(rest), False


def prewarm() -> None:
    """Compile the kernels, for who reads the first entry."""
    FrameReader().messages()


@kernel
def _message_count(data: Any, at: Any, end: Any) -> Any:
    """Messages of an entry, as the broker counts them; 1 where its metadata is no metadata."""
    if end - at >= 6 and data[at] == 0x0E and data[at + 1] == 0x02:
        size = u32(data, at + 2)
        if size > end - at - 6:
            return np.int64(1)
        at += 6 + size
    if end - at >= 6 and data[at] == 0x0E and data[at + 1] == 0x01:
        at += 6
    if end - at < 4:
        return np.int64(1)
    size = u32(data, at)
    at += 4
    if size > end - at:
        return np.int64(1)
    end = at + size
    while at < end:
        tag, value, _, at = field(data, at, end)
        if at < 0:
            return np.int64(1)
        if tag == 88:  # num_messages_in_batch = 11
            return value if 0 < value < 1 << 24 else np.int64(1)
    return np.int64(1)


@kernel
def _message(data: Any, at: Any, end: Any) -> Any:
    """Of a CommandMessage: (consumer, ledger, entry); the first is -1 where it is none."""
    consumer = ledger = entry = np.int64(-1)
    while at < end:
        tag, value, inside, at = field(data, at, end)
        if at < 0:
            return np.int64(-1), ledger, entry
        if tag == 8:  # consumer_id = 1
            consumer = value
        elif tag == 18:  # message_id = 2
            while inside < at:
                inner, value, _, inside = field(data, inside, at)
                if inside < 0:
                    return np.int64(-1), ledger, entry
                if inner == 8:  # ledgerId = 1
                    ledger = value
                elif inner == 16:  # entryId = 2
                    entry = value
    if ledger < 0 or entry < 0:
        consumer = np.int64(-1)
    return consumer, ledger, entry


@kernel
def _split(data: Any, at: Any, filled: Any, consumer: Any, after: Any, rows: Any) -> Any:
    """(entries, where it stopped): at a command, at a frame that is not whole, or rows are full.

    -1 for what is no frame. ``after``: the ledger and entry of the last one that was given.
    """
    count = 0
    at = np.int64(at)
    while count < rows.shape[1] and filled - at >= 4:
        size = u32(data, at)
        if size < 4 or size > MOST_BYTES:
            return count, np.int64(-1)
        if filled - at < 8:
            break
        inner = u32(data, at + 4)
        if inner < 2 or inner > size - 4:
            return count, np.int64(-1)
        if filled - at - 4 < size:
            break
        begin = at + 8
        stop = begin + inner
        # type = 1: MESSAGE, as every broker writes it: first, and then its field
        if data[begin] != 8 or data[begin + 1] != 9:
            break
        tag, _, inside, behind = field(data, begin + 2, stop)
        if tag != 74 or behind != stop:
            return count, np.int64(-1)
        found, ledger, entry = _message(data, inside, stop)
        if found < 0:
            return count, np.int64(-1)
        at += 4 + size
        sent_again = ledger < after[0] or (ledger == after[0] and entry <= after[1])
        if found == consumer and not sent_again:
            after[0] = ledger
            after[1] = entry
            rows[LEDGER, count] = ledger
            rows[ENTRY, count] = entry
            rows[OFFSET, count] = stop
            rows[LENGTH, count] = at - stop
            rows[MESSAGES, count] = _message_count(data, stop, at)
            count += 1
    return count, at
