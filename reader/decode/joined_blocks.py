"""Several small blocks as one."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from reader.kernels.array_types import Int64s
from reader.model import EntryBlock


def join_blocks(blocks: Sequence[EntryBlock]) -> tuple[EntryBlock, Int64s, list[int]]:
    """(all as one, the ledger id of each entry, the number of each block's first entry).

    Its own ledger id is the first one's. Each block has entries.
    """
    spans = [_span(one) for one in blocks]
    arenas = accumulate((high - low for low, high in spans), initial=0)
    moved = [at - low for at, (low, _) in zip(arenas, spans, strict=False)]
    counts = [len(one) for one in blocks]
    starts = list(accumulate(counts[:-1], initial=0))
    whole = EntryBlock(
        ledger_id=blocks[0].ledger_id,
        entry_ids=np.concatenate([one.entry_ids for one in blocks]),
        offsets=np.concatenate([one.offsets + by for one, by in zip(blocks, moved, strict=True)]),
        lengths=np.concatenate([one.lengths for one in blocks]),
        arena=np.concatenate(
            [one.arena[low:high] for one, (low, high) in zip(blocks, spans, strict=True)]
        ),
        damaged=_renumbered([one.damaged for one in blocks], starts),
        sealed=_renumbered([one.sealed for one in blocks], starts),
    )
    return whole, np.repeat([one.ledger_id for one in blocks], counts), starts


def _span(block: EntryBlock) -> tuple[int, int]:
    """The part of the arena that has the entries."""
    low = max(0, int(block.offsets.min()))
    return low, max(low, int((block.offsets + block.lengths).max()))


def _renumbered(texts: Sequence[Mapping[int, str]], starts: Sequence[int]) -> dict[int, str]:
    return {
        at + i: text for some, at in zip(texts, starts, strict=True) for i, text in some.items()
    }
