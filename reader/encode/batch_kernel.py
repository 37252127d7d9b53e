"""Messages of a batch, one after the other: ``u32 size``, SingleMessageMetadata, payload.

Fields (PulsarApi.proto): properties 1 (key 1, value 2), partition_key 2, payload_size 3,
event_time 5, partition_key_b64_encoded 6, ordering_key 7, sequence_id 8, null_value 9.

Sequence ids are known only when a batch is sent. So sequence_id is written first, as zeros in as
many bytes as it may need, which ``number_messages`` fills in; payload_size follows it.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import move16

_ID_BYTES = 10
"""Of sequence_id at most: its tag, and 63 bits in nine bytes."""


@inlined
def _size_of(value: Any) -> Any:
    size = np.int64(1)
    rest = np.uint64(value) >> np.uint64(7)
    while rest:
        size += 1
        rest >>= np.uint64(7)
    return size


@inlined
def _put_varint(out: Any, at: Any, value: Any) -> Any:
    rest = np.uint64(value)
    while rest >= np.uint64(128):
        out[at] = np.uint8(rest & np.uint64(127)) | np.uint8(128)
        rest >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(rest)
    return at + 1


@inlined
def _put_bytes(out: Any, at: Any, data: Any, start: Any, end: Any) -> Any:
    while end - start >= 16:
        move16(out, at, data, start)
        start += 16
        at += 16
    while start < end:
        out[at] = data[start]
        start += 1
        at += 1
    return at


@inlined
def _put_field(out: Any, at: Any, tag: Any, data: Any, start: Any, end: Any) -> Any:
    out[at] = tag
    at = _put_varint(out, at + 1, end - start)
    return _put_bytes(out, at, data, start, end)


@inlined
def _field_size(start: Any, end: Any) -> Any:
    return 1 + _size_of(end - start) + end - start


@kernel
def add_messages(
    rows: Any,
    first: Any,
    most: Any,
    alone: Any,
    values: Any,
    value_starts: Any,
    value_ends: Any,
    tombstones: Any,
    keys: Any,
    key_starts: Any,
    key_ends: Any,
    has_key: Any,
    base64: Any,
    orders: Any,
    order_starts: Any,
    order_ends: Any,
    has_order: Any,
    events: Any,
    pair_ends: Any,
    names: Any,
    name_starts: Any,
    name_ends: Any,
    texts: Any,
    text_starts: Any,
    text_ends: Any,
    numbered: Any,
    out: Any,
    at: Any,
) -> Any:
    """(index behind the last of ``rows`` that was added, position behind it in ``out``).

    Adds ``rows[first]`` and its followers, ``most`` at most, until one is ``alone`` or has no room
    in ``out``. ``numbered``: whether they have room for their sequence ids.
    ``events``: ms, 0: none. The properties of row r are the pairs from
    ``pair_ends[r]`` to ``pair_ends[r + 1]``.
    """
    last = min(len(rows), first + most)
    while first < last:
        row = rows[first]
        if alone[row]:
            break
        value_size = np.int64(0) if tombstones[row] else value_ends[row] - value_starts[row]
        size = 1 + _size_of(value_size) + (_ID_BYTES if numbered else 0)
        for p in range(pair_ends[row], pair_ends[row + 1]):
            inner = _field_size(name_starts[p], name_ends[p])
            inner += _field_size(text_starts[p], text_ends[p])
            size += 1 + _size_of(inner) + inner
        if has_key[row]:
            size += _field_size(key_starts[row], key_ends[row]) + (2 if base64[row] else 0)
        if events[row]:
            size += 1 + _size_of(events[row])
        if has_order[row]:
            size += _field_size(order_starts[row], order_ends[row])
        if tombstones[row]:
            size += 2
        if at + 4 + size + value_size > len(out):
            break
        out[at] = size >> 24 & 255
        out[at + 1] = size >> 16 & 255
        out[at + 2] = size >> 8 & 255
        out[at + 3] = size & 255
        at += 4
        if numbered:
            out[at] = 0x40
            for byte in range(1, _ID_BYTES):
                out[at + byte] = 0
            at += _ID_BYTES
        out[at] = 0x18
        at = _put_varint(out, at + 1, value_size)
        for p in range(pair_ends[row], pair_ends[row + 1]):
            inner = _field_size(name_starts[p], name_ends[p])
            inner += _field_size(text_starts[p], text_ends[p])
            out[at] = 0x0A
            at = _put_varint(out, at + 1, inner)
            at = _put_field(out, at, 0x0A, names, name_starts[p], name_ends[p])
            at = _put_field(out, at, 0x12, texts, text_starts[p], text_ends[p])
        if has_key[row]:
            at = _put_field(out, at, 0x12, keys, key_starts[row], key_ends[row])
        if events[row]:
            out[at] = 0x28
            at = _put_varint(out, at + 1, events[row])
        if has_key[row] and base64[row]:
            out[at] = 0x30
            out[at + 1] = 1
            at += 2
        if has_order[row]:
            at = _put_field(out, at, 0x3A, orders, order_starts[row], order_ends[row])
        if tombstones[row]:
            out[at] = 0x48
            out[at + 1] = 1
            at += 2
        if value_size:
            at = _put_bytes(out, at, values, value_starts[row], value_ends[row])
        first += 1
    return first, at


@kernel
def number_messages(batch: Any, first: Any, out: Any) -> Any:
    """Write the batch to ``out`` with sequence ids from ``first`` on, in as few bytes as they need.

    Returns (messages, bytes written); the first is -1 for what ``add_messages`` has not written.
    """
    at, to, count = 0, 0, 0
    while at < len(batch):
        if at + 5 + _ID_BYTES > len(batch):
            return -1, 0
        size = np.int64(0)
        for byte in range(4):
            size = size << 8 | np.int64(batch[at + byte])
        at += 4
        end = at + size
        if end > len(batch) or size <= _ID_BYTES or batch[at] != 0x40:
            return -1, 0
        at += _ID_BYTES
        value_size, shift, begin = np.int64(0), 0, at + 1
        while begin < end and shift < 35:
            value_size |= np.int64(batch[begin] & 127) << shift
            shift += 7
            begin += 1
            if batch[begin - 1] < 128:
                break
        behind: Any = end + value_size
        if batch[at] != 0x18 or behind > len(batch):
            return -1, 0
        written = size + 1 + _size_of(first + count) - _ID_BYTES
        for byte in range(4):
            out[to + byte] = written >> (24 - 8 * byte) & 255
        out[to + 4] = 0x40
        to = _put_varint(out, to + 5, first + count)
        for byte in range(at, behind):
            out[to] = batch[byte]
            to += 1
        at = behind
        count += 1
    return count, to
