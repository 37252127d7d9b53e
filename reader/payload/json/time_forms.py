"""Dates and times that are not the integers of their logical types, in Python: the reference.

Jackson writes ``java.time`` as numbers and arrays, others as ISO 8601. A form is read only if no
writer means another value by it, so these are not:

- A number with a fraction under an instant is Jackson's seconds only with nine digits after the
  point. With fewer digits it may as well be milliseconds that were computed as a double.
- Jackson writes the negative ``-1 s + 999,999,999 ns`` as ``-1.999999999``. Whether such a number
  is that, or what it says, cannot be known. Whole seconds are certain.
- The last number of an array is nanoseconds, or milliseconds if Jackson is configured so: from
  1 to 999 it may be either.
- Text without an offset is no instant, and text with an offset is no local time.
- A number in quotes may be a compact date (``"20231114"``) or time (``"1230"``).
"""

import re
from dataclasses import dataclass
from typing import Any

from reader.payload.avro_schema import Primitive
from reader.payload.json.numbers import Number, exact_unscaled

CUT = "has nanoseconds, of which its column has no room for the last three digits"

_DATE = r"(?:[0-9]{4}|[+-][0-9]{4,9})-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_OFFSET = r"[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?"
_TEXT = {
    "date": re.compile(f"({_DATE})()()"),
    "time": re.compile(f"()({_TIME})()"),
    "local": re.compile(f"({_DATE})[Tt ]({_TIME})()"),
    "instant": re.compile(f"({_DATE})[Tt ]({_TIME})({_OFFSET})"),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,8})")
_SECONDS = re.compile(r"-?[0-9]{1,12}\.[0-9]{9}")
_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND
_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@dataclass(frozen=True, slots=True)
class Cut:
    """The value of a column whose unit is too coarse for the last digits of what was written."""

    value: int


@dataclass(frozen=True, slots=True)
class TimeForm:
    """What a logical type's values are, and in which unit its column counts.

    ``kind``: "date", "time", "instant" or "local". ``unit``: nanoseconds of one in the column; of a
    date a day.
    """

    kind: str
    unit: int

    def read(self, value: Any) -> int | Cut | None:
        """Return the column's value, or None if ``value`` is not certain to be one."""
        nanos = None
        if type(value) is list:
            nanos = self._of_numbers(value)
        elif type(value) is str:
            nanos = self._of_text(value)
        elif type(value) is Number and self.kind == "instant":
            nanos = _seconds(value.text)
        if nanos is None:
            return None
        found, rest = divmod(nanos, self.unit)
        if not -(1 << self._bits - 1) <= found < 1 << self._bits - 1:
            return None
        return Cut(found) if rest else found

    @property
    def _bits(self) -> int:
        return 32 if self.kind == "date" else 64

    def _of_numbers(self, items: list[Any]) -> int | None:
        """``[2023,11,14]``, ``[22,13,20,123000000]``, or both in one."""
        # The shortest time is [hour, minute].
        least, most = {"date": (3, 3), "time": (2, 4), "local": (5, 7)}.get(self.kind, (0, 0))
        if not least <= len(items) <= most:
            return None
        if any(type(item) is not Number or not _INTEGER.fullmatch(item.text) for item in items):
            return None
        numbers = [int(item.text) for item in items]
        days = 0
        if self.kind != "time":
            found = _days(*numbers[:3])
            if found is None:
                return None
            days, numbers = found, numbers[3:]
        if self.kind == "date":
            return days * _DAY
        hour, minute, second, nano = [*numbers, 0, 0][:4]
        if 0 < nano < 1000 or not 0 <= nano < _SECOND:
            return None
        of_day = _of_day(hour, minute, second)
        return None if of_day is None else days * _DAY + of_day + nano

    def _of_text(self, text: str) -> int | None:
        """ISO 8601 in its extended form."""
        found = _TEXT[self.kind].fullmatch(text)
        if found is None:
            return None
        date, time, offset = found.groups()
        nanos = 0
        if date:
            days = _days(int(date[:-6]), int(date[-5:-3]), int(date[-2:]))
            if days is None:
                return None
            nanos = days * _DAY
        if time:
            of_day = _of_day(int(time[:2]), int(time[3:5]), int(time[6:8] or 0))
            if of_day is None:
                return None
            nanos += of_day + int(time[9:].ljust(9, "0"))
        if offset not in ("", "Z", "z"):
            hours, minutes = int(offset[1:3]), int(offset[-2:]) if len(offset) > 3 else 0
            if hours > 23 or minutes > 59:
                return None
            shift = (hours * 60 + minutes) * 60 * _SECOND
            nanos -= -shift if offset[0] == "-" else shift
        return nanos


_FORMS = {
    "date": TimeForm("date", _DAY),
    "time-millis": TimeForm("time", 1000),
    "time-micros": TimeForm("time", 1000),
    "timestamp-millis": TimeForm("instant", 1000),
    "timestamp-micros": TimeForm("instant", 1000),
    "timestamp-nanos": TimeForm("instant", 1),
    "local-timestamp-millis": TimeForm("local", 1000),
    "local-timestamp-micros": TimeForm("local", 1000),
    "local-timestamp-nanos": TimeForm("local", 1),
}


def time_form(node: Primitive) -> TimeForm | None:
    """Return the form of a date's or time's values, or None if ``node`` is neither."""
    return _FORMS.get(node.logical or "")


def _seconds(text: str) -> int | None:
    """Return the nanoseconds that Jackson writes as decimal seconds; zero has any form."""
    if exact_unscaled(text, 1, 0) == 0:
        return 0
    if _SECONDS.fullmatch(text) is None:
        return None
    if text[0] == "-" and text[-9:] != "000000000":
        return None
    return int(text.replace(".", ""))


def _days(year: int, month: int, day: int) -> int | None:
    """Return the days since 1970-01-01 in the proleptic Gregorian calendar."""
    if not 1 <= month <= 12 or not 1 <= day <= _MONTHS[month - 1]:
        return None
    if month == 2 and day == 29 and (year % 4 != 0 or (year % 100 == 0 and year % 400 != 0)):
        return None
    # Years begin in March, so that a leap day is the last of its year.
    year -= month < 3
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + of_year - 719_468


def _of_day(hour: int, minute: int, second: int) -> int | None:
    """Return the nanoseconds since midnight."""
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return None
    return ((hour * 60 + minute) * 60 + second) * _SECOND
