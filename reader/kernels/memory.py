"""Uninitialised arrays from Arrow's allocator.

It keeps freed memory for the next batch, of whichever thread. The C library's returns large blocks
to the system at once, and page faults on new ones cost more than filling them.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def empty_bytes(count: int) -> npt.NDArray[np.uint8]:
    """An array of ``count`` bytes, not initialised."""
    return np.frombuffer(pa.allocate_buffer(count), np.uint8)


def empty_int64s(count: int) -> npt.NDArray[np.int64]:
    """An array of ``count`` int64, not initialised."""
    return np.frombuffer(pa.allocate_buffer(8 * count), np.int64)
