"""Values of primitive schemas as the Java client takes them, and the columns that come of them."""

import datetime as dt
from collections.abc import Callable
from typing import Any


def _identity(value: Any) -> Any:
    return value


def _milliseconds(value: int) -> dt.datetime:
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=value)


def _time_nanos(text: str) -> int:
    clock, _, fraction = text.partition(".")
    hours, minutes, *seconds = map(int, clock.split(":"))
    whole = hours * 3600 + minutes * 60 + sum(seconds)
    return whole * 10**9 + int(fraction.ljust(9, "0"))


def _nanos(text: str) -> int:
    day, _, clock = text.removesuffix("Z").partition("T")
    days = (dt.date.fromisoformat(day) - dt.date(1970, 1, 1)).days
    return days * 86_400 * 10**9 + _time_nanos(clock)


PRIMITIVES: list[tuple[str, list[Any], Callable[[Any], Any]]] = [
    ("STRING", ["", "a", "Grüße \U0001f680", "line\nbreak", "x" * 10_000], _identity),
    ("BOOLEAN", [True, False], _identity),
    ("INT8", [0, 1, -1, 127, -128], _identity),
    ("INT16", [0, -1, 2**15 - 1, -(2**15)], _identity),
    ("INT32", [0, -1, 2**31 - 1, -(2**31)], _identity),
    ("INT64", [0, -1, 2**63 - 1, -(2**63)], _identity),
    ("FLOAT", [0.0, -0.0, 1.5, 0.1, "NaN", "Infinity", "-Infinity"], float),
    ("DOUBLE", [0.0, -0.0, 1.5, 0.1, 5e-324, 1e308, "NaN", "Infinity", "-Infinity"], float),
    ("DATE", [0, 86_400_000, 1_700_000_000_123, -1], _milliseconds),
    ("TIMESTAMP", [0, 1_700_000_000_123, -1], _milliseconds),
    ("TIME", [0, 1, 86_399_999], lambda value: value * 1000),
    (
        "INSTANT",
        [
            "1970-01-01T00:00:00Z",
            "2023-11-14T22:13:20.123456789Z",
            "1969-12-31T23:59:59.999999999Z",
        ],
        _nanos,
    ),
    ("LOCAL_DATE", ["1970-01-01", "2024-02-29", "1582-10-04"], dt.date.fromisoformat),
    ("LOCAL_TIME", ["00:00", "23:59:59.999999999", "10:11:12"], _time_nanos),
    (
        "LOCAL_DATE_TIME",
        ["1970-01-01T00:00", "2023-11-14T22:13:20.123456789", "1969-12-31T23:59:59.999999999"],
        _nanos,
    ),
]
