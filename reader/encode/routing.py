"""Which partition a message goes to, as Pulsar's clients choose it.

A key's hash, modulo the number of partitions. Source: ``JavaStringHash`` and ``Murmur3Hash32`` of
the Java client 4.2 (``makeHash(msg.getKey())``): over the text of the key, which is base64 where
the key is bytes. Java's hash is one of UTF-16 units; the C++ client takes bytes for them, which is
the same for ASCII, and has ``BoostHash`` by default, as Python's always has.
"""

from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from reader.kernels.byte_spans import ByteSpans
from reader.kernels.compiling import inlined, kernel

_WORD = np.uint64(0xFFFFFFFF)  # numba's sums and products of 32 bits have 64


class Hashing(StrEnum):
    """Names as in the Java client's ``HashingScheme``; the first is its default."""

    JAVA_STRING_HASH = "JavaStringHash"
    MURMUR3_32_HASH = "Murmur3_32Hash"


def key_partitions(
    keys: ByteSpans, partitions: int, hashing: Hashing = Hashing.JAVA_STRING_HASH
) -> npt.NDArray[np.int64]:
    """The partition of each key (UTF-8); -1 where there is none."""
    found = np.full(len(keys), -1, np.int64)
    hashes = _java_hashes if hashing is Hashing.JAVA_STRING_HASH else _murmur_hashes
    hashes(*keys.fixed(), partitions, found)
    return found


@inlined
def _times31(value: Any, unit: Any) -> Any:
    return (np.uint64(31) * value + np.uint64(unit)) & _WORD


@kernel
def _java_hashes(
    data: Any, starts: Any, ends: Any, present: Any, partitions: Any, found: Any
) -> None:
    for i in range(len(starts)):
        if not present[i]:
            continue
        value = np.uint64(0)
        at = starts[i]
        end = ends[i]
        while at < end:
            byte = np.int64(data[at])
            size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            if size == 1 or size > end - at:
                value = _times31(value, byte)
                at += 1
                continue
            point = byte & (0x7F >> size)
            for j in range(1, size):
                point = (point << 6) | (np.int64(data[at + j]) & 0x3F)
            at += size
            if point >= 0x10000:
                point -= 0x10000
                value = _times31(value, 0xD800 + (point >> 10))
                point = 0xDC00 + (point & 0x3FF)
            value = _times31(value, point)
        found[i] = np.int64(value & np.uint64(0x7FFFFFFF)) % partitions


@inlined
def _rotated(word: Any, bits: Any) -> Any:
    return ((word << np.uint64(bits)) | (word >> np.uint64(32 - bits))) & _WORD


@inlined
def _mixed(word: Any) -> Any:
    word = (word * np.uint64(0xCC9E2D51)) & _WORD
    return (_rotated(word, 15) * np.uint64(0x1B873593)) & _WORD


@kernel
def _murmur_hashes(
    data: Any, starts: Any, ends: Any, present: Any, partitions: Any, found: Any
) -> None:
    for i in range(len(starts)):
        if not present[i]:
            continue
        value = np.uint64(0)
        at = starts[i]
        size = ends[i] - at
        for _ in range(size // 4):
            word = np.uint64(0)
            for j in range(4):
                word |= np.uint64(data[at + j]) << np.uint64(8 * j)
            value = _rotated(value ^ _mixed(word), 13)
            value = (value * np.uint64(5) + np.uint64(0xE6546B64)) & _WORD
            at += 4
        word = np.uint64(0)
        for j in range(size % 4):
            word |= np.uint64(data[at + j]) << np.uint64(8 * j)
        value ^= _mixed(word)
        value ^= np.uint64(size)
        value ^= value >> np.uint64(16)
        value = (value * np.uint64(0x85EBCA6B)) & _WORD
        value ^= value >> np.uint64(13)
        value = (value * np.uint64(0xC2B2AE35)) & _WORD
        value ^= value >> np.uint64(16)
        found[i] = np.int64(value & np.uint64(0x7FFFFFFF)) % partitions
