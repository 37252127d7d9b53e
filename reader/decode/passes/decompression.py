"""Pass 2: compressed payloads of a group of entries, decompressed into one buffer.

A codec covers the whole payload, a batch at once. The stated uncompressed_size must be exactly what
comes out; otherwise the entry is rescued. No more than that is ever allocated, and it is bounded by
what is stored (``refuse_bombs``). What is larger than most is decompressed straight into the
buffer, so that there is no second copy, and a size that is only stated costs no memory.
"""

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from reader.decode import tables
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.memory import empty_bytes

# Up to this many bytes are decompressed at once, and then copied.
_PIECE = 4 << 20

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A snappy element of three bytes gives 64 bytes at most.
_SNAPPY_RATIO = 22


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


def _zlib(data: memoryview, out: Bytes) -> bool:
    """In pieces: the module would double its buffers, and copy what it has not read."""
    stream = zlib.decompressobj()
    done = 0
    for first in range(0, len(data), _PIECE):
        rest: Any = data[first : first + _PIECE]
        while True:
            piece = stream.decompress(rest, _PIECE)
            if len(piece) > len(out) - done:
                return False
            out[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
            done += len(piece)
            rest = stream.unconsumed_tail
            if not rest and len(piece) < _PIECE:
                break
    # The Java client flushes the stream and never ends it, so only the size can be checked.
    return done == len(out)


def _snappy(data: memoryview, out: Bytes) -> bool:
    """A block begins with its size as a varint; google/snappy, format_description.txt."""
    stated, size = 0, len(out)
    for at, byte in enumerate(data[:5]):
        stated |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            break
    if stated != size or size > _SNAPPY_RATIO * len(data):
        return False
    return not size or _copied(_codec("snappy").decompress(data, size), out)


def _zstd_content_size(data: memoryview) -> int | None:
    """Frame_Content_Size of the first frame, None if it is not stated. RFC 8878, 3.1.1.1."""
    if len(data) < 6 or data[:4] != _ZSTD_MAGIC:
        return None
    flag, single, dictionary = data[4] >> 6, data[4] >> 5 & 1, data[4] & 3
    at = 5 + (not single) + (0, 1, 2, 4)[dictionary]
    width = (single, 2, 4, 8)[flag]
    if not width or len(data) < at + width:
        return None
    return int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)


def _zstd(data: memoryview, out: Bytes) -> bool:
    size = len(out)
    if 0 < size <= _PIECE and _zstd_content_size(data) == size:  # the library then checks it
        return _copied(_codec("zstd").decompress(data, size), out)
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
        done = 0
        while done < size:
            read = stream.readinto(out[done : done + _PIECE])
            if not read:
                return False
            done += read
        return not len(stream.read_buffer(1))


def _copied(result: Any, out: Bytes) -> bool:
    if len(result) != len(out):
        return False
    out[:] = np.frombuffer(result, np.uint8)
    return True


_INFLATERS: dict[int, Callable[[memoryview, Bytes], bool]] = {
    tables.ZLIB: _zlib,
    tables.ZSTD: _zstd,
    tables.SNAPPY: _snappy,
}


def _inflate_one(kind: int, data: memoryview, out: Bytes) -> bool:
    """Whether ``data`` gave exactly ``out``."""
    try:
        return _INFLATERS[kind](data, out)
    except (OSError, ValueError, zlib.error, pa.ArrowException):
        return False


def refuse_bombs(entries: Int64s, expanded_bytes: int) -> None:
    """Mark entries that a few bytes would blow up, or that cannot be what they state: kind WHOLE.

    ``expanded_bytes``: what payloads may state, however few bytes are stored of them. Above its
    default it raises the bounds of a batch with it: the number of its messages, and the bytes that
    its own metadata takes, which is in each of its rows.
    """
    scale = max(expanded_bytes, tables.FREE_INFLATED)
    messages = entries[tables.E_KIND] == tables.MESSAGES
    stored, count = entries[tables.E_PAYLOAD_LENGTH], entries[tables.E_MESSAGES]
    plain = entries[tables.E_COMPRESSION] == tables.NONE
    sizes = np.where(plain, stored, entries[tables.E_INFLATED])
    expands = ~plain & (sizes > np.maximum(tables.MAX_RATIO * stored, expanded_bytes))
    batched = entries[tables.E_FLAGS] & tables.IN_BATCH != 0
    impossible = batched & ((count <= 0) | (count > sizes // tables.MIN_SINGLE))
    many = batched & (count > scale // tables.BATCH_RATIO)
    repeats = batched & (count * entries[tables.E_METADATA_LENGTH] > tables.REPEATED_RATIO * scale)
    # The last of several reasons counts.
    reasons = (
        (repeats, tables.REPEATS),
        (many, tables.MANY),
        (expands, tables.EXPANDS),
        (impossible, tables.BATCH_COUNT),
    )
    for which, reason in reasons:
        which &= messages
        entries[tables.E_KIND, which] = tables.WHOLE
        entries[tables.E_REASON, which] = reason


def keep_singles_compressed(entries: Int64s) -> None:
    """Pass off compressed messages outside of batches as not compressed.

    Each is one row, whether its payload can be decompressed or not. For callers that want no
    payload.
    """
    alone = (entries[tables.E_KIND] == tables.MESSAGES) & (
        entries[tables.E_FLAGS] & tables.IN_BATCH == 0
    )
    entries[tables.E_COMPRESSION, alone] = tables.NONE


def inflate(arena: Bytes, entries: Int64s, first: int, stop: int) -> Bytes:
    """A buffer for the payloads of entries ``first..stop - 1``; all but LZ4 are decompressed.

    Their payload offsets then point into it, and the kind of those that fail becomes WHOLE; for LZ4
    the position in the buffer is in E_TARGET. ``entries`` is (E_FIELDS, n), changed in place.
    """
    group = entries[:, first:stop]
    which = (
        np.flatnonzero(
            (group[tables.E_KIND] == tables.MESSAGES) & (group[tables.E_COMPRESSION] != tables.NONE)
        )
        + first
    )
    sizes = entries[tables.E_INFLATED, which]
    starts = np.zeros(len(which) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    out = empty_bytes(int(starts[-1]))
    entries[tables.E_TARGET, which] = starts[:-1]
    data = memoryview(arena.data)
    for w in np.flatnonzero(entries[tables.E_COMPRESSION, which] != tables.LZ4).tolist():
        i = which[w]
        at, size = int(entries[tables.E_PAYLOAD, i]), int(entries[tables.E_PAYLOAD_LENGTH, i])
        target = out[starts[w] : starts[w + 1]]
        # Pulsar's clients may leave an empty payload as it is.
        if not (size == 0 and len(target) == 0) and not _inflate_one(
            int(entries[tables.E_COMPRESSION, i]), data[at : at + size], target
        ):
            entries[tables.E_KIND, i] = tables.WHOLE
            entries[tables.E_REASON, i] = tables.INFLATE
            continue
        entries[tables.E_PAYLOAD, i] = ~starts[w]
        entries[tables.E_PAYLOAD_LENGTH, i] = len(target)
    return out
