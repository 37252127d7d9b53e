"""Blocks: for each of some elements a string of bytes, put together out of parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reader.encode.payload.row_writer import kernel as k
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.byte_spans import ByteSpans
from reader.kernels.memory import empty_bytes, empty_int64s

# The most that a value takes besides its span.
_MOST = {
    k.CONSTANT: 0, k.ZIGZAG: 10, k.VARINT: 10, k.RAW: 0, k.SPAN: 0, k.SIZED: 10,
    k.ZIGZAG_SIZED: 10, k.SIZED32: 4, k.TEXT: 2, k.BASE64: 6, k.INTEGER_TEXT: 20,
    k.BOOLEAN_TEXT: 8, k.DOUBLE_TEXT: 2, k.COUNTED: 11, k.ITEMS_TEXT: 2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Spans:
    """String i is ``data[starts[i] : ends[i]]``; none is longer than all are together, ``size``."""

    data: Bytes
    starts: Int64s
    ends: Int64s

    @classmethod
    def between(cls, data: Bytes, offsets: Int64s) -> Spans:
        return cls(data, offsets[:-1], offsets[1:])

    @property
    def size(self) -> int:
        return int((self.ends - self.starts).sum())


@dataclass(frozen=True, slots=True)
class Written:
    """Element i is ``data[offsets[i] : offsets[i + 1]]``."""

    data: Bytes
    offsets: Int64s

    @property
    def spans(self) -> Spans:
        return Spans.between(self.data, self.offsets)

    def groups(self, offsets: Int64s) -> Spans:
        """Elements ``offsets[i]`` up to ``offsets[i + 1]`` together."""
        return Spans.between(self.data, self.offsets[offsets])


class Block:
    """Collects the parts of ``count`` elements, then writes them.

    ``live``: a byte for each, 0 where nothing is to be written. ``members``: each part with a value
    begins with a comma, and braces go around the element. ``suffix`` ends each element.
    """

    def __init__(
        self, count: int, live: Bytes | None, *, members: bool = False, suffix: bytes = b""
    ) -> None:
        self._count, self._live, self._members = count, live, members
        self._suffix = np.frombuffer(suffix, np.uint8)
        self._parts: list[Int64s] = []
        self._kept: list[Any] = [live]
        self.bound = count * (len(suffix) + 2)
        """The most bytes that are written."""

    def add(
        self,
        kind: int,
        values: Spans | npt.NDArray[Any] | None = None,
        *,
        guard: Bytes | None = None,
        valid: Bytes | None = None,
        prefix: bytes = b"",
        absent: bytes = b"",
        brackets: bytes = b"",
        counts: Int64s | None = None,
    ) -> None:
        """A part: ``prefix`` and a value where ``valid``, else ``absent``; nothing without guard.

        ``values`` has an element for each of the block, of what the kind takes; ``counts`` only for
        COUNTED, ``brackets`` for ITEMS_TEXT.
        """
        part = np.zeros(k.PART, np.int64)
        part[k.KIND] = kind
        part[k.GUARD], part[k.VALID] = self._address(guard), self._address(valid)
        for text, at, size in (
            (prefix, k.PREFIX, k.PREFIX_SIZE),
            (absent, k.ABSENT, k.ABSENT_SIZE),
        ):
            part[at], part[size] = self._address(np.frombuffer(text, np.uint8)), len(text)
        part[k.COUNTS] = self._address(counts)
        self.bound += self._count * (max(len(prefix), len(absent)) + _MOST[kind])
        if isinstance(values, Spans):
            part[k.DATA] = self._address(values.data)
            part[k.STARTS], part[k.ENDS] = self._address(values.starts), self._address(values.ends)
            part[k.WIDTH] = int.from_bytes(brackets, "little")
            size = values.size
            if kind == k.TEXT:
                size = k.escaped_size(
                    self._count, *part[[k.DATA, k.STARTS, k.ENDS, k.GUARD, k.VALID]].tolist()
                )
            self.bound += size + size // 3 * (kind == k.BASE64) + self._count * (kind == k.BASE64)
        elif values is not None:
            part[k.DATA], part[k.WIDTH] = self._address(values), _width(values)
            self.bound += values.nbytes if kind == k.RAW else 0
        self._parts.append(part)

    def write(self) -> Written:
        """The bytes of each element, one after another."""
        out, offsets = empty_bytes(self.bound), empty_int64s(self._count + 1)
        parts = np.stack(self._parts) if self._parts else np.empty((0, k.PART), np.int64)
        k.write_rows(
            parts, self._count, self._address(self._live), self._members,
            self._address(self._suffix), len(self._suffix), self._address(out), offsets,
        )  # fmt: skip
        used = int(offsets[-1])
        assert used <= self.bound
        return Written(out[:used], offsets)

    def byte_spans(self, present: Bytes | None) -> ByteSpans:
        """As a message batch takes them; ``present``: a byte for each, None for all."""
        spans = self.write().spans
        spans.data.flags.writeable = False
        some = np.ones(self._count, np.bool_) if present is None else present.view(np.bool_)
        return ByteSpans(spans.data, spans.starts, spans.ends, some)

    def _address(self, array: npt.NDArray[Any] | None) -> int:
        """Of memory that lives as long as this; 0 for none."""
        if array is None or not array.size:
            return 0
        assert array.flags.c_contiguous
        self._kept.append(array)
        address: int = array.__array_interface__["data"][0]
        return address


def _width(values: npt.NDArray[Any]) -> int:
    return values.itemsize * (values.shape[1] if values.ndim == 2 else 1)
