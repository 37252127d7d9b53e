"""The index of a data object that a jcloud driver has written (``{uuid}-ledger-{id}-index``).

Version 1, big endian (``docs/formats.md``):

    magic DE47DE47 4 · index length 4 · data object length 8 · data header length 8 ·
    blocks n 4 · metadata length m 4 · LedgerMetadataFormat m · n times 20 bytes:
    first entry 8, part id 4, offset 8

Blocks lie one behind the other in the data object, from its first byte on, and the first entry of
the first block is 0.
"""

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reader.errors import CorruptError, UnsupportedError
from reader.tiered.ledger_end import LedgerEnd, parse_ledger_end

_MAGIC = 0xDE47DE47
_STREAMING_MAGIC = 0x3D1FB0BC
_HEAD = struct.Struct(">IIqqii")
_BLOCK = np.dtype([("first", ">i8"), ("part", ">i4"), ("offset", ">i8")])

BLOCK_HEADER = 128
"""Bytes before the first entry of a block."""
ENTRY_HEADER = 12
"""Bytes before each entry: its length and id."""


@dataclass(frozen=True, slots=True)
class JcloudIndex:
    """Block i has the entries from ``firsts[i]`` to that before ``firsts[i + 1]`` (the last one to
    the ledger's end), in bytes ``offsets[i]`` to ``offsets[i + 1]`` (to ``data_length``)."""

    data_length: int
    end: LedgerEnd
    firsts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    def block_of(self, entry: int) -> int:
        """The number of the block that has an entry of the ledger."""
        return int(np.searchsorted(self.firsts, entry, "right")) - 1

    def block_end(self, block: int) -> int:
        """Where a block ends in the object."""
        last = block + 1 == len(self.offsets)
        return self.data_length if last else int(self.offsets[block + 1])

    def last_of(self, block: int) -> int:
        """The last entry of a block."""
        last = block + 1 == len(self.firsts)
        return self.end.last_entry if last else int(self.firsts[block + 1]) - 1


def parse_index(data: bytes) -> JcloudIndex:
    """Raises CorruptError where it contradicts itself, UnsupportedError for a streaming offload."""
    if len(data) < 4:
        raise CorruptError(f"the index ends after {len(data)} bytes")
    (magic,) = struct.unpack_from(">I", data)
    if magic == _STREAMING_MAGIC:
        raise UnsupportedError("the ledger was offloaded as a stream (format 2)")
    if magic != _MAGIC:
        raise CorruptError(f"the index begins with {magic:08x}")
    if len(data) < _HEAD.size:
        raise CorruptError(f"the index ends after {len(data)} bytes")
    _, total, data_length, header, count, metadata = _HEAD.unpack_from(data)
    if count < 1 or metadata < 0 or _HEAD.size + metadata + _BLOCK.itemsize * count != total:
        raise CorruptError(f"the index says {count} blocks and {metadata} bytes of metadata")
    if total != len(data):
        raise CorruptError(f"the index says that it has {total} bytes, and has {len(data)}")
    if header != BLOCK_HEADER:
        raise CorruptError(f"the index says that a block's header has {header} bytes")
    at = _HEAD.size + metadata
    end = parse_ledger_end(bytes(data[_HEAD.size : at]))
    blocks = np.frombuffer(data, _BLOCK, count, at)
    firsts, offsets = blocks["first"].astype(np.int64), blocks["offset"].astype(np.int64)
    if firsts[0] or (firsts[1:] <= firsts[:-1]).any() or firsts[-1] > end.last_entry:
        raise CorruptError("the index's first entries do not ascend from 0 to the ledger's end")
    if offsets[0] or (offsets[1:] <= offsets[:-1]).any() or offsets[-1] >= data_length:
        raise CorruptError("the index's offsets do not ascend from 0 to the object's end")
    if (blocks["part"] != np.arange(1, count + 1)).any():
        raise CorruptError("the index's parts are not numbered from 1 on")
    entries = np.diff(np.append(firsts, end.last_entry + 1))
    room = np.diff(np.append(offsets, data_length)) - BLOCK_HEADER
    if (room // ENTRY_HEADER < entries).any():
        raise CorruptError("the index has a block that is too small for its entries")
    if int(room.sum()) - ENTRY_HEADER * (end.last_entry + 1) < end.length:
        raise CorruptError(
            f"the index says {data_length} bytes of data, too few for a ledger of {end.length}"
        )
    return JcloudIndex(data_length, end, firsts, offsets)
