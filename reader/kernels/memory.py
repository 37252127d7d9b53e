"""Memory for arrays of some size, from Arrow's allocator.

That keeps what was freed for the next batch, whichever thread needs it. The C library's gives large
blocks back at once, and to touch new ones costs more than to fill them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["bytes_room", "int64_room"]


def bytes_room(count: int) -> npt.NDArray[np.uint8]:
    """An array of so many bytes, of any content."""
    return np.frombuffer(pa.allocate_buffer(count), np.uint8)


def int64_room(count: int) -> npt.NDArray[np.int64]:
    """An array of so many integers, of any content."""
    return np.frombuffer(pa.allocate_buffer(8 * count), np.int64)
