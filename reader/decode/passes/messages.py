"""Pass 3: payloads to rows, one column of the ``rows`` table for each message.

A batch is ``[u32 size, SingleMessageMetadata, payload]`` as often as num_messages_in_batch says;
bytes after the last are ignored, as every client does. A message of a batch that has no event time,
null_value or null_partition_key takes that of the entry (as the Java client does), and without a
sequence id the entry's plus the batch index. Its key, ordering key and properties are its own or
none.

LZ4 is decoded here, entry by entry: the messages are then still in the CPU's cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reader.decode.passes.lz4 import lz4_decode
from reader.decode.passes.protobuf_wire import u32
from reader.decode.passes.single_message import entry_pairs, single
from reader.decode.tables import (
    BARE,
    BASE64,
    BATCH,
    BATCH_COUNT,
    E_COMPRESSION,
    E_EVENT,
    E_FLAGS,
    E_INFLATED,
    E_KEY,
    E_KEY_LENGTH,
    E_KIND,
    E_MESSAGES,
    E_METADATA,
    E_METADATA_LENGTH,
    E_ORDERING,
    E_ORDERING_LENGTH,
    E_PAYLOAD,
    E_PAYLOAD_LENGTH,
    E_PROPERTIES,
    E_REASON,
    E_SEQUENCE,
    E_SOFT,
    E_TARGET,
    HIDDEN,
    IN_BATCH,
    INFLATE,
    LZ4,
    MAX_BATCH,
    MESSAGES,
    MIN_SINGLE,
    NONE,
    NULL_VALUE,
    OUTSIDE,
    R_BASE64,
    R_BATCH,
    R_ENTRY,
    R_EVENT,
    R_KEY,
    R_KEY_LENGTH,
    R_METADATA,
    R_METADATA_LENGTH,
    R_ORDERING,
    R_ORDERING_LENGTH,
    R_PAYLOAD,
    R_PAYLOAD_LENGTH,
    R_PROPERTIES,
    R_SEQUENCE,
    R_SIZE,
    R_SOFT,
    WHOLE,
)
from reader.kernels.compiling import kernel

__all__ = ["read_messages"]


@kernel
def _alone(arena: Any, entries: Any, i: Any, rows: Any, r: Any, pairs: Any, p: Any) -> Any:
    """Entry ``i`` as one row, an unbatched message or a rescued entry: the next column of pairs."""
    value = entries[E_KIND, i] == MESSAGES and not entries[E_FLAGS, i] & NULL_VALUE
    rows[R_ENTRY, r] = i
    rows[R_BATCH, r] = -1
    rows[R_PAYLOAD, r] = entries[E_PAYLOAD, i]
    rows[R_PAYLOAD_LENGTH, r] = entries[E_PAYLOAD_LENGTH, i] if value else -1
    rows[R_KEY, r] = entries[E_KEY, i]
    rows[R_KEY_LENGTH, r] = entries[E_KEY_LENGTH, i]
    rows[R_ORDERING, r] = entries[E_ORDERING, i]
    rows[R_ORDERING_LENGTH, r] = entries[E_ORDERING_LENGTH, i]
    rows[R_EVENT, r] = entries[E_EVENT, i]
    rows[R_SEQUENCE, r] = entries[E_SEQUENCE, i]
    rows[R_BASE64, r] = 1 if entries[E_FLAGS, i] & BASE64 else 0
    rows[R_METADATA, r] = entries[E_METADATA, i]
    rows[R_METADATA_LENGTH, r] = entries[E_METADATA_LENGTH, i]
    rows[R_PROPERTIES, r] = entries[E_PROPERTIES, i]
    rows[R_SOFT, r] = entries[E_SOFT, i]
    rows[R_SIZE, r] = entries[E_PAYLOAD_LENGTH, i]
    if entries[E_PROPERTIES, i] > 0:
        at = entries[E_METADATA, i]
        p = entry_pairs(arena, at, at + entries[E_METADATA_LENGTH, i], pairs, p)
    return p


@kernel
def _batch(
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
    """Rows of batch ``i`` from ``r`` on: (next row, next column of pairs), (-1, …) if it breaks."""
    for k in range(entries[E_MESSAGES, i]):
        if end - at < 4 or r >= rows.shape[1]:
            return np.int64(-1), p
        size = u32(buf, at)
        at += 4
        if size > end - at:
            return np.int64(-1), p
        rows[R_BATCH, r] = k
        rows[R_METADATA, r] = ~at if inflated else at
        rows[R_METADATA_LENGTH, r] = size
        compacted, after = single(buf, at, at + size, inflated, entries, i, rows, r, pairs, p)
        at += size
        if compacted < 0 or rows[R_SIZE, r] > end - at:
            return np.int64(-1), p
        rows[R_PAYLOAD, r] = ~at if inflated else at
        at += rows[R_SIZE, r]
        if compacted == 0:
            r += 1
            p = after
    return np.int64(r), p


@kernel
def _inflate(arena: Any, target: Any, entries: Any, i: Any) -> Any:
    """Decompress LZ4 of entry ``i``; whether its payload can be read now."""
    if entries[E_COMPRESSION, i] == LZ4:
        at = entries[E_PAYLOAD, i]
        end = at + entries[E_PAYLOAD_LENGTH, i]
        to = entries[E_TARGET, i]
        size = entries[E_INFLATED, i]
        # Pulsar's clients may leave an empty payload as it is.
        if not (size == 0 and at == end) and not lz4_decode(arena, at, end, target, to, size):
            entries[E_KIND, i] = WHOLE
            entries[E_REASON, i] = INFLATE
            return False
        entries[E_PAYLOAD, i] = ~to
        entries[E_PAYLOAD_LENGTH, i] = size
        entries[E_COMPRESSION, i] = NONE
    return True


@kernel
def read_messages(
    arena: Any,
    inflated: Any,
    target: Any,
    entries: Any,
    first: Any,
    stop: Any,
    rows: Any,
    pairs: Any,
) -> Any:
    """Fill ``rows`` and ``pairs`` from entries ``first..stop - 1``; return the number of each.

    ``target`` is ``inflated``, writable. A batch that breaks becomes one row of kind WHOLE, never a
    part of its messages. ``rows`` must have a column for each entry, and for each message of a
    batch that can be one. If there are more pairs than columns, only the first are there: call
    it again with as many columns.
    """
    r = np.int64(0)
    p = np.int64(0)
    for i in range(first, stop):
        kind = entries[E_KIND, i]
        if kind in (HIDDEN, OUTSIDE):
            continue
        if kind not in (MESSAGES, BARE, WHOLE):
            raise ValueError("read_messages: a chunk")
        if r >= rows.shape[1]:
            raise IndexError("read_messages: too few rows")
        alone = True
        if kind == MESSAGES and _inflate(arena, target, entries, i):
            alone = not entries[E_FLAGS, i] & IN_BATCH
        if not alone:
            at = entries[E_PAYLOAD, i]
            size = entries[E_PAYLOAD_LENGTH, i]
            count = entries[E_MESSAGES, i]
            reason = BATCH_COUNT
            after = np.int64(-1)
            after_pairs = p
            if 0 < count <= min(size // MIN_SINGLE, MAX_BATCH):
                reason = BATCH
                buf, start = (inflated, ~at) if at < 0 else (arena, at)
                if size <= len(buf) - start:
                    after, after_pairs = _batch(
                        buf, start, start + size, at < 0, entries, i, rows, r, pairs, p
                    )
            if after < 0:
                entries[E_KIND, i] = WHOLE
                entries[E_REASON, i] = reason
                alone = True
            else:
                r, p = after, after_pairs
        if alone:
            p = _alone(arena, entries, i, rows, r, pairs, p)
            r += 1
    return r, p
