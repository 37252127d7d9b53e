"""The headers of a block's entries, those that are encrypted opened where that is possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from reader.decode.encryption.decryption import Decryption
from reader.decode.passes.scan import scan
from reader.decode.tables import MARK_DAMAGED, SEEN_ENCRYPTED
from reader.model import EntryBlock

__all__ = ["read_headers"]


def read_headers(
    block: EntryBlock,
    decryption: Decryption | None = None,
    low: int | None = None,
    high: int | None = None,
) -> tuple[int, EntryBlock, npt.NDArray[np.int64]]:
    """(what ``scan`` saw, the block, its ``entries`` table); the block's arena is contiguous.

    ``low``, ``high``: the publish range, µs. Entries that ``decryption`` opens lie behind the
    others in the block that is returned, as if they had been sent in the clear.
    """
    marks = np.zeros(len(block), np.uint8)
    marks[list(block.damaged)] = MARK_DAMAGED
    block = replace(block, arena=np.ascontiguousarray(block.arena, np.uint8))
    seen, entries = scan(block.arena, block.offsets, block.lengths, marks, low, high)
    if decryption is not None and seen & SEEN_ENCRYPTED:
        block, marks = decryption.opened(block, entries, marks)
        again, entries = scan(block.arena, block.offsets, block.lengths, marks, low, high)
        seen |= again  # opened or not, there were encrypted ones
    return seen, block, entries
