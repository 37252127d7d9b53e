"""BookKeeper's v2 protocol: its batch read, a range of entries in one answer. No I/O.

Big-endian, without protobuf (BookieProtocol, BookieProtoEncoding of BookKeeper 4.17):

    request    u32 40, u32 0x02070000, i64 ledger, i64 first entry, i64 request, i32 entries at
               most, i64 bytes at most
    response   u32 size of the rest, u32 0x02070000, u32 status, i64 ledger, i64 first entry,
               i64 request; then as often as it fits: u32 size, entry

The answer has at least one entry, whatever its size, and ends before an entry that the bookie does
not hold. The upper half of 0x0207 is the version, the lower the operation; the flags are 0: the
fencing flag would stop the topic's writer.
"""

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from reader.errors import CorruptError
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.compiling import kernel
from reader.kernels.unaligned import u32

EBADREQ, EBADVERSION = 100, 103
# The default limit of a bookie (maxBatchReadSize).
MOST_BYTES = 5 << 20

_MARK = 0x02070000
_REQUEST = struct.Struct(">IIqqqiq")
_HEADER = struct.Struct(">IIIqqq")
HEADER_BYTES = _HEADER.size


@dataclass(frozen=True, slots=True)
class BatchReadHeader:
    """``size``: bytes of entries that follow. ``first``: entry id, as requested."""

    size: int
    status: int
    ledger: int
    first: int
    request: int


def encode_batch_read(request: int, ledger: int, first: int, entries: int, size: int) -> bytes:
    """A whole frame that requests entries from ``first`` on; ``size``: bytes at most."""
    return _REQUEST.pack(_REQUEST.size - 4, _MARK, ledger, first, request, entries, size)


def decode_batch_header(opening: bytes | bytearray, most: int) -> BatchReadHeader:
    """Decode the first ``HEADER_BYTES`` bytes of an answer of at most ``most`` bytes of entries.

    Raises CorruptError for what is not the protocol.
    """
    size, mark, status, ledger, first, request = _HEADER.unpack(opening)
    rest = size - (HEADER_BYTES - 4)
    if mark != _MARK or not 0 <= rest <= most:
        raise CorruptError("a bookie's answer is not a batch of entries")
    return BatchReadHeader(rest, status, ledger, first, request)


def split_entries(content: Bytes, most: int) -> tuple[Int64s, Int64s]:
    """(offsets, lengths) of the entries in ``content``, at most ``most``.

    Raises CorruptError where they are cut off or more.
    """
    ranges = np.empty((2, most), np.int64)
    count = _split_entries(content, ranges)
    if count < 0:
        raise CorruptError("a bookie's batch of entries is cut off or too long")
    return ranges[0, :count], ranges[1, :count]


@kernel
def _split_entries(content: Any, ranges: Any) -> Any:
    at = np.int64(0)
    count = 0
    while at < len(content):
        if len(content) - at < 4 or count >= ranges.shape[1]:
            return -1
        size = u32(content, at)
        at += 4
        if size > len(content) - at:
            return -1
        ranges[0, count] = at
        ranges[1, count] = size
        at += size
        count += 1
    return count
