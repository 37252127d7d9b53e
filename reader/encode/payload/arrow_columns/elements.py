"""What is written at one path of a schema: an Arrow array, and where it may not be stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.encode.payload.row_writer.blocks import Spans
from reader.errors import ConfigurationError
from reader.kernels.array_types import Bytes, Int64s
from reader.payload.column_types import inner_path

_LONGEST = 200

Bools = npt.NDArray[np.bool_]

_SPARK_NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp_ntz",
    pa.null(): "void",
}


@dataclass(frozen=True, slots=True)
class Elements:
    """``array`` at ``path``; ``live``: a byte for each element, 0 where nothing is written.

    ``row_of`` gives the row of the batch that an element belongs to.
    """

    array: pa.Array
    path: str
    live: Bytes | None = None
    row_of: Callable[[int], int] = int

    @property
    def type(self) -> pa.DataType:
        return self.array.type

    def __len__(self) -> int:
        return len(self.array)

    def valid(self) -> Bytes | None:
        """A byte for each element, 0 for NULL; None where there is none."""
        if not self.array.null_count:
            return None
        if pa.types.is_null(self.type):
            return np.zeros(len(self), np.uint8)
        return _bits(self.array.buffers()[0], self.array.offset, len(self))

    def present(self) -> Bytes | None:
        """Those that are live and not NULL; None for all."""
        return both(self.live, self.valid())

    def typed(self, like: pa.DataType) -> Elements:
        """With NULL of type ``like`` for a column that has no type."""
        if not pa.types.is_null(self.type):
            return self
        return Elements(pa.nulls(len(self), like), self.path, self.live, self.row_of)

    def where(self, live: Bytes | None) -> Elements:
        """The same, written only there."""
        return Elements(self.array, self.path, both(self.live, live), self.row_of)

    def numbers(self, dtype: Any) -> npt.NDArray[Any]:
        """Of an array of fixed width; anything where it is NULL."""
        buffer, first = self.array.buffers()[1], self.array.offset
        if buffer is None:
            return np.zeros(len(self), dtype)
        values: npt.NDArray[Any] = np.frombuffer(buffer, dtype, first + len(self))[first:]
        return values

    def booleans(self) -> Bytes:
        return _bits(self.array.buffers()[1], self.array.offset, len(self))

    def spans(self) -> Spans:
        """Of strings or binary."""
        large = pa.types.is_large_string(self.type) or pa.types.is_large_binary(self.type)
        _, offsets, data = self.array.buffers()
        first, count = self.array.offset, len(self) + 1
        found = np.zeros(count, np.int64)
        if offsets is not None and offsets.size:
            dtype = np.int64 if large else np.int32
            found = np.frombuffer(offsets, dtype, first + count)[first:].astype(np.int64)
        raw = np.frombuffer(b"" if data is None else data, np.uint8)
        raw.flags.writeable = False  # one type for compiled functions
        return Spans.between(raw, found)

    def member(self, index: int, name: str, live: Bytes | None) -> Elements:
        """Of a struct."""
        return Elements(self.array.field(index), inner_path(self.path, name), live, self.row_of)

    def items(self) -> tuple[Elements, Int64s]:
        """Of a list or map the items of all (of a map its entries), and the offsets of each."""
        offsets = self.array.offsets.to_numpy().astype(np.int64)
        start, end = offsets[0], offsets[-1]
        offsets -= start
        present = self.present()
        live = None if present is None else np.repeat(present, np.diff(offsets))

        def row_of(item: int) -> int:
            return self.row_of(int(np.searchsorted(offsets, item, side="right")) - 1)

        values = self.array.values.slice(start, end - start)
        return Elements(values, f"{self.path}[]", live, row_of), offsets

    def require(
        self, field: str, hint: str = "give each row a value, or let the schema allow null"
    ) -> None:
        """No NULL."""
        valid = self.valid()
        if valid is not None:
            what = f"is NULL, and {field} has no null"
            self.fail_if(valid == 0, what, hint=hint, even_null=True)

    def fail_if(
        self,
        bad: Bools,
        why: str | Callable[[int], str],
        *,
        hint: str | None = None,
        even_null: bool = False,
    ) -> None:
        """Raises ConfigurationError for the first bad element that is to be written."""
        if not bad.any():
            return
        written = self.live if even_null else self.present()
        found = np.flatnonzero(bad if written is None else bad & (written != 0))
        if len(found):
            self.fail(int(found[0]), why if isinstance(why, str) else why(int(found[0])), hint)

    def fail(self, element: int, why: str, hint: str | None = None) -> None:
        row = self.row_of(element)
        raise ConfigurationError(
            f"column {self.path!r}, row {row} of the batch: {why}",
            hint=hint or "correct the value, or filter the row out",
            context={"row": row, "column": self.path},
        )

    def refuse(self, field: str, takes: pa.DataType | None = None) -> ConfigurationError:
        """The error of a type that cannot be stored in a field of the schema."""
        hint = "give the column another type, or the topic another schema"
        if takes is not None:
            hint = f"cast the column to {spark_type(takes)}"
        return ConfigurationError(
            f"column {self.path!r} is {spark_type(self.type)}, which its field of type {field} "
            "cannot store",
            hint=hint,
            context={"column": self.path},
        )


def both(one: Bytes | None, other: Bytes | None) -> Bytes | None:
    """Where both are 1; None is all."""
    if one is None or other is None:
        return one if other is None else other
    return one & other


def _bits(buffer: Any, first: int, count: int) -> Bytes:
    if buffer is None or not count:
        return np.zeros(count, np.uint8)
    raw = np.frombuffer(buffer, np.uint8)
    start = first >> 3
    bits = np.unpackbits(raw[start:], count=count + (first & 7), bitorder="little")
    return bits[first & 7 :]


def spark_type(real: pa.DataType) -> str:
    """A type as Spark's SQL names it, cut where it is long."""
    text = _spark_type(real)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _spark_type(real: pa.DataType) -> str:
    if pa.types.is_timestamp(real) and real.tz is not None:
        return "timestamp"
    if pa.types.is_decimal128(real):
        return f"decimal({real.precision},{real.scale})"
    if pa.types.is_struct(real):
        return f"struct<{', '.join(f'{f.name}: {_spark_type(f.type)}' for f in real)}>"
    if pa.types.is_list(real) or pa.types.is_large_list(real):
        return f"array<{_spark_type(real.value_type)}>"
    if pa.types.is_map(real):
        return f"map<{_spark_type(real.key_type)}, {_spark_type(real.item_type)}>"
    return _SPARK_NAMES.get(real, str(real))
