"""One message of a batch, and the properties of any message."""

from typing import Any

import numpy as np

from reader.decode import tables
from reader.decode.passes.entry_headers import micros, pair
from reader.decode.passes.other_fields import is_other_single
from reader.kernels.compiling import kernel
from reader.kernels.protobuf_wire import field
from reader.kernels.utf8 import valid_utf8


@kernel
def _same(buf: Any, one: Any, two: Any, size: Any) -> Any:
    k = 0
    while k < size and buf[one + k] == buf[two + k]:
        k += 1
    return k == size


@kernel
def _add_pair(buf: Any, at: Any, end: Any, inflated: Any, pairs: Any, first: Any, p: Any) -> Any:
    """The KeyValue at ``at`` as column ``p``: the next column, ``p`` if not UTF-8, -1 if malformed.

    ``first`` is the message's first column. Beyond the end of ``pairs`` they are only counted.
    """
    key, key_size, text, text_size = pair(buf, at, end)
    if key < 0:
        return np.int64(-1)
    if not (valid_utf8(buf, key, key + key_size) and valid_utf8(buf, text, text + text_size)):
        return p
    if p < pairs.shape[1]:
        pairs[tables.P_KEY, p] = ~key if inflated else key
        pairs[tables.P_KEY_LENGTH, p] = key_size
        pairs[tables.P_VALUE, p] = ~text if inflated else text
        pairs[tables.P_VALUE_LENGTH, p] = text_size
        pairs[tables.P_KEEP, p] = 1
        if p - first < tables.SMALL_MAP:
            for q in range(first, p):
                other = ~pairs[tables.P_KEY, q] if inflated else pairs[tables.P_KEY, q]
                if pairs[tables.P_KEY_LENGTH, q] == key_size and _same(buf, other, key, key_size):
                    pairs[tables.P_KEEP, q] = 0
    return p + 1


@kernel
def entry_pairs(buf: Any, at: Any, end: Any, pairs: Any, p: Any) -> Any:
    """The properties of MessageMetadata from column ``p`` on: the next column.

    Up to SMALL_MAP of them the last of each key is kept; beyond, that is left to the caller.
    """
    first = p
    while at < end:
        tag, _, begin, at = field(buf, at, end)
        if at >= 0 and tag == 0x22:
            p = _add_pair(buf, begin, at, False, pairs, first, p)
        if at < 0 or p < 0:
            raise ValueError("entry_pairs: malformed metadata")
    return p


@kernel
def single(
    buf: Any,
    at: Any,
    end: Any,
    inflated: Any,
    entries: Any,
    i: Any,
    rows: Any,
    r: Any,
    pairs: Any,
    p: Any,
) -> Any:
    """SingleMessageMetadata into column ``r``: (whether compacted out, next column of ``pairs``).

    The first is -1 where it is malformed. ``inflated`` says which arena ``buf`` is.
    """
    first = p
    size = np.int64(-1)
    compacted = 0
    base64 = 0
    flags = entries[tables.E_FLAGS, i]
    soft = entries[tables.E_SOFT, i] & (tables.SOFT_SHARED | tables.SOFT_EVENT)
    key = np.int64(0)
    key_length = np.int64(-1)
    ordering = np.int64(0)
    ordering_length = np.int64(-1)
    event = entries[tables.E_EVENT, i]
    sequence = entries[tables.E_SEQUENCE, i]
    while at < end:
        tag, value, begin, at = field(buf, at, end)
        if at < 0:
            return -1, first
        if tag == 0x18:  # payload_size, an int32
            size = np.int64(np.int32(value))
        elif tag == 0x0A:  # properties
            after = _add_pair(buf, begin, at, inflated, pairs, first, p)
            if after < 0:
                return -1, first
            if after == p:
                soft |= tables.SOFT_PROPERTY
            p = after
        elif tag == 0x12:  # partition_key
            key, key_length = begin, value
        elif tag == 0x20:  # compacted_out
            compacted = 1 if value != 0 else 0
        elif tag == 0x28:  # event_time
            event = micros(value) if value != 0 else np.int64(tables.NO_TIME)
            soft &= ~tables.SOFT_EVENT
            if value != 0 and event == tables.NO_TIME:
                soft |= tables.SOFT_EVENT
        elif tag == 0x30:  # partition_key_b64_encoded
            base64 = 1 if value != 0 else 0
        elif tag == 0x3A:  # ordering_key
            ordering, ordering_length = begin, value
        elif tag == 0x40:  # sequence_id
            sequence = value
        elif tag == 0x48:  # null_value
            flags = (flags | tables.NULL_VALUE) if value != 0 else (flags & ~tables.NULL_VALUE)
        elif tag == 0x50:  # null_partition_key
            flags = (flags | tables.NULL_KEY) if value != 0 else (flags & ~tables.NULL_KEY)
        elif is_other_single(tag):
            entries[tables.E_FLAGS, i] |= tables.HAS_OTHER_INSIDE
    if size < 0:
        return -1, first
    properties = np.int64(p - first)
    if properties > tables.MAX_PROPERTIES:
        properties, p = np.int64(-1), first
        soft |= tables.SOFT_PROPERTIES
    if flags & tables.NULL_KEY:
        key_length = np.int64(-1)
    elif key_length > 0 and not valid_utf8(buf, key, key + key_length):
        key_length = tables.BINARY_KEY - key_length
        soft |= tables.SOFT_KEY
    rows[tables.R_ENTRY, r] = i
    rows[tables.R_KEY, r] = ~key if inflated else key
    rows[tables.R_KEY_LENGTH, r] = key_length
    rows[tables.R_ORDERING, r] = ~ordering if inflated else ordering
    rows[tables.R_ORDERING_LENGTH, r] = ordering_length
    rows[tables.R_EVENT, r] = event
    rows[tables.R_SEQUENCE, r] = sequence
    rows[tables.R_BASE64, r] = base64
    rows[tables.R_PROPERTIES, r] = properties
    rows[tables.R_SOFT, r] = soft
    rows[tables.R_SIZE, r] = size
    rows[tables.R_PAYLOAD_LENGTH, r] = -1 if flags & tables.NULL_VALUE else size
    return compacted, p
