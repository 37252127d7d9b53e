"""The entries of a data object that a jcloud driver has written (``{uuid}-ledger-{id}``).

Each block, big endian:

    magic FBDBABCB 4 · header length 8 · block length 8 · first entry 8 · zeros up to 128 bytes ·
    entries: length 4, entry id 8, the entry · FEDCDEAD again and again to the block's end

An entry never crosses blocks. Rules of the walk:

1. a block's header says what the index says of it;
2. entry ids go up by one, from the block's first to that before the next block's first;
3. what follows the last entry is padding, which may end within its four bytes.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reader.errors import CorruptError
from reader.kernels.array_types import Bytes
from reader.kernels.compiling import kernel
from reader.kernels.unaligned import u32
from reader.tiered.jcloud_index import BLOCK_HEADER, ENTRY_HEADER, JcloudIndex
from reader.tiered.ledger_end import LedgerEnd
from reader.tiered.walk import Found, Walk, next_of

_MAGIC = 0xFBDBABCB
_HEADER = struct.Struct(">Iqqq")
_PADDING = np.frombuffer(bytes.fromhex("fedcdead"), np.uint8)
_GOOD, _BAD_LENGTH, _BAD_ID = range(3)


@dataclass(frozen=True, slots=True)
class JcloudLedger:
    """A ledger of a jcloud driver."""

    index: JcloudIndex

    @property
    def end(self) -> LedgerEnd:
        return self.index.end

    def walk(self, first: int, last: int, begin: tuple[int, int] | None = None) -> Walk:
        """``begin``: an entry up to ``first``, and the place that a read has learned of it."""
        return JcloudWalk(self.index, first, last, begin)

    def begin_after(self, entry: int) -> int | None:
        """The first entry of the block that follows that of ``entry``; None: there is none."""
        return next_of(self.index.firsts, entry)


class JcloudWalk(Walk):
    """From the block of ``first`` on to ``last``. ``begin``: an entry up to ``first``, and where it
    begins in the object, if a read has learned that."""

    def __init__(
        self, index: JcloudIndex, first: int, last: int, begin: tuple[int, int] | None = None
    ) -> None:
        self._index = index
        self._last = last
        self._block = index.block_of(first)
        self.end = index.block_end(index.block_of(last))
        self._next = -1  # the entry that comes next; -1: a block's header does
        self.at, self.need = int(index.offsets[self._block]), BLOCK_HEADER
        self.begins_with = int(index.firsts[self._block])
        if begin is not None and begin[0] >= self.begins_with:
            self.begins_with, self.at = begin
            self._next, self.need = self.begins_with, ENTRY_HEADER

    def take(self, data: Bytes) -> Sequence[Found]:
        found: list[Found] = []
        base, pos = self.at, 0
        while self.need and len(data) - pos >= self.need:
            if self._next < 0:
                self._read_header(data[pos : pos + BLOCK_HEADER])
                pos += BLOCK_HEADER
            elif self._next > self._index.last_of(self._block):
                pos = self._read_padding(data, pos, base)
            else:
                pos, entries = self._read_entries(data, pos, base)
                found += entries
            self.at = base + pos
            self._set_need()
        return found

    def _set_need(self) -> None:
        """Before the next step. Entries set their own once their length is known."""
        last_of_block = self._index.last_of(self._block)
        if self._next > last_of_block:
            left = self._index.block_end(self._block) - self.at
            self.need = min(left, len(_PADDING))
            if not left:
                self._begin_block()
        elif self._next > self._last:
            self.need = 0
        elif self._next >= 0 and self.need < ENTRY_HEADER:
            self.need = ENTRY_HEADER

    def _begin_block(self) -> None:
        if self._index.last_of(self._block) >= self._last:
            self.need = 0
        else:
            self._block += 1
            self._next, self.need = -1, BLOCK_HEADER

    def _read_header(self, data: Bytes) -> None:
        index, block = self._index, self._block
        magic, header, length, first = _HEADER.unpack(data[: _HEADER.size].tobytes())
        expected = index.block_end(block) - int(index.offsets[block]), int(index.firsts[block])
        if magic != _MAGIC or header != BLOCK_HEADER or (length, first) != expected:
            raise CorruptError(
                f"block {block} begins with {magic:08x}, and says {length} bytes from entry "
                f"{first} on: the index says {expected[0]} from entry {expected[1]} on"
            )
        if data[_HEADER.size :].any():
            raise CorruptError(f"block {block} has something in its header that is not known")
        self._next, self.need = first, ENTRY_HEADER

    def _read_padding(self, data: Bytes, pos: int, base: int) -> int:
        """As much as there is, of all but its end in whole words."""
        rest = data[pos : self._index.block_end(self._block) - base]
        if base + pos + len(rest) < self._index.block_end(self._block):
            rest = rest[: len(rest) // len(_PADDING) * len(_PADDING)]
        words = -(-len(rest) // len(_PADDING))
        if not np.array_equal(rest, np.tile(_PADDING, words)[: len(rest)]):
            raise CorruptError(f"block {self._block} does not end with padding")
        return pos + len(rest)

    def _read_entries(self, data: Bytes, pos: int, base: int) -> tuple[int, list[Found]]:
        """As many as there are, up to the last of the block, or the last that is wanted."""
        block_end = self._index.block_end(self._block) - base
        upto = min(self._index.last_of(self._block), self._last)
        most = min(upto - self._next + 1, (len(data) - pos) // ENTRY_HEADER)
        offsets, lengths = np.empty(most, np.int64), np.empty(most, np.int64)
        count, after, state, need = _walk(data, pos, block_end, self._next, offsets, lengths)
        if state == _BAD_LENGTH:
            raise CorruptError(f"entry {self._next + count} runs over the end of its block")
        if state == _BAD_ID:
            raise CorruptError(f"entry {self._next + count} is missing in block {self._block}")
        first = self._next
        self._next, self.need = first + count, need
        offsets, lengths = offsets[:count], lengths[:count]
        found = Found(first, data, offsets, lengths, base + offsets - ENTRY_HEADER)
        return after, [found] if count else []


@kernel
def _walk(data: Any, pos: Any, end: Any, first: Any, offsets: Any, lengths: Any) -> Any:
    """Entries from ``pos`` on: (count, position after them, state, bytes that the next one takes).

    ``end``: of the block, which may lie behind ``data``. Nothing outside of ``data`` is read.
    """
    count = 0
    need = 12
    while count < len(offsets):
        if end - pos < 12:
            return count, pos, _BAD_LENGTH, 0
        if len(data) - pos < 12:
            break
        size = u32(data, pos)
        if size > end - pos - 12:
            return count, pos, _BAD_LENGTH, 0
        if (u32(data, pos + 4) << 32) | u32(data, pos + 8) != first + count:
            return count, pos, _BAD_ID, 0
        if size > len(data) - pos - 12:
            need = 12 + size
            break
        offsets[count] = pos + 12
        lengths[count] = size
        count += 1
        pos += 12 + size
    return count, pos, _GOOD, need
