"""Dates and times as ISO 8601 text, a whole column at once.

A year beyond 9999 or before 0 has a sign, as Java's ``DateTimeFormatter`` reads it.
"""

from typing import Any

import numpy as np

from reader.encode.payload.row_writer.blocks import Spans
from reader.kernels.array_types import Bytes, Int64s
from reader.kernels.compiling import inlined, kernel

_TEMPLATES = {
    "date": b"0000-00-00",
    "time": b"00:00:00.000000",
    "timestamp": b"0000-00-00T00:00:00.000000Z",
    "local": b"0000-00-00T00:00:00.000000",
}


def iso_text(value: int, logical: str) -> str:
    """Return the text of one value. Raises ValueError if the column cannot hold it."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{logical} has a range, which {value} is out of")
    spans = iso_texts(np.array([value], np.int64), logical)
    return spans.data[spans.starts[0] : spans.ends[0]].tobytes().decode()


def iso_texts(values: Int64s, logical: str) -> Spans:
    """Return the texts of values of the Avro type ``logical``, in the units of its column."""
    template, fraction = _TEMPLATES[logical.split("-")[0]], 6
    if logical.endswith("-nanos"):
        template, fraction = template.replace(b".000000", b".000000000"), 9
    size, count = len(template), len(values)
    letters = np.tile(np.frombuffer(template, np.uint8), count)
    years = np.zeros(count, np.int64)
    dated = not logical.startswith("time-")
    _write(letters, size, np.ascontiguousarray(values), years, dated, fraction * (size > 10))
    offsets = np.arange(count + 1, dtype=np.int64) * size
    spans = Spans(letters, offsets[:-1].copy(), offsets[1:].copy())
    return _with_far_years(spans, letters.reshape(count, size), years)


@inlined
def _put(letters: Any, at: int, digits: int, number: int) -> None:
    for place in range(at + digits - 1, at - 1, -1):
        letters[place] = 0x30 + number % 10
        number //= 10


@kernel
def _write(letters: Any, size: int, values: Any, years: Any, dated: bool, fraction: int) -> None:
    """Write the digits of each text, of a year the last four. ``fraction`` 0: dates alone."""
    second = 1
    for _ in range(fraction):
        second *= 10
    for i in range(len(values)):
        at, days = i * size, values[i]
        if fraction:
            of_day = days % (86_400 * second)
            days //= 86_400 * second
            start = at + 11 if dated else at
            _put(letters, start, 2, of_day // (3600 * second))
            _put(letters, start + 3, 2, of_day // (60 * second) % 60)
            _put(letters, start + 6, 2, of_day // second % 60)
            _put(letters, start + 9, fraction, of_day % second)
        if dated:
            # Years begin in March, so that a leap day is the last of its year.
            days += 719_468
            era = days // 146_097
            of_era = days - era * 146_097
            year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
            of_year = of_era - (365 * year + year // 4 - year // 100)
            month = (5 * of_year + 2) // 153
            _put(letters, at + 8, 2, of_year - (153 * month + 2) // 5 + 1)
            month = month + 3 if month < 10 else month - 9
            _put(letters, at + 5, 2, month)
            years[i] = era * 400 + year + (1 if month <= 2 else 0)
            _put(letters, at, 4, years[i] % 10_000)


def _with_far_years(spans: Spans, letters: Bytes, years: Int64s) -> Spans:
    """Return the spans, with texts of their own for years that four digits cannot hold."""
    far = np.flatnonzero((years < 0) | (years > 9999))
    if not far.size:
        return spans
    data, end = [spans.data], len(spans.data)
    for i in far.tolist():
        text = f"{int(years[i]):+05d}".encode() + letters[i, 4:].tobytes()
        data.append(np.frombuffer(text, np.uint8))
        spans.starts[i], spans.ends[i] = end, end + len(text)
        end += len(text)
    return Spans(np.concatenate(data), spans.starts, spans.ends)
