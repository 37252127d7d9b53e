"""Pass 3: payloads to rows, one column of the ``rows`` table for each message.

A batch is ``[u32 size, SingleMessageMetadata, payload]`` as often as num_messages_in_batch says;
bytes after the last are ignored, as every client does. A message of a batch that has no event time,
null_value or null_partition_key takes that of the entry (as the Java client does), and without a
sequence id the entry's plus the batch index. Its key, ordering key and properties are its own or
none.

LZ4 is decoded here, entry by entry: the messages are then still in the CPU's cache.

Rows come in portions, of a bounded size whatever the entries hold; the *cursor* says where the next
one begins, perhaps within a batch. All of a batch is checked before the first of its rows is given.
"""

from typing import Any

import numpy as np

from reader.decode import tables
from reader.decode.passes.lz4 import lz4_decode
from reader.decode.passes.single_message import entry_pairs, single
from reader.kernels.compiling import kernel
from reader.kernels.unaligned import u32

# What became of a batch.
_BROKEN, _FULL, _DONE = -1, 0, 1


@kernel
def _alone(arena: Any, entries: Any, i: Any, rows: Any, r: Any, pairs: Any, p: Any) -> Any:
    """Entry ``i`` as one row, an unbatched message or a rescued entry: the next column of pairs."""
    value = (
        entries[tables.E_KIND, i] == tables.MESSAGES
        and not entries[tables.E_FLAGS, i] & tables.NULL_VALUE
    )
    rows[tables.R_ENTRY, r] = i
    rows[tables.R_BATCH, r] = -1
    rows[tables.R_PAYLOAD, r] = entries[tables.E_PAYLOAD, i]
    rows[tables.R_PAYLOAD_LENGTH, r] = entries[tables.E_PAYLOAD_LENGTH, i] if value else -1
    rows[tables.R_KEY, r] = entries[tables.E_KEY, i]
    rows[tables.R_KEY_LENGTH, r] = entries[tables.E_KEY_LENGTH, i]
    rows[tables.R_ORDERING, r] = entries[tables.E_ORDERING, i]
    rows[tables.R_ORDERING_LENGTH, r] = entries[tables.E_ORDERING_LENGTH, i]
    rows[tables.R_EVENT, r] = entries[tables.E_EVENT, i]
    rows[tables.R_SEQUENCE, r] = entries[tables.E_SEQUENCE, i]
    rows[tables.R_BASE64, r] = 1 if entries[tables.E_FLAGS, i] & tables.BASE64 else 0
    rows[tables.R_METADATA, r] = entries[tables.E_METADATA, i]
    rows[tables.R_METADATA_LENGTH, r] = entries[tables.E_METADATA_LENGTH, i]
    rows[tables.R_PROPERTIES, r] = entries[tables.E_PROPERTIES, i]
    rows[tables.R_SOFT, r] = entries[tables.E_SOFT, i]
    rows[tables.R_SIZE, r] = entries[tables.E_PAYLOAD_LENGTH, i]
    if entries[tables.E_PROPERTIES, i] > 0:
        at = entries[tables.E_METADATA, i]
        p = entry_pairs(arena, at, at + entries[tables.E_METADATA_LENGTH, i], pairs, p)
    return p


@kernel
def _batch(
    buf: Any,
    at: Any,
    end: Any,
    inflated: Any,
    entries: Any,
    i: Any,
    cursor: Any,
    last: Any,
    most: Any,
    rows: Any,
    r: Any,
    pairs: Any,
    p: Any,
    total: Any,
) -> Any:
    """Rows of batch ``i`` from ``r`` on: (outcome, next row, next column of pairs, bytes).

    Of a batch that is _FULL the rest was checked, and the cursor is at its next message.
    """
    room = pairs.shape[1]
    checked = cursor[tables.C_MESSAGE] > 0
    full = False
    next_message = np.int64(0)
    next_at = np.int64(0)
    shared = entries[tables.E_ROW_BYTES, i]
    for k in range(cursor[tables.C_MESSAGE], entries[tables.E_MESSAGES, i]):
        begin = at
        if end - at < 4:
            return _BROKEN, r, p, total
        size = u32(buf, at)
        at += 4
        if size > end - at:
            return _BROKEN, r, p, total
        to = last if full else r
        rows[tables.R_BATCH, to] = k
        rows[tables.R_METADATA, to] = ~at if inflated else at
        rows[tables.R_METADATA_LENGTH, to] = size
        compacted, after = single(
            buf, at, at + size, inflated, entries, i, rows, to, pairs, room if full else p
        )
        at += size
        if compacted < 0 or rows[tables.R_SIZE, to] > end - at:
            return _BROKEN, r, p, total
        rows[tables.R_PAYLOAD, to] = ~at if inflated else at
        at += rows[tables.R_SIZE, to]
        if compacted != 0 or full:
            continue
        weight = shared + size + rows[tables.R_SIZE, to] + tables.PAIR_BYTES * (after - p)
        if rows[tables.R_SOFT, to] != 0:
            weight += entries[tables.E_METADATA_LENGTH, i] + size + rows[tables.R_SIZE, to]
        if r >= last or (r > 0 and (total + weight > most or (room > 0 and after > room))):
            next_message, next_at, full = np.int64(k), np.int64(begin), True
            if checked or k == 0:
                break
            continue
        total += weight
        r += 1
        p = after
    if full:
        cursor[tables.C_MESSAGE] = next_message
        cursor[tables.C_AT] = next_at
        return _FULL, r, p, total
    return _DONE, r, p, total


@kernel
def _inflate(arena: Any, target: Any, entries: Any, i: Any) -> Any:
    """Decompress LZ4 of entry ``i``; whether its payload can be read now."""
    if entries[tables.E_COMPRESSION, i] == tables.LZ4:
        at = entries[tables.E_PAYLOAD, i]
        end = at + entries[tables.E_PAYLOAD_LENGTH, i]
        to = entries[tables.E_TARGET, i]
        size = entries[tables.E_INFLATED, i]
        # Pulsar's clients may leave an empty payload as it is.
        if not (size == 0 and at == end) and not lz4_decode(arena, at, end, target, to, size):
            entries[tables.E_KIND, i] = tables.WHOLE
            entries[tables.E_REASON, i] = tables.INFLATE
            return False
        entries[tables.E_PAYLOAD, i] = ~to
        entries[tables.E_PAYLOAD_LENGTH, i] = size
        entries[tables.E_COMPRESSION, i] = tables.NONE
    return True


@kernel
def read_messages(
    arena: Any,
    inflated: Any,
    target: Any,
    entries: Any,
    cursor: Any,
    stop: Any,
    last: Any,
    most: Any,
    rows: Any,
    pairs: Any,
) -> Any:
    """Fill ``rows`` and ``pairs`` from the cursor to entry ``stop - 1``, as far as there is room.

    Returns the number of rows, and moves ``cursor``: its entry is ``stop`` when all is read.
    ``target`` is ``inflated``, writable. A batch that breaks becomes one row of kind WHOLE, never a
    part of its messages. A portion ends with ``last`` rows (column ``last`` is working memory),
    when ``pairs`` is full, or before its rows take more than ``most`` bytes; one row there is
    always. So ``pairs`` needs MAX_PROPERTIES columns, or as many as the entries can fill; without
    any, properties are only counted.
    """
    r = np.int64(0)
    p = np.int64(0)
    total = np.int64(0)
    room = pairs.shape[1]
    if last >= rows.shape[1]:
        raise IndexError("read_messages: too few rows")
    while cursor[tables.C_ENTRY] < stop:
        i = cursor[tables.C_ENTRY]
        kind = entries[tables.E_KIND, i]
        if kind in (tables.HIDDEN, tables.OUTSIDE):
            cursor[tables.C_ENTRY] += 1
            continue
        if kind not in (tables.MESSAGES, tables.BARE, tables.WHOLE):
            raise ValueError("read_messages: a chunk")
        if r >= last:
            break
        alone = True
        if kind == tables.MESSAGES and _inflate(arena, target, entries, i):
            alone = not entries[tables.E_FLAGS, i] & tables.IN_BATCH
        if not alone:
            at = entries[tables.E_PAYLOAD, i]
            size = entries[tables.E_PAYLOAD_LENGTH, i]
            outcome = _BROKEN
            buf, start = (inflated, ~at) if at < 0 else (arena, at)
            if size <= len(buf) - start:
                begin = start if cursor[tables.C_MESSAGE] == 0 else cursor[tables.C_AT]
                outcome, r_after, p_after, total_after = _batch(
                    buf,
                    begin,
                    start + size,
                    at < 0,
                    entries,
                    i,
                    cursor,
                    last,
                    most,
                    rows,
                    r,
                    pairs,
                    p,
                    total,
                )
                if outcome != _BROKEN:
                    r, p, total = r_after, p_after, total_after
            if outcome == _BROKEN:
                entries[tables.E_KIND, i] = tables.WHOLE
                entries[tables.E_REASON, i] = tables.BATCH
                alone = True
            elif outcome == _FULL:
                break
        if alone:
            weight = entries[tables.E_ROW_BYTES, i] + 2 * (
                entries[tables.E_METADATA_LENGTH, i] + entries[tables.E_PAYLOAD_LENGTH, i]
            )
            count = max(entries[tables.E_PROPERTIES, i], np.int64(0))
            weight += tables.PAIR_BYTES * count
            if r > 0 and (total + weight > most or (room > 0 and p + count > room)):
                break
            p = _alone(arena, entries, i, rows, r, pairs, p)
            total += weight
            r += 1
        cursor[tables.C_ENTRY] += 1
        cursor[tables.C_MESSAGE] = 0
    return r
