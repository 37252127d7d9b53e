"""Entries to portions of rows: decompressed group by group, and bounded by what comes out."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from reader.decode import tables
from reader.decode.passes.decompression import inflate
from reader.decode.passes.messages import read_messages
from reader.kernels.array_types import Bools, Bytes, Int64s
from reader.kernels.memory import empty_int64s

# So many bytes are decompressed at once, unless one entry has more: a block of 4 MiB as a whole,
# where it inflates no more than three times.
GROUP_BYTES = 12 << 20
# Bounds of one portion: its rows, their properties, and the bytes of its columns, payloads and raw
# bytes, which a single row may exceed. An entry of a few kB can hold millions of messages.
PORTION_ROWS = 1 << 16
PORTION_PAIRS = 1 << 18
PORTION_BYTES = 32 << 20


class Portion(NamedTuple):
    """The first ``size`` columns of ``rows``. ``inflated``: payloads that they point into."""

    inflated: Bytes
    rows: Int64s
    pairs: Int64s
    size: int


def portions(arena: Bytes, entries: Int64s, *, with_pairs: bool) -> Iterator[Portion]:
    """The rows of ``entries``, in order. ``with_pairs``: whether properties are wanted.

    Each portion is valid until the next is asked for. What turns out to be unreadable is marked so
    in ``entries``, and is one row.
    """
    for first, stop in _groups(entries):
        target = inflate(arena, entries, first, stop)
        inflated = target.view()
        inflated.flags.writeable = False
        group = entries[:, first:stop]
        most = min(int(stated_rows(group)[gives_rows(group)].sum()), PORTION_ROWS)
        # Fields that begin 5 cache lines apart do not compete for the same cache sets.
        width = most + 1 + (39 - most) % 512
        rows = empty_int64s(tables.R_FIELDS * width).reshape(tables.R_FIELDS, width)
        room = 0
        if with_pairs:
            own = int(_sizes(group).sum() + group[tables.E_METADATA_LENGTH].sum())
            room = min(PORTION_PAIRS, own // tables.MIN_PAIR + 1)
        pairs = empty_int64s(tables.P_FIELDS * room).reshape(tables.P_FIELDS, room)
        cursor = np.zeros(tables.C_FIELDS, np.int64)
        cursor[tables.C_ENTRY] = first
        while cursor[tables.C_ENTRY] < stop:
            count = read_messages(
                arena, inflated, target, entries, cursor, stop, most, PORTION_BYTES, rows, pairs
            )
            if count:
                yield Portion(inflated, rows, pairs, count)


def stated_rows(entries: Int64s) -> Int64s:
    """Return how many rows each entry can become, by its header: no entry becomes more.

    A batch that is rescued whole is one row.
    """
    batch = (entries[tables.E_KIND] == tables.MESSAGES) & (
        entries[tables.E_FLAGS] & tables.IN_BATCH != 0
    )
    return np.where(batch, entries[tables.E_MESSAGES], 1)


def gives_rows(entries: Int64s) -> Bools:
    """Which entries are neither hidden nor outside of the publish range."""
    found: Bools = (entries[tables.E_KIND] != tables.HIDDEN) & (
        entries[tables.E_KIND] != tables.OUTSIDE
    )
    return found


def _sizes(entries: Int64s) -> Int64s:
    """Inflated payload sizes, as the headers state them."""
    plain = entries[tables.E_COMPRESSION] == tables.NONE
    sizes: Int64s = np.where(plain, entries[tables.E_PAYLOAD_LENGTH], entries[tables.E_INFLATED])
    return sizes


def _cut(weights: Int64s, most: int, start: int) -> int:
    """Where ``most`` of the cumulated ``weights`` from ``start`` on ends; one element at least."""
    before = weights[start - 1] if start else 0
    return max(int(np.searchsorted(weights, before + most, side="right")), start + 1)


def _groups(entries: Int64s) -> Iterator[tuple[int, int]]:
    """(first, stop) of entries that are decompressed together."""
    sums = np.cumsum(np.where(entries[tables.E_KIND] == tables.MESSAGES, _sizes(entries), 0))
    first = 0
    while first < len(sums):
        stop = _cut(sums, GROUP_BYTES, first)
        yield first, stop
        first = stop
