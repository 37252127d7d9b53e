"""Pass 2: compressed payloads of a group of entries, decompressed into one buffer.

A codec covers the whole payload, a batch at once. The stated uncompressed_size must be exactly what
comes out; otherwise the entry is rescued. No more than that is ever allocated, and pass 1 bounds it
by ``MAX_INFLATED``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.decode.tables import (
    E_COMPRESSION,
    E_INFLATED,
    E_KIND,
    E_PAYLOAD,
    E_PAYLOAD_LENGTH,
    E_REASON,
    E_TARGET,
    INFLATE,
    LZ4,
    MESSAGES,
    NONE,
    SNAPPY,
    WHOLE,
    ZLIB,
    ZSTD,
)
from reader.kernels.memory import empty_bytes

__all__ = ["inflate"]

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A snappy element of three bytes gives 64 bytes at most.
_SNAPPY_RATIO = 22


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


def _zlib(data: memoryview, size: int) -> Any:
    stream = zlib.decompressobj()
    out = stream.decompress(data, size + 1)
    # The Java client flushes the stream and never ends it, so only the size can be checked, by the
    # caller.
    return None if stream.unconsumed_tail else out


def _snappy(data: memoryview, size: int) -> Any:
    """A block begins with its size as a varint; google/snappy, format_description.txt."""
    stated = 0
    for at, byte in enumerate(data[:5]):
        stated |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            break
    if stated != size or size > _SNAPPY_RATIO * len(data):
        return None
    return _codec("snappy").decompress(data, size) if size else b""


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


def _zstd(data: memoryview, size: int) -> Any:
    if size and _zstd_content_size(data) == size:  # the library then checks it
        return _codec("zstd").decompress(data, size)
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), "zstd") as stream:
        return stream.read_buffer(size + 1)


_INFLATERS: dict[int, Callable[[memoryview, int], Any]] = {
    ZLIB: _zlib,
    ZSTD: _zstd,
    SNAPPY: _snappy,
}


def _inflate_one(kind: int, data: memoryview, out: npt.NDArray[np.uint8]) -> bool:
    """Whether ``data`` gave exactly ``out``."""
    try:
        result = _INFLATERS[kind](data, len(out))
    except (OSError, ValueError, zlib.error, pa.ArrowException):
        return False
    if result is None or len(result) != len(out):
        return False
    out[:] = np.frombuffer(result, np.uint8)
    return True


def inflate(
    arena: npt.NDArray[np.uint8], entries: npt.NDArray[np.int64], first: int, stop: int
) -> npt.NDArray[np.uint8]:
    """A buffer for the payloads of entries ``first..stop - 1``; all but LZ4 are decompressed.

    Their payload offsets then point into it, and the kind of those that fail becomes WHOLE; for LZ4
    the position in the buffer is in E_TARGET. ``entries`` is (E_FIELDS, n), changed in place.
    """
    group = entries[:, first:stop]
    which = np.flatnonzero((group[E_KIND] == MESSAGES) & (group[E_COMPRESSION] != NONE)) + first
    sizes = entries[E_INFLATED, which]
    starts = np.zeros(len(which) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    out = empty_bytes(int(starts[-1]))
    entries[E_TARGET, which] = starts[:-1]
    data = memoryview(arena.data)
    for w in np.flatnonzero(entries[E_COMPRESSION, which] != LZ4).tolist():
        i = which[w]
        at, size = int(entries[E_PAYLOAD, i]), int(entries[E_PAYLOAD_LENGTH, i])
        target = out[starts[w] : starts[w + 1]]
        # Pulsar's clients may leave an empty payload as it is.
        if not (size == 0 and len(target) == 0) and not _inflate_one(
            int(entries[E_COMPRESSION, i]), data[at : at + size], target
        ):
            entries[E_KIND, i] = WHOLE
            entries[E_REASON, i] = INFLATE
            continue
        entries[E_PAYLOAD, i] = ~starts[w]
        entries[E_PAYLOAD_LENGTH, i] = len(target)
    return out
