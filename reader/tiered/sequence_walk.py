"""The entries of a ledger that the filesystem driver has written: a SequenceFile's records.

Keys are the entries' ids, from -1, which is the ledger's metadata, on; none is missing.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from reader.errors import CorruptError
from reader.kernels.array_types import Bytes
from reader.kernels.compiling import kernel
from reader.kernels.unaligned import u32
from reader.tiered.sequence_file import MOST_INFLATED, SYNC, Compression, Header, inflated, vint
from reader.tiered.walk import Found, Walk

_RECORD = 16
"""Bytes of a record before its value: two lengths, and the key."""
MOST_TOGETHER = 64 << 20
"""Bytes that one call inflates, about: what is compressed well does not come all at once."""
_ESCAPE = np.full(4, 0xFF, np.uint8)
_GOOD, _BAD_SYNC, _BAD_KEY, _BAD_ID, _BAD_LENGTH = range(5)
_WRONG = {
    _BAD_SYNC: "a sync marker is not the file's",
    _BAD_KEY: "a record has a key that is no entry id",
    _BAD_ID: "it is not there",
    _BAD_LENGTH: "its record says two lengths, or one that is too large",
}


def sequence_walk(header: Header, begin: tuple[int | None, int], last: int, end: int) -> Walk:
    """The entries from ``begin`` on to ``last``.

    ``begin``: an entry (None: not known which), and where its record or block begins; ``end``: of
    the file, or of a part that is known to have ``last``.
    """
    kind = _BlockWalk if header.compression is Compression.BLOCK else _RecordWalk
    return kind(header, begin, last, end)


class SequenceWalk(Walk):
    """What both have in common."""

    def __init__(self, header: Header, begin: tuple[int | None, int], last: int, end: int) -> None:
        self._header = header
        self._sync = np.frombuffer(header.sync, np.uint8)
        self._next, self.at = begin
        self.begins_with = -1 if self._next is None else self._next
        self._last = last
        self.end = end
        self.need = self._least

    @property
    @abstractmethod
    def _least(self) -> int:
        """Bytes before anything is known of what follows."""

    def _is_done(self) -> bool:
        return self._next is not None and self._next > self._last


class _RecordWalk(SequenceWalk):
    """Of records, their values compressed or not."""

    _least = 4

    def take(self, data: Bytes) -> Sequence[Found]:
        assert self._next is not None, "every place of a record is one of a known entry"
        most = min(self._last - self._next + 1, len(data) // _RECORD)
        offsets, lengths = np.empty(most, np.int64), np.empty(most, np.int64)
        places = np.empty(most, np.int64)
        count, pos, state, need = _walk(
            data, self.end - self.at, self._next, self._sync, offsets, lengths, places
        )
        if state != _GOOD:
            raise CorruptError(f"entry {self._next + count}: {_WRONG[state]}")
        if count and self._header.compression is Compression.RECORD:
            data, offsets, lengths = self._inflated(data, offsets[:count], lengths[:count])
            if len(offsets) < count:
                count, pos, need = len(offsets), int(places[len(offsets)]), self._least
        first, base = self._next, self.at
        self._next, self.at, self.need = first + count, base + pos, need
        if self._is_done():
            self.need = 0
        if not count:
            return []
        offsets, lengths, places = offsets[:count], lengths[:count], places[:count] + base
        lengths = lengths - 4
        if (_lengths(data, offsets) != lengths).any() or (lengths < 0).any():
            raise CorruptError(f"of entries {first} to {first + count - 1}, one says two lengths")
        return [Found(first, data, offsets + 4, lengths, places)]

    def _inflated(self, data: Bytes, offsets: Any, lengths: Any) -> tuple[Bytes, Any, Any]:
        """Of the first of them, or all."""
        values: list[bytes] = []
        together = 0
        for at, size in zip(offsets.tolist(), lengths.tolist(), strict=True):
            values.append(inflated(self._header, data[at : at + size].tobytes()))
            together += len(values[-1])
            if together > MOST_TOGETHER:
                break
        sizes = np.array([len(one) for one in values], np.int64)
        return np.frombuffer(b"".join(values), np.uint8), np.cumsum(sizes) - sizes, sizes


class _BlockWalk(SequenceWalk):
    """Of blocks of compressed records."""

    # The escape and its marker, the number of records, and the first of the four lengths.
    _least = SYNC + 1 + 1

    def take(self, data: Bytes) -> Sequence[Found]:
        found: list[Found] = []
        base, pos, together = self.at, 0, 0
        while self.need and len(data) - pos >= self.need and together <= MOST_TOGETHER:
            parts, after = self._block(data[pos:])
            if after is None:
                break
            found.append(self._records(*parts))
            together += len(found[-1].arena)
            pos += after
            self.at = base + pos
            self.need = 0 if self._is_done() else self._least
        return found

    def _block(self, data: Bytes) -> tuple[tuple[int, list[bytes]], int | None]:
        """((number of records, the four parts), bytes of the block, None where more are needed)."""
        if not np.array_equal(data[:4], _ESCAPE) or not np.array_equal(data[4:SYNC], self._sync):
            raise CorruptError(f"no sync marker at {self.at}")
        rest = self.end - self.at
        parts: list[bytes] = []
        try:
            count, at = self._number(data, SYNC)
            for _ in range(4):
                size, at = self._number(data, at)
                if size < 0 or size > rest - at:
                    raise CorruptError(f"a block at {self.at} runs over the end")
                if size > len(data) - at:
                    self.need = at + size
                    return (0, []), None
                parts.append(data[at : at + size].tobytes())
                at += size
        except IndexError:
            self.need = min(len(data) + 16, rest)
            if self.need <= len(data):
                raise CorruptError(f"a block at {self.at} ends too early") from None
            return (0, []), None
        if count < 1:
            raise CorruptError(f"a block at {self.at} says {count} records")
        # Lengths of 8 are one byte each, and none takes more than 9.
        most = [min(width * count, MOST_INFLATED) for width in (1, 8, 9)] + [MOST_INFLATED]
        inflating = zip(parts, most, strict=True)
        return (count, [inflated(self._header, one, size) for one, size in inflating]), at

    def _number(self, data: Bytes, at: int) -> tuple[int, int]:
        value, after = vint(data[at : at + 9].tobytes(), 0)
        return value, at + after

    def _records(self, count: int, parts: Sequence[bytes]) -> Found:
        key_lengths, keys, value_lengths, values = parts
        if len(keys) != 8 * count or key_lengths != b"\x08" * count:
            raise CorruptError(f"the block at {self.at} has keys that are no entry ids")
        ids = np.frombuffer(keys, ">i8").astype(np.int64)
        first = int(ids[0])
        if self._next is None and not first <= self.begins_with < first + count:
            raise CorruptError(
                f"the block at {self.at} begins with entry {first}: the index says that entry "
                f"{self.begins_with} is in it"
            )
        if (self._next is not None and first != self._next) or (
            ids != np.arange(first, first + count)
        ).any():
            raise CorruptError(f"the block at {self.at} does not have the entries that follow")
        arena = np.frombuffer(values, np.uint8)
        sizes = _vints(value_lengths, count)
        offsets = np.cumsum(sizes) - sizes
        if (sizes < 4).any() or int(sizes.sum()) != len(arena):
            raise CorruptError(f"the block at {self.at} says other lengths than it has")
        if (_lengths(arena, offsets) != sizes - 4).any():
            raise CorruptError(f"the block at {self.at} has an entry that says two lengths")
        wanted = min(count, self._last - first + 1)
        self._next = first + count
        return Found(first, arena, offsets[:wanted] + 4, sizes[:wanted] - 4)


def _vints(data: bytes, count: int) -> Any:
    found = np.empty(count, np.int64)
    if _read_vints(np.frombuffer(data, np.uint8), found) != len(data):
        raise CorruptError("a block says the lengths of other values than it has")
    return found


def _lengths(data: Bytes, offsets: Any) -> Any:
    """The lengths that BytesWritables begin with; -1 for one that is too short."""
    found = np.empty(len(offsets), np.int64)
    _read_lengths(data, offsets, found)
    return found


@kernel
def _read_vints(data: Any, found: Any) -> Any:
    """The numbers that ``data`` begins with: the position after them, -1 where one is cut off."""
    at: Any = 0
    for i in range(len(found)):
        if at >= len(data):
            return -1
        lead = np.int64(data[at])
        at += 1
        if lead < 0x80 or lead >= 0x90:
            found[i] = lead if lead < 0x80 else lead - 256
            continue
        size = 0x88 - lead if lead < 0x88 else 0x90 - lead
        if size > len(data) - at:
            return -1
        value: Any = np.int64(0)
        for k in range(size):
            value = (value << 8) | np.int64(data[at + k])
        found[i] = ~value if lead < 0x88 else value
        at += size
    return at


@kernel
def _read_lengths(data: Any, offsets: Any, found: Any) -> None:
    for i in range(len(offsets)):
        at = offsets[i]
        found[i] = u32(data, at) if 0 <= at <= len(data) - 4 else -1


@kernel
def _walk(
    data: Any, end: Any, first: Any, sync: Any, offsets: Any, lengths: Any, places: Any
) -> Any:
    """Values of records from 0 on: (count, position after them, state, bytes that come next).

    ``end``: of the file, which may lie behind ``data``. Nothing outside of ``data`` is read.
    """
    count = 0
    pos = 0
    need = 4
    while count < len(offsets):
        if len(data) - pos < 4:
            need = 4
            break
        size = u32(data, pos)
        if size == 0xFFFFFFFF:
            if len(data) - pos < 20:
                need = 20
                break
            for k in range(16):
                if data[pos + 4 + k] != sync[k]:
                    return count, pos, _BAD_SYNC, 0
            pos += 20
            continue
        # The record's length is that of key and value, without the key's own.
        if size < 12 or size > end - pos - 8:
            return count, pos, _BAD_LENGTH, 0
        if len(data) - pos < 8 + size:
            need = 8 + size
            break
        if u32(data, pos + 4) != 8:
            return count, pos, _BAD_KEY, 0
        key = (u32(data, pos + 8) << 32) | u32(data, pos + 12)
        if key != first + count:
            return count, pos, _BAD_ID, 0
        places[count] = pos
        offsets[count] = pos + 16
        lengths[count] = size - 8
        count += 1
        pos += 8 + size
    return count, pos, _GOOD, need
