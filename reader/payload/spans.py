"""Payloads as spans of one buffer, which is how the compiled loops take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.errors import UnsupportedError
from reader.payload.kernels import copy_spans

__all__ = ["Spans", "binary_of", "spans_of"]


@dataclass(frozen=True, slots=True)
class Spans:
    """Payload i is ``data[starts[i] : ends[i]]`` (uint8) where ``present[i]``."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    present: npt.NDArray[np.bool_]

    def take(self, rows: npt.NDArray[np.int64]) -> Spans:
        """The spans of ``rows``, over the same bytes."""
        return Spans(self.data, self.starts[rows], self.ends[rows], self.present[rows])


def spans_of(payload: pa.LargeBinaryArray) -> Spans:
    """The spans of ``payload``, without copying its bytes."""
    count = len(payload)
    if not count:
        none = np.empty(0, np.int64)
        return Spans(np.empty(0, np.uint8), none, none, np.empty(0, np.bool_))
    _, offset_buffer, data_buffer = payload.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, payload.offset + count + 1)[payload.offset :]
    data = np.empty(0, np.uint8)
    if data_buffer is not None and data_buffer.size:
        data = np.frombuffer(data_buffer, np.uint8)
    present = payload.is_valid().to_numpy(zero_copy_only=False)
    return Spans(data, offsets[:-1], offsets[1:], present)


def binary_of(spans: Spans) -> pa.BinaryArray:
    """A copy of the bytes; what is not present is NULL.

    UnsupportedError: they are more than 2 GiB.
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
