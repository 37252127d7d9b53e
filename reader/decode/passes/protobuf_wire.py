"""Protobuf's wire format and UTF-8, as numba functions over a byte array.

Source: protobuf.dev, "Encoding". Rules of every function here:
1. the caller guarantees ``0 <= at`` and ``end <= len(buf)``; no byte at or after ``end`` is read;
2. where bytes are cut off or malformed the returned position is -1, and nothing is raised;
3. every loop ends: a varint has ten bytes at most, all others advance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic

from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import load64

__all__ = [
    "copy",
    "field",
    "gather",
    "length",
    "pair",
    "skip",
    "u32",
    "utf8",
    "varint",
]

_HIGH_BITS = np.uint64(0x8080808080808080)


def _copy(typingctx: Any, out: Any, to: Any, buf: Any, at: Any, count: Any) -> Any:
    """memcpy of ``count`` bytes; the caller has checked both ranges."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = context.make_array(signature.args[0])(context, builder, args[0]).data
        source = context.make_array(signature.args[2])(context, builder, args[2]).data
        memcpy: Any = cgutils.raw_memcpy
        memcpy(builder, builder.gep(target, [args[1]]), builder.gep(source, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    for array in (out, buf):
        if not (isinstance(array, types.Array) and array.layout == "C"):
            return None
        if array.dtype != types.uint8:
            return None
    return types.void(out, types.int64, buf, types.int64, types.int64), codegen


copy: Any = intrinsic(_copy)


@inlined
def u32(buf: Any, at: Any) -> Any:
    """Big-endian; the caller has checked that four bytes are there."""
    return (
        (np.int64(buf[at]) << 24)
        | (np.int64(buf[at + 1]) << 16)
        | (np.int64(buf[at + 2]) << 8)
        | np.int64(buf[at + 3])
    )


@inlined
def varint(buf: Any, at: Any, end: Any) -> Any:
    """(value as signed 64 bits, position after it)."""
    if at < end and buf[at] < 0x80:
        return np.int64(buf[at]), at + 1
    value = np.uint64(0)
    shift = np.uint64(0)
    for _ in range(10):
        if at >= end:
            break
        byte = np.uint64(buf[at])
        at += 1
        value |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(value), at
        shift += np.uint64(7)
    return np.int64(0), -1


@inlined
def length(buf: Any, at: Any, end: Any) -> Any:
    """The length of a length-delimited field: (length, position of its first byte)."""
    size, at = varint(buf, at, end)
    if at < 0 or size < 0 or size > end - at:
        return np.int64(0), -1
    return size, at


@inlined
def skip(buf: Any, at: Any, end: Any, tag: Any) -> Any:
    """The position after the value of an unknown field. Groups are refused."""
    wire = tag & 7
    if wire == 0:
        _, at = varint(buf, at, end)
        return at
    if wire == 2:
        size, at = length(buf, at, end)
        return at + size if at >= 0 else -1
    size = 8 if wire == 1 else 4
    if wire not in (1, 5) or end - at < size:
        return -1
    return at + size


@inlined
def field(buf: Any, at: Any, end: Any) -> Any:
    """(tag, position after it); field number 0 and tags above 32 bits are malformed."""
    if at < end and 8 <= buf[at] < 0x80:
        return np.int64(buf[at]), at + 1
    tag, at = varint(buf, at, end)
    if at < 0 or tag < 8 or tag > 0xFFFFFFFF:
        return np.int64(0), -1
    return tag, at


@inlined
def pair(buf: Any, at: Any, end: Any) -> Any:
    """PulsarApi.KeyValue: (key position, key length, value position, value length).

    The first is -1 where the message is malformed or lacks one of its two required fields.
    """
    key = np.int64(-1)
    key_length = np.int64(0)
    value = np.int64(-1)
    value_length = np.int64(0)
    while at < end:
        tag, at = field(buf, at, end)
        if at < 0:
            return np.int64(-1), key_length, value, value_length
        if tag in (0x0A, 0x12):
            size, at = length(buf, at, end)
            if at < 0:
                return np.int64(-1), key_length, value, value_length
            if tag == 0x0A:
                key, key_length = np.int64(at), size
            else:
                value, value_length = np.int64(at), size
            at += size
        else:
            at = skip(buf, at, end, tag)
            if at < 0:
                return np.int64(-1), key_length, value, value_length
    if value < 0:
        key = np.int64(-1)
    return key, key_length, value, value_length


@kernel
def utf8(buf: Any, at: Any, size: Any) -> bool:
    """Whether ``size`` bytes are well-formed UTF-8 (Unicode 15, table 3-7)."""
    end = at + size
    while at < end:
        if end - at >= 8 and load64(buf, at) & _HIGH_BITS == np.uint64(0):
            at += 8
            continue
        first = buf[at]
        if first < 0x80:
            at += 1
            continue
        low = 0x80
        high = 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if end - at <= more or buf[at + 1] < low or buf[at + 1] > high:
            return False
        for k in range(2, more + 1):
            if buf[at + k] & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@kernel
def gather(arena: Any, inflated: Any, offsets: Any, lengths: Any, starts: Any, out: Any) -> None:
    """Copy value i (``offsets``, ``lengths`` as in ``tables``) to ``out[starts[i]:]``."""
    for i in range(len(offsets)):
        size = lengths[i]
        if size <= 0:
            continue
        at = offsets[i]
        to = starts[i]
        if to < 0 or to > len(out) - size:
            raise IndexError("gather: target range")
        if at >= 0:
            if at > len(arena) - size:
                raise IndexError("gather: source range")
            copy(out, to, arena, at, size)
        else:
            if ~at > len(inflated) - size:
                raise IndexError("gather: source range")
            copy(out, to, inflated, ~at, size)
