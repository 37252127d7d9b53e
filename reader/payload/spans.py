"""Payloads as spans of one buffer, which is how the compiled loops take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Spans", "spans_of"]


@dataclass(frozen=True, slots=True)
class Spans:
    """Payload i is ``data[starts[i] : ends[i]]`` (uint8) where ``present[i]``."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    present: npt.NDArray[np.bool_]


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
