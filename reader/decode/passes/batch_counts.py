"""Numbers of messages that are taken from the headers of batches, where that is sound.

Nothing in a header proves the number that it states: Kafka-on-Pulsar counts records, which are no
messages of a Pulsar batch. What is not compressed is split all the same, which costs as much as to
believe the header. Compressed batches are believed by producer: of each producer and codec, the
first batch of the given entries is split, and the others are believed if it holds what it states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reader.decode.passes.portions import portions, stated_rows
from reader.decode.tables import (
    COUNTED,
    E_COMPRESSION,
    E_FLAGS,
    E_KIND,
    E_MESSAGES,
    E_PRODUCER,
    E_PRODUCER_LENGTH,
    E_REASON,
    E_ROW_BYTES,
    IN_BATCH,
    MESSAGES,
    NONE,
    OUTSIDE,
    R_ENTRY,
)
from reader.kernels.compiling import kernel

__all__ = ["believe_counts", "rows_outside"]

_Bytes = npt.NDArray[np.uint8]
_Int64s = npt.NDArray[np.int64]


def believe_counts(arena: _Bytes, entries: _Int64s) -> None:
    """Make compressed entries COUNTED whose number of messages is known without their payload."""
    compressed = (entries[E_KIND] == MESSAGES) & (entries[E_COMPRESSION] != NONE)
    batched = entries[E_FLAGS] & IN_BATCH != 0
    entries[E_KIND, compressed & ~batched] = COUNTED
    stated = stated_rows(entries)
    # A batch of an impossible number is one rescued row, whatever it holds.
    batches = np.flatnonzero(compressed & batched & (stated == entries[E_MESSAGES]))
    if not len(batches):
        return
    writers = np.empty(len(batches), np.uint64)
    _number_writers(arena, entries, batches, writers)
    _, first, of_writer = np.unique(writers, return_index=True, return_inverse=True)
    samples = batches[first]
    honest = _rows_each(arena, entries[:, samples]) == stated[samples]
    believed = honest[of_writer]
    believed[np.isin(batches, samples)] = False  # they are split already, and as cheaply again
    entries[E_KIND, batches[believed]] = COUNTED


def rows_outside(arena: _Bytes, entries: _Int64s) -> _Int64s:
    """How many rows each entry outside of the publish range would be; 0 for all other entries."""
    counts = np.zeros(entries.shape[1], np.int64)
    outside = np.flatnonzero(entries[E_KIND] == OUTSIDE)
    if len(outside):
        part = entries[:, outside]
        part[E_KIND, part[E_REASON] == 0] = MESSAGES
        believe_counts(arena, part)
        counts[outside] = _rows_each(arena, part)
        counts[outside[part[E_REASON] != 0]] = 1
    return counts


def _rows_each(arena: _Bytes, entries: _Int64s) -> _Int64s:
    """The number of rows of each entry; ``entries`` may be changed."""
    entries[E_ROW_BYTES] = 0
    found = np.zeros(entries.shape[1], np.int64)
    for portion in portions(arena, entries, with_pairs=False):
        found += np.bincount(portion.rows[R_ENTRY, : portion.size], minlength=len(found))
    return found


@kernel
def _number_writers(arena: Any, entries: Any, which: Any, numbers: Any) -> None:
    """Fill ``numbers`` by the producer's name and the codec of each entry of ``which``: FNV-1a.

    Producers that share a number are taken for one.
    """
    for w in range(len(which)):
        i = which[w]
        number = np.uint64(0xCBF29CE484222325) ^ np.uint64(entries[E_COMPRESSION, i])
        at = entries[E_PRODUCER, i]
        for k in range(at, at + max(entries[E_PRODUCER_LENGTH, i], 0)):
            number = (number * np.uint64(0x100000001B3)) ^ np.uint64(arena[k])
        numbers[w] = number
