"""Pulsar's primitive schemas: one value of fixed length, or text, or bytes.

Numbers are big-endian, as the classes of ``org.apache.pulsar.client.impl.schema`` write them:
DATE, TIME and TIMESTAMP are milliseconds (int64), INSTANT is seconds (int64) and nanoseconds
(int32), LOCAL_DATE days (int64), LOCAL_TIME nanoseconds of the day (int64), LOCAL_DATE_TIME days
and nanoseconds of the day (int64 each).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.errors import UnsupportedError
from reader.kernels.byte_spans import ByteSpans
from reader.model.columns import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS, TIMESTAMP
from reader.payload.column_types import BINARY, BOOLEAN, DOUBLE, NUMBER, TEXT, Leaf

Values = npt.NDArray[Any]
DAY_NS = 86_400_000_000_000
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class PrimitiveType:
    """``convert`` maps (n, size) uint8 to n values and which of them are representable.

    ``size``: bytes of a value; 0: any number, taken as they are.
    """

    leaf: Leaf
    size: int = 0
    convert: Callable[[Values], tuple[Values, Values]] | None = None


def _all(values: Values) -> tuple[Values, Values]:
    return values, np.ones(len(values), np.bool_)


def _read(raw: Values, dtype: str, at: int = 0) -> Values:
    size = np.dtype(dtype).itemsize
    part: Values = np.ascontiguousarray(raw[:, at : at + size]).view(dtype)[:, 0]
    return part


def _integer(dtype: str) -> Callable[[Values], tuple[Values, Values]]:
    return lambda raw: _all(_read(raw, dtype).astype(np.int64))


def _float(dtype: str) -> Callable[[Values], tuple[Values, Values]]:
    return lambda raw: _all(_read(raw, dtype).astype(np.float64))


def _boolean(raw: Values) -> tuple[Values, Values]:
    return raw[:, 0] == 1, raw[:, 0] <= 1


def _millis(raw: Values) -> tuple[Values, Values]:
    return _times(_read(raw, ">i8").astype(np.int64), 1000)


def _instant_millis(raw: Values) -> tuple[Values, Values]:
    """Times of the years 1 to 9999, in microseconds."""
    values, good = _times(_read(raw, ">i8").astype(np.int64), 1000)
    return values, good & (values >= FIRST_MICROS) & (values <= LAST_MICROS)


def _times(values: Values, factor: int) -> tuple[Values, Values]:
    limit = _INT64.max // factor
    good = (values >= -limit) & (values <= limit)
    return np.where(good, values, 0) * factor, good


def _instant(raw: Values) -> tuple[Values, Values]:
    seconds, nanos = _read(raw, ">i8").astype(np.int64), _read(raw, ">i4", 8).astype(np.int64)
    return _sum(seconds, 1_000_000_000, nanos)


def _local_date(raw: Values) -> tuple[Values, Values]:
    days = _read(raw, ">i8").astype(np.int64)
    good = (days >= FIRST_DAY) & (days <= LAST_DAY)
    return days.astype(np.int32), good


def _local_time(raw: Values) -> tuple[Values, Values]:
    nanos = _read(raw, ">i8").astype(np.int64)
    return nanos, (nanos >= 0) & (nanos < DAY_NS)


def _local_date_time(raw: Values) -> tuple[Values, Values]:
    days, nanos = _read(raw, ">i8").astype(np.int64), _read(raw, ">i8", 8).astype(np.int64)
    return _sum(days, DAY_NS, nanos)


def _sum(whole: Values, factor: int, part: Values) -> tuple[Values, Values]:
    """``whole * factor + part`` where ``part`` is in its range and the sum is an int64."""
    limit = _INT64.max // factor - 1
    good = (part >= 0) & (part < factor) & (whole >= -limit) & (whole <= limit)
    return np.where(good, whole, 0) * factor + np.where(good, part, 0), good


_INSTANT_MS = Leaf(TIMESTAMP, "timestamp")

PRIMITIVES: Mapping[str, PrimitiveType] = {
    "BYTES": PrimitiveType(BINARY),
    "STRING": PrimitiveType(TEXT),
    "BOOLEAN": PrimitiveType(BOOLEAN, 1, _boolean),
    "INT8": PrimitiveType(NUMBER, 1, _integer(">i1")),
    "INT16": PrimitiveType(NUMBER, 2, _integer(">i2")),
    "INT32": PrimitiveType(NUMBER, 4, _integer(">i4")),
    "INT64": PrimitiveType(NUMBER, 8, _integer(">i8")),
    "FLOAT": PrimitiveType(DOUBLE, 4, _float(">f4")),
    "DOUBLE": PrimitiveType(DOUBLE, 8, _float(">f8")),
    "DATE": PrimitiveType(_INSTANT_MS, 8, _instant_millis),
    "TIME": PrimitiveType(Leaf(pa.int64(), "java.sql.Time in us"), 8, _millis),
    "TIMESTAMP": PrimitiveType(_INSTANT_MS, 8, _instant_millis),
    "INSTANT": PrimitiveType(Leaf(pa.int64(), "timestamp in ns"), 12, _instant),
    "LOCAL_DATE": PrimitiveType(Leaf(pa.date32(), "date"), 8, _local_date),
    "LOCAL_TIME": PrimitiveType(Leaf(pa.int64(), "time of day in ns"), 8, _local_time),
    "LOCAL_DATE_TIME": PrimitiveType(
        Leaf(pa.int64(), "local timestamp in ns"), 16, _local_date_time
    ),
}


def decode_primitive(kind: str, spans: ByteSpans) -> tuple[pa.Array, Mapping[int, str]]:
    """Values of ``spans`` as the Arrow type of ``PRIMITIVES[kind]``, and the problem rows.

    What is not present is NULL without a problem.
    """
    primitive, count = PRIMITIVES[kind], len(spans.starts)
    raw, present = spans.data, spans.present
    if primitive.convert is None:
        if kind == "BYTES":
            return _binary(spans), {}
        from reader.kernels.utf8 import valid_utf8_spans  # heavy, and not for schemas alone

        valid = np.empty(count, np.bool_)
        valid_utf8_spans(raw, spans.starts, spans.ends, valid)
        problems = {int(i): "not UTF-8" for i in np.flatnonzero(present & ~valid)}
        text = _binary(ByteSpans(raw, spans.starts, spans.ends, present & valid))
        return text.view(pa.string()), problems
    lengths = spans.ends - spans.starts
    fits = present & (lengths == primitive.size)
    problems = {
        int(i): f"{kind} takes {primitive.size} bytes, not {lengths[i]}"
        for i in np.flatnonzero(present & ~fits)
    }
    rows = np.flatnonzero(fits)
    bytes_of = raw[spans.starts[rows][:, None] + np.arange(primitive.size)[None, :]]
    values, good = primitive.convert(bytes_of)
    problems |= {int(i): f"value out of range for {kind}" for i in rows[~good]}
    full = np.zeros(count, values.dtype)
    full[rows] = values
    null = np.ones(count, np.bool_)
    null[rows] = ~good
    return pa.array(full, mask=null).cast(primitive.leaf.type), problems


def _binary(spans: ByteSpans) -> pa.BinaryArray:
    """A copy of the bytes; what is not present is NULL.

    Raises UnsupportedError where they are more than 2 GiB.
    """
    from reader.payload.shared_kernels import copy_spans  # heavy, and not for schemas alone

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
