"""Protobuf's wire format, as numba functions over a byte array.

Source: protobuf.dev, "Encoding". Rules of every function here:
1. the caller guarantees ``0 <= at`` and ``end <= len(data)``; no byte at or after ``end`` is read;
2. where bytes are cut off or malformed the returned position is -1, and nothing is raised;
3. every loop ends: a varint has ten bytes at most, all others advance.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined


@inlined
def varint(data: Any, at: Any, end: Any) -> Any:
    """(value as signed 64 bits, position after it)."""
    if at < end and data[at] < 0x80:
        return np.int64(data[at]), at + 1
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(10):
        if at >= end:
            break
        byte = np.uint64(data[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(value), at
        shift += np.uint64(7)
    return np.int64(0), -1


@inlined
def field(data: Any, at: Any, end: Any) -> Any:
    """(tag, value, position of its first byte, position after it) of a field.

    The value of a varint is its number, of what has a length that length, and 0 otherwise. Groups,
    field number 0 and tags above 32 bits are malformed.
    """
    tag, at = varint(data, at, end)
    if at < 0 or tag < 8 or tag > 0xFFFFFFFF:
        return np.int64(0), np.int64(0), -1, -1
    wire = tag & 7
    if wire == 0:
        value, after = varint(data, at, end)
        return tag, value, at, after
    if wire == 2:
        value, at = varint(data, at, end)
        if at >= 0 and 0 <= value <= end - at:
            return tag, value, at, at + value
    elif wire == 1 or wire == 5:
        size = 8 if wire == 1 else 4
        if size <= end - at:
            return tag, np.int64(0), at, at + size
    return np.int64(0), np.int64(0), -1, -1
