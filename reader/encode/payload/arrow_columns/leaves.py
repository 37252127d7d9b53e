"""Leaves of any format, checked as a whole: numbers, texts and times as fields store them.

Rules: integers, texts and booleans never become each other; what is wider is narrowed value by
value, and one that does not fit is an error; times floor, as Spark's Avro writer does.
"""

from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.row_writer.blocks import Spans
from reader.kernels.array_types import Bools, Bytes, Int64s
from reader.kernels.utf8 import valid_utf8_spans
from reader.model.columns import TIMESTAMP

_INTEGERS = {pa.int8(): "i1", pa.int16(): "i2", pa.int32(): "i4", pa.int64(): "i8"}
_INTEGER = "^(0|-?[1-9][0-9]{0,19})$"
_ZONELESS = pa.timestamp("us")
_DAY_US = 86_400_000_000
_TIMES = {
    f"{prefix}timestamp-{unit}": column
    for prefix, column in (("", TIMESTAMP), ("local-", _ZONELESS))
    for unit in ("millis", "micros", "nanos")
}


def is_text(real: pa.DataType) -> bool:
    return bool(pa.types.is_string(real) or pa.types.is_large_string(real))


def integers(elements: Elements, field: str, low: int, high: int) -> Int64s:
    """Of a column of integers, each from ``low`` to ``high``."""
    dtype = _INTEGERS.get(elements.type)
    if dtype is None:
        raise elements.refuse(field, pa.int64())
    values: Int64s = elements.numbers(dtype).astype(np.int64)
    _within(elements, values, field, low, high)
    return values


def _within(elements: Elements, values: Int64s, field: str, low: int, high: int) -> None:
    wide = np.iinfo(np.int64)
    bad = np.zeros(len(values), np.bool_)
    if low > wide.min:
        bad |= values < low
    if high < wide.max:
        bad |= values > high
    elements.fail_if(bad, lambda i: f"{values[i]} is out of the range of {field}")


def scaled(elements: Elements, logical: str, *, field: str | None = None) -> Int64s:
    """Return times as the units of Avro's type ``logical``; ``field`` names the type in errors."""
    found = column_units(elements, logical, field=field)
    return found // 1000 if logical.endswith("-millis") else found


def column_units(elements: Elements, logical: str, *, field: str | None = None) -> Int64s:
    """Return times as a column of Avro's type ``logical`` counts them (docs/types.md)."""
    field = field or logical
    if logical.startswith("time-"):  # of a day
        return integers(elements, field, 0, _DAY_US - 1)
    if logical == "date":
        if not pa.types.is_date32(elements.type):
            raise elements.refuse(field, pa.date32())
        return elements.numbers(np.int32).astype(np.int64)
    nanos, natural = logical.endswith("-nanos"), _TIMES[logical]
    zoned = pa.types.is_timestamp(elements.type) and elements.type.tz is not None
    if (zoned and natural == TIMESTAMP and elements.type.unit == "us") or (
        elements.type == natural == _ZONELESS
    ):
        values = elements.numbers(np.int64)
        if nanos:  # bigint is nanoseconds as they are
            limit = np.iinfo(np.int64).max // 1000
            _within(elements, values, field, -limit, limit)
            with np.errstate(over="ignore"):
                return values * 1000
        return values
    if natural != TIMESTAMP or nanos:
        if elements.type not in _INTEGERS:
            raise elements.refuse(field, pa.int64())
        return integers(elements, field, *limits(64))
    raise elements.refuse(field, natural)


def limits(bits: int) -> tuple[int, int]:
    return -(1 << bits - 1), (1 << bits - 1) - 1


def doubles(elements: Elements, field: str) -> npt.NDArray[np.float64]:
    """Of a column of doubles, floats, or integers that are exact as doubles."""
    if pa.types.is_float64(elements.type):
        return elements.numbers(np.float64)
    if pa.types.is_float32(elements.type):
        return elements.numbers(np.float32).astype(np.float64)
    if elements.type not in _INTEGERS:
        raise elements.refuse(field, pa.float64())
    return _exact(elements, np.float64, field).astype(np.float64)


def floats(elements: Elements, field: str) -> npt.NDArray[np.float32]:
    """Rounded to the nearest; what is finite stays so. Integers have to be exact."""
    if pa.types.is_float32(elements.type):
        return elements.numbers(np.float32)
    if elements.type in _INTEGERS:
        return _exact(elements, np.float32, field).astype(np.float32)
    values = doubles(elements, field)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        found = values.astype(np.float32)
    bad = np.isfinite(values) & np.isinf(found)
    elements.fail_if(bad, lambda i: f"{values[i]} is out of the range of {field}")
    return found


def _exact(elements: Elements, dtype: Any, field: str) -> npt.NDArray[Any]:
    values = integers(elements, field, *limits(64))
    found = values.astype(dtype)
    # The largest integers round to 2**63, which is none.
    inside = found < dtype(2.0**63)
    bad = ~inside | (np.where(inside, found, 0).astype(np.int64) != values)
    elements.fail_if(bad, lambda i: f"{values[i]} is not exact as {field}")
    return found


def booleans(elements: Elements, field: str) -> Bytes:
    if not pa.types.is_boolean(elements.type):
        raise elements.refuse(field, pa.bool_())
    return elements.booleans()


def text(elements: Elements, field: str) -> Spans:
    """Of a column of strings, all of them UTF-8: Spark's need not be."""
    if not is_text(elements.type):
        raise elements.refuse(field, pa.string())
    spans = elements.spans()
    good = np.empty(len(elements), np.bool_)
    valid_utf8_spans(spans.data, spans.starts, spans.ends, good)
    elements.fail_if(~good, "is not UTF-8")
    return spans


def binary(elements: Elements, field: str, size: int | None = None) -> Spans:
    """Of a column of binary, each of ``size`` bytes."""
    if not (pa.types.is_binary(elements.type) or pa.types.is_large_binary(elements.type)):
        raise elements.refuse(field, pa.binary())
    spans = elements.spans()
    if size is not None:
        sizes = spans.ends - spans.starts
        elements.fail_if(sizes != size, lambda i: f"has {sizes[i]} bytes, {field} takes {size}")
    return spans


def text_of_bytes(elements: Elements, field: str) -> Spans:
    """Of a column of binary, all of it UTF-8."""
    spans = binary(elements, field)
    good = np.empty(len(elements), np.bool_)
    valid_utf8_spans(spans.data, spans.starts, spans.ends, good)
    elements.fail_if(~good, "is not UTF-8")
    return spans


def indices(elements: Elements, names: list[str], field: str) -> Int64s:
    """The place of each text in ``names``; 0 where it is NULL."""
    if not is_text(elements.type):
        raise elements.refuse(field, pa.string())
    found = pc.index_in(elements.array, value_set=pa.array(names, elements.type))
    places: Int64s = found.fill_null(-1).to_numpy().astype(np.int64)

    def why(i: int) -> str:
        return f"{elements.array[i].as_py()!r} is not a symbol of {field}"

    elements.fail_if(places < 0, why)
    return places


def unsigned(elements: Elements, field: str) -> Int64s:
    """Of a column of texts or integers, from 0 to 2**64 - 1: the bits of each."""
    if elements.type in _INTEGERS:
        return integers(elements, field, 0, limits(64)[1])
    if not is_text(elements.type):
        raise elements.refuse(field, pa.string())
    return _parsed(elements, field, 0, (1 << 64) - 1, pa.uint64()).view(np.int64)


def texts_of_integers(elements: Elements, field: str, low: int, high: int) -> Int64s:
    """Of a column of texts, each an integer from ``low`` to ``high`` as it is usually written."""
    return _parsed(elements, field, low, high, pa.int64())


def _parsed(
    elements: Elements, field: str, low: int, high: int, kind: pa.DataType
) -> npt.NDArray[Any]:
    def why(i: int) -> str:
        return f"{elements.array[i].as_py()!r} is not a number in the range of {field}"

    plain = pc.match_substring_regex(elements.array, _INTEGER)
    elements.fail_if(~_true(plain), why)
    numbers = pc.if_else(_true(plain), elements.array, "0").cast(pa.decimal128(20, 0))
    limit = [pa.scalar(Decimal(one), numbers.type) for one in (low, high)]
    inside = pc.and_(pc.greater_equal(numbers, limit[0]), pc.less_equal(numbers, limit[1]))
    elements.fail_if(~_true(inside), why)
    zero = pa.scalar(Decimal(0), numbers.type)
    found: npt.NDArray[Any] = pc.if_else(inside, numbers, zero).cast(kind).to_numpy()
    return found


def _true(found: pa.BooleanArray) -> Bools:
    """NULL is false."""
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)


_HEX = np.full(256, 255, np.uint8)
for _digit in range(16):
    for _letter in f"{_digit:x}{_digit:X}".encode():
        _HEX[_letter] = _digit
_DIGITS = [i for i in range(36) if i not in (8, 13, 18, 23)]


def uuid_bytes(elements: Elements) -> Bytes:
    """Texts as UUIDs of 16 bytes, shape (elements, 16)."""
    return _uuids(elements, text(elements, "uuid"))


def uuid_text(elements: Elements) -> Spans:
    """Texts, each of which is a UUID."""
    spans = text(elements, "uuid")
    _uuids(elements, spans)
    return spans


def _uuids(elements: Elements, spans: Spans) -> Bytes:
    fits = spans.ends - spans.starts == 36
    padded = np.concatenate([spans.data, np.zeros(36, np.uint8)])
    starts = np.where(fits, spans.starts, 0)
    letters = padded[starts[:, None] + np.arange(36)[None, :]]
    digits = _HEX[letters[:, _DIGITS]]
    good = fits & (letters[:, [8, 13, 18, 23]] == ord("-")).all(axis=1) & (digits < 16).all(axis=1)
    elements.fail_if(~good, lambda i: f"{elements.array[i].as_py()!r} is not a UUID")
    found: Bytes = (digits[:, ::2] << 4) | digits[:, 1::2]
    return np.ascontiguousarray(found)
