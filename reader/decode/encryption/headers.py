"""The headers of a block's entries, after decryption where that is possible."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from reader.decode.encryption.decryption import Decryption
from reader.decode.passes.entry_headers import scan
from reader.decode.tables import MARK_DAMAGED, SEEN_ENCRYPTED
from reader.model import EntryBlock


def read_headers(
    block: EntryBlock,
    decryption: Decryption | None = None,
    low: int | None = None,
    high: int | None = None,
) -> tuple[int, EntryBlock, npt.NDArray[np.int64]]:
    """(SEEN_… bits, the block, its ``entries`` table); the block's arena is contiguous.

    ``low``, ``high``: the publish range, µs since the epoch, inclusive. In the returned block,
    decrypted entries are unencrypted ones, behind the others in the arena.
    """
    marks = np.zeros(len(block), np.uint8)
    marks[list(block.damaged)] = MARK_DAMAGED
    block = replace(block, arena=np.ascontiguousarray(block.arena, np.uint8))
    seen, entries = scan(block.arena, block.offsets, block.lengths, marks, low, high)
    if decryption is not None and seen & SEEN_ENCRYPTED:
        block, marks = decryption.decrypt_block(block, entries, marks)
        again, entries = scan(block.arena, block.offsets, block.lengths, marks, low, high)
        seen |= again  # SEEN_ENCRYPTED stays, decrypted or not
    return seen, block, entries
