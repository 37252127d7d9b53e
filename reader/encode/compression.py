"""Payloads compressed as Pulsar names it: ``CompressionType`` of PulsarApi.proto."""

from __future__ import annotations

import zlib
from enum import IntEnum
from functools import cache

import pyarrow as pa

__all__ = ["Compression", "compress"]


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


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)
