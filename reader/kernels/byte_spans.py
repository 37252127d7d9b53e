"""Byte strings as ranges of one buffer: how compiled loops take them without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def fixed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same array as one that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class ByteSpans:
    """String i is ``data[starts[i] : ends[i]]`` (uint8, read-only) where ``present[i]``.

    Elsewhere ``starts[i] <= ends[i]`` lie in ``data`` as well.
    """

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    present: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, strings: pa.LargeBinaryArray) -> ByteSpans:
        """The elements of an array, over its own bytes; null is not present."""
        count = len(strings)
        data = np.frombuffer(b"", np.uint8)
        if not count:
            none = np.empty(0, np.int64)
            return cls(data, none, none, np.empty(0, np.bool_))
        _, offset_buffer, data_buffer = strings.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64, strings.offset + count + 1)
        offsets = offsets[strings.offset :]
        if data_buffer is not None and data_buffer.size:
            data = np.frombuffer(data_buffer, np.uint8)
        present = strings.is_valid().to_numpy(zero_copy_only=False)
        return cls(data, offsets[:-1], offsets[1:], present)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> bytes | None:
        if not self.present[row]:
            return None
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def values(self, rows: Sequence[int]) -> list[bytes]:
        """Return the bytes of some strings; empty where a string is not present."""
        view, some = self.data.data, self.take(np.asarray(rows, np.int64))
        ends = np.where(some.present, some.ends, some.starts)
        places = zip(some.starts.tolist(), ends.tolist(), strict=True)
        return [view[start:end].tobytes() for start, end in places]

    def fixed(self) -> tuple[npt.NDArray[Any], ...]:
        """``data``, ``starts``, ``ends`` and ``present`` as arrays that cannot be written.

        Kernels are compiled anew for arrays that can.
        """
        arrays: tuple[npt.NDArray[Any], ...] = (self.data, self.starts, self.ends, self.present)
        return tuple(fixed(one) for one in arrays)

    def take(self, rows: npt.NDArray[np.int64]) -> ByteSpans:
        """The strings of ``rows``, over the same bytes."""
        return ByteSpans(self.data, self.starts[rows], self.ends[rows], self.present[rows])

    def slice(self, count: int) -> ByteSpans:
        """The first ``count`` strings, over the same bytes."""
        return ByteSpans(self.data, self.starts[:count], self.ends[:count], self.present[:count])

    def after(self, row: int) -> ByteSpans:
        """The strings from ``row`` on, over the same bytes."""
        return ByteSpans(self.data, self.starts[row:], self.ends[row:], self.present[row:])
