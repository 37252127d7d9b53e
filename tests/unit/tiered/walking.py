"""A walk over bytes in memory, in windows of any size."""

import numpy as np

from reader.errors import CorruptError
from reader.tiered.walk import Walk


def walked(
    walk: Walk, data: bytes, window: int = 1 << 20, *, places: dict[int, int] | None = None
) -> dict[int, bytes]:
    """Entries by id, in the order in which they came. ``places`` collects where they begin."""
    found: dict[int, bytes] = {}
    size = window
    while walk.need:
        at = walk.at
        part = np.frombuffer(data, np.uint8)[at : min(at + size, walk.end)]
        for one in walk.take(part):
            starts = one.offsets.tolist()
            for i, (start, length) in enumerate(zip(starts, one.lengths.tolist(), strict=True)):
                assert one.first + i not in found
                found[one.first + i] = one.arena[start : start + length].tobytes()
            if places is not None and one.places is not None:
                places.update(enumerate(one.places.tolist(), one.first))
        if walk.at > at:
            size = window
        elif at + size >= walk.end:
            raise CorruptError("the walk wants more than there is")
        else:
            size += window
    return found
