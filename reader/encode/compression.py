"""Payloads compressed as Pulsar names it: ``CompressionType`` of PulsarApi.proto."""

import zlib
from enum import IntEnum
from functools import cache

import pyarrow as pa

from reader.errors import CorruptError


class Compression(IntEnum):
    """By their numbers on the wire."""

    NONE = 0
    LZ4 = 1
    ZLIB = 2
    ZSTD = 3
    SNAPPY = 4


_NAMES = {Compression.LZ4: "lz4_raw", Compression.ZSTD: "zstd", Compression.SNAPPY: "snappy"}


def compress(kind: Compression, payload: memoryview) -> bytes:
    """The payload as one block of the codec; a copy of it without one."""
    match kind:
        case Compression.NONE:
            return bytes(payload)
        case Compression.ZLIB:
            return zlib.compress(payload)
        case _:
            found: bytes = _codec(_NAMES[kind]).compress(payload, asbytes=True)
            return found


def lz4_block(data: bytes | memoryview) -> bytes:
    """Return the data as one block of LZ4."""
    return compress(Compression.LZ4, memoryview(data))


def lz4_bytes(block: memoryview, size: int) -> bytes:
    """Return the ``size`` bytes of a block of LZ4. Raises CorruptError for what is none."""
    try:
        found: bytes = _codec("lz4_raw").decompress(block, size, asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise CorruptError(f"not a block of LZ4: {error}") from None
    if len(found) != size:
        raise CorruptError("not a block of LZ4 of that size")
    return found


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)
