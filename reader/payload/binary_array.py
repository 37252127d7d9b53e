"""Byte strings as an Arrow array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from reader.errors import UnsupportedError
from reader.kernels.byte_spans import ByteSpans
from reader.payload.shared_kernels import copy_spans

__all__ = ["binary_of"]


def binary_of(spans: ByteSpans) -> pa.BinaryArray:
    """A copy of the bytes; what is not present is NULL.

    Raises UnsupportedError where they are more than 2 GiB.
    """
    count = len(spans.starts)
    lengths = np.where(spans.present, spans.ends - spans.starts, 0)
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise UnsupportedError(
            "a column of one batch would be larger than 2 GiB", hint="decode fewer messages a batch"
        )
    offsets = ends.astype(np.int32)
    content = np.empty(offsets[-1], np.uint8)
    words = np.stack([spans.starts, lengths], axis=1).reshape(-1)
    copy_spans(spans.data, spans.data, words, offsets, content)
    nulls = count - int(np.count_nonzero(spans.present))
    bitmap = pa.py_buffer(np.packbits(spans.present, bitorder="little")) if nulls else None
    buffers = [bitmap, pa.py_buffer(offsets), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, nulls)
