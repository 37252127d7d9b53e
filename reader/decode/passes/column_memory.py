"""Pass 4: rows of the tables to the memory behind Arrow arrays, all columns in one call.

Arrow's layout: values, or offsets of 32 bits; a bit a row for what is valid, the lowest first.
Source: arrow.apache.org, "Arrow Columnar Format", "Physical Memory Layout".
"""

from typing import Any, Final

import numpy as np

from reader.decode import tables
from reader.decode.passes.copies import copy
from reader.kernels.compiling import kernel
from reader.kernels.unaligned import load64, move16

# What a column is made of: plan[c, 0]. ENTRY and ROW are a field, plan[c, 1], NULL up to a value,
# plan[c, 2]. The texts' offsets are made from a field with lengths, which are negative for NULL.
ENTRY: Final = 0
ROW: Final = 1
ENTRY_TEXT: Final = 2
ROW_TEXT: Final = 3
ENTRY_ID: Final = 4
BATCH: Final = 5
SEQUENCE: Final = 6
INDEX: Final = 7
BASE64_BITS: Final = 8
TOMBSTONE_BITS: Final = 9
LEDGER_ID: Final = 10
# As ROW_TEXT, of numbers of properties.
PROPERTIES: Final = ROW_TEXT

# Where payloads lie: bits that `fill_spans` returns.
IN_ARENA: Final = 1
IN_INFLATED: Final = 2

_LOW_BITS = np.uint64(0x0101010101010101)
# Moves the lowest bit of byte i to bit 56 + i.
_TO_HIGH_BYTE = np.uint64(0x0102040810204080)


@kernel
def _pack(flags: Any, count: Any, out: Any, to: Any) -> Any:
    """Write ``flags`` (0 or 1, with 8 bytes more than ``count``) as bits; how many are 0."""
    unset = np.int64(0)
    for r in range(count):
        unset += 1 - flags[r]
    for r in range(count, (count + 7) // 8 * 8):
        flags[r] = 0
    for first in range(0, count, 8):
        packed = (load64(flags, first) & _LOW_BITS) * _TO_HIGH_BYTE
        out[to + first // 8] = packed >> np.uint64(56)
    return unset


@kernel
def fill_columns(
    entries: Any, ledger_ids: Any, entry_ids: Any, rows: Any, count: Any, plan: Any, stride: Any,
    words: Any, halves: Any, octets: Any, flags: Any, found: Any,
) -> bool:  # fmt: skip
    """Fill a column for each line of ``plan``; whether any row is rescued.

    ``words``, ``halves`` and ``octets`` are the same memory. Column c has ``stride`` int64s of it
    from ``c * stride`` on, one more than there are rows at least; behind all of them it has as many
    validity bits. ``flags`` is working memory. ``found[c]``: number of NULLs; size of all texts.
    """
    size = len(plan) * stride
    if 8 * len(octets) < 65 * size or len(words) < size or stride <= count or stride % 8:
        raise IndexError("fill_columns: too little memory")
    if len(flags) < count + 8 or len(found) < len(plan) or count > rows.shape[1]:
        raise IndexError("fill_columns: too few rows")
    if min(len(entry_ids), len(ledger_ids)) < entries.shape[1]:
        raise IndexError("fill_columns: too few entries")
    rescued = False
    for r in range(count):
        i = rows[tables.R_ENTRY, r]
        if i < 0 or i >= entries.shape[1]:
            raise IndexError("fill_columns: no such entry")
        rescued |= entries[tables.E_REASON, i] != 0 or rows[tables.R_SOFT, r] != 0
    for c in range(len(plan)):
        source, field, unset = plan[c, 0], plan[c, 1], plan[c, 2]
        to = c * stride
        bits = 8 * len(plan) * stride + c * stride // 8
        total = np.int64(0)
        for r in range(count):
            flags[r] = 1
        if source == ENTRY:
            for r in range(count):
                value = entries[field, rows[tables.R_ENTRY, r]]
                words[to + r] = value
                flags[r] = value > unset
        elif source == ROW:
            for r in range(count):
                value = rows[field, r]
                words[to + r] = value
                flags[r] = value > unset
        elif source in (ENTRY_TEXT, ROW_TEXT):
            for r in range(count):
                size = rows[field, r]
                if source == ENTRY_TEXT:
                    size = entries[field, rows[tables.R_ENTRY, r]]
                halves[2 * to + r] = total
                flags[r] = size >= 0
                total += max(size, np.int64(0))
            halves[2 * to + count] = total
        elif source == ENTRY_ID:
            for r in range(count):
                words[to + r] = entry_ids[rows[tables.R_ENTRY, r]]
        elif source == LEDGER_ID:
            for r in range(count):
                words[to + r] = ledger_ids[rows[tables.R_ENTRY, r]]
        elif source == BATCH:
            for r in range(count):
                halves[2 * to + r] = rows[tables.R_BATCH, r]
        elif source == SEQUENCE:
            for r in range(count):
                words[to + r] = rows[field, r]
                flags[r] = entries[tables.E_KIND, rows[tables.R_ENTRY, r]] != tables.BARE
        elif source == INDEX:
            # The broker counts messages; an entry has the index of its last one.
            for r in range(count):
                i = rows[tables.R_ENTRY, r]
                value = entries[tables.E_INDEX, i]
                if rows[tables.R_BATCH, r] >= 0:
                    value += rows[tables.R_BATCH, r] + 1 - entries[tables.E_MESSAGES, i]
                words[to + r] = value
                flags[r] = entries[tables.E_FLAGS, i] & tables.HAS_INDEX != 0
        elif source == BASE64_BITS:
            for r in range(count):
                flags[r] = rows[tables.R_BASE64, r] != 0
            _pack(flags, count, octets, 8 * to)
            for r in range(count):
                flags[r] = rows[tables.R_KEY_LENGTH, r] >= 0
        elif source == TOMBSTONE_BITS:
            # No value, or an empty one: for Pulsar's compaction both are deletes of the key.
            for r in range(count):
                known = entries[tables.E_KIND, rows[tables.R_ENTRY, r]] == tables.MESSAGES
                flags[r] = known and rows[tables.R_PAYLOAD_LENGTH, r] <= 0
            _pack(flags, count, octets, 8 * to)
            for r in range(count):
                flags[r] = 1
        found[c, 0] = _pack(flags, count, octets, bits)
        found[c, 1] = total
    return rescued


@kernel
def _copy_text(out: Any, to: Any, source: Any, at: Any, size: Any) -> None:
    if size < 0 or at < 0 or at > len(source) - size or to < 0 or to > len(out) - size:
        raise IndexError("copy_texts: range")
    # Most are short; what is written beyond the end is overwritten by what follows.
    if size <= 16 and len(source) - at >= 16 and len(out) - to >= 16:
        move16(out, to, source, at)
    else:
        copy(out, to, source, at, size)


@kernel
def copy_texts(
    arena: Any, inflated: Any, entries: Any, rows: Any, count: Any, plan: Any, stride: Any,
    halves: Any, starts: Any, out: Any,
) -> None:  # fmt: skip
    """Copy the texts whose offsets `fill_columns` has made to ``out[starts[c]:]``.

    They lie where the field before that of their lengths says; lines of ``plan`` whose start is
    negative are left out, and the starts ascend.
    """
    for c in range(len(plan)):
        if starts[c] < 0:
            continue
        source, field = plan[c, 0], plan[c, 1] - 1
        at_offsets = 2 * c * stride
        for r in range(count):
            first = np.int64(halves[at_offsets + r])
            size = np.int64(halves[at_offsets + r + 1]) - first
            if size == 0:
                continue
            at = rows[field, r]
            if source == ENTRY_TEXT:
                at = entries[field, rows[tables.R_ENTRY, r]]
            to = starts[c] + first
            if at >= 0:
                _copy_text(out, to, arena, at, size)
            else:
                _copy_text(out, to, inflated, ~at, size)


@kernel
def fill_spans(rows: Any, count: Any, starts: Any, ends: Any, present: Any) -> int:
    """Where payloads begin and end in the buffer that they lie in; bits of where they lie."""
    seen = 0
    for r in range(count):
        at, size = rows[tables.R_PAYLOAD, r], rows[tables.R_PAYLOAD_LENGTH, r]
        there = size >= 0
        present[r] = there
        starts[r] = 0
        ends[r] = 0
        if there:
            seen |= IN_ARENA if at >= 0 else IN_INFLATED
            starts[r] = at if at >= 0 else ~at
            ends[r] = starts[r] + size
    return seen
