"""Numba functions for the forms of leaf values that are not the first of their type.

The compiled counterpart of `scalars` and `time_forms`, where the rules are. What a function does
not take is left to Python, also what it could only take with more digits.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.model.columns import FIRST_DAY, LAST_DAY
from reader.payload.json import program
from reader.payload.json.double import EXPONENTS, double_bits
from reader.payload.json.tokens import has_bytes, is_base64, number_end, short_integer, skip_space
from reader.payload.shared_kernels import SlotArrays, put, put_span

CUT_DIGITS = -1
"""Instead of a name's place in ``unknown``: the value at this node lost its last digits."""
_LONGEST = 100
_NAN, _INFINITY, _SIGN = np.int64(0x7FF8 << 48), np.int64(0x7FF0 << 48), np.int64(-(1 << 63))
_DAY = np.int64(86_400)
_BAD = np.int64(-(1 << 62))
# By unit of the column, microseconds and nanoseconds: the units of a second, nanoseconds of a
# unit, and how many days there are in 64 bits.
_UNITS = np.array([[1_000_000, 1000, 106_751_990], [1_000_000_000, 1, 106_750]], np.int64)


@inlined
def _is_word(data: Any, pos: int, end: int, word: Any) -> bool:
    """Whether ``data[pos:end]`` begins with ``word``."""
    if end - pos < len(word):
        return False
    for i in range(len(word)):  # noqa: SIM110
        if data[pos + i] != word[i]:
            return False
    return True


@kernel
def _special(data: Any, pos: int, end: int) -> Any:
    """(bits, end) of NaN, Infinity or -Infinity at ``pos``; the end is -1 for anything else."""
    if _is_word(data, pos, end, b"NaN"):
        return _NAN, np.int64(pos + 3)
    sign = np.int64(0)
    if pos < end and data[pos] == 0x2D:
        sign = _SIGN
        pos += 1
    if _is_word(data, pos, end, b"Infinity"):
        return _INFINITY | sign, np.int64(pos + 8)
    return _NAN, np.int64(-1)


@kernel
def _scaled(number: Any, scale: int) -> Any:
    """(value · 10**scale, whether it is an integer of at most `MOST_DIGITS` digits).

    ``number``: as `number_end` fills it.
    """
    value = np.int64(number[0])
    if number[8] > program.MOST_DIGITS:
        return value, False
    if value == 0:
        return value, True
    shift = scale + number[4] - number[3]
    if shift > 0:
        if number[8] + shift > program.MOST_DIGITS:
            return value, False
        for _ in range(shift):
            value *= 10
    for _ in range(min(-shift, program.MOST_DIGITS + 1)):
        if value % 10:
            return value, False
        value //= 10
    return (-value if number[1] else value), True


@kernel
def _long(data: Any, pos: int, end: int) -> Any:
    """(value, whether it fits) of an integer literal of 19 digits."""
    negative = data[pos] == 0x2D
    if negative:
        pos += 1
    if end - pos != program.MOST_DIGITS + 1:
        return np.int64(0), False
    value = np.uint64(0)
    for i in range(pos, end):
        if data[i] < 0x30 or data[i] > 0x39:
            return np.int64(0), False
        value = value * np.uint64(10) + np.uint64(data[i] - 0x30)
    if value >= np.uint64(1 << 63):
        return np.int64(0), False
    return (-np.int64(value) if negative else np.int64(value)), True


@kernel
def _put_number(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    number: Any,
) -> bool:  # fmt: skip
    """Write the number ``data[pos:end]``, which is in ``number``, if ``node`` is of numbers."""
    kind, slot = nodes[node, 0], nodes[node, 1]
    if end - pos > _LONGEST:
        return False
    if kind == program.DOUBLE:
        # Only where it is known to be the nearest double, and to print as the literal.
        power = number[4] - number[3]
        if number[6] > 17 or number[8] > program.MOST_DIGITS or abs(power) > EXPONENTS:
            return False
        bits = double_bits(number[0], power, number[6] > 15)
        if bits < 0:
            return False
        put(memory, slot, element, bits | (number[1] << 63))
        return True
    if kind == program.INTEGER:
        value, fits = _scaled(number, 0)
        if not fits and number[2] == program.MOST_DIGITS + 1:
            value, fits = _long(data, pos, end)
        if fits:
            put(memory, slot, element, value)
        return bool(fits)
    if kind == program.DECIMAL:
        value, fits = _scaled(number, nodes[node, 4])
        limit = 10 ** min(nodes[node, 3], program.MOST_DIGITS)
        if not fits or value >= limit or value <= -limit:
            return False
        put_span(memory, slot, element, value, -1 if value < 0 else 0)
        return True
    return False


@kernel
def other_number(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    number: Any, note: Any,
) -> int:  # fmt: skip
    """Read the number at ``pos`` as ``node`` wants it. The position after it, or -1: deferred."""
    kind, slot, form = nodes[node, 0], nodes[node, 1], nodes[node, 5]
    close = number_end(data, pos, end, number)
    if close < 0:
        return int(other_word(data, pos, end, nodes, node, element, memory))
    if kind == program.ANY:
        return int(close)
    if kind == program.JSON and nodes[node, 3] == 0:
        put_span(memory, slot, element, pos, close - pos)
        return int(close)
    if kind == program.STRING and form:
        integer = number[3] == 0 and number[5] == 0
        if form != program.FRACTIONS and (
            not integer or (data[pos] == 0x2D and data[pos + 1] == 0x30)
        ):
            return -1
        put_span(memory, slot, element, pos, close - pos)
        return int(close)
    if kind == program.BOOLEAN and close - pos == 1 and data[pos] <= 0x31:
        put(memory, slot, element, np.int64(data[pos] - 0x30))
        return int(close)
    if kind == program.INTEGER and form & 7 > program.CHARACTER:
        if form & 7 != program.INSTANT or close - pos > _LONGEST:
            return -1
        if number[6] == 0 and number[8] == 0:
            put(memory, slot, element, np.int64(0))
            return int(close)
        return int(close) if _seconds(data, pos, close, nodes, node, element, memory, number, note) else -1  # fmt: skip  # noqa: E501
    return int(close) if _put_number(data, pos, close, nodes, node, element, memory, number) else -1


@kernel
def other_word(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
) -> int:  # fmt: skip
    """Read a bare word at ``pos`` as ``node`` wants it. The position after it, or -1: deferred."""
    kind, slot = nodes[node, 0], nodes[node, 1]
    if kind in (program.DOUBLE, program.ANY) and node != program.TEXT_PART:
        bits, close = _special(data, pos, end)
        if close >= 0 and kind == program.DOUBLE:
            put(memory, slot, element, bits)
        return int(close)
    if kind == program.JSON and nodes[node, 3] == 0:
        size = 0
        if has_bytes(data, pos, end, 0x74, 0x72, 0x75, 0x65):
            size = 4
        elif data[pos] == 0x66 and has_bytes(data, pos + 1, end, 0x61, 0x6C, 0x73, 0x65):
            size = 5
        if size:
            put_span(memory, slot, element, pos, size)
            return int(pos + size)
    return -1


@kernel
def other_text(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    number: Any, note: Any,
) -> bool:  # fmt: skip
    """Write the string ``data[pos:end]``, which has no escapes, as ``node`` wants it.

    False: it is deferred.
    """
    kind, slot, form = nodes[node, 0], nodes[node, 1], nodes[node, 5]
    if kind == program.STRING:
        put_span(memory, slot, element, pos, end - pos)
        return True
    if kind == program.JSON and nodes[node, 3] == 0:
        put_span(memory, slot, element, pos - 1, end - pos + 2)
        return True
    if pos >= end:
        return False
    if kind == program.BOOLEAN:
        return bool(_boolean(data, pos, end, slot, element, memory))
    if kind == program.INTEGER and form & 7 > program.CHARACTER:
        return bool(_time_of_text(data, pos, end, nodes, node, element, memory, note))
    if kind == program.INTEGER and form == program.CHARACTER:
        if end - pos == 1:
            put(memory, slot, element, np.int64(data[pos]))
        return bool(end - pos == 1)
    if kind == program.DOUBLE:
        bits, close = _special(data, pos, end)
        if close == end:
            put(memory, slot, element, bits)
            return True
    if kind == program.DECIMAL and (form or is_base64(data, pos, end)):
        return False
    if kind not in (program.DOUBLE, program.INTEGER, program.DECIMAL):
        return False
    if number_end(data, pos, end, number) != end:
        return False
    return bool(_put_number(data, pos, end, nodes, node, element, memory, number))


@kernel
def _boolean(
    data: Any, pos: int, end: int, slot: int, element: int, memory: SlotArrays
) -> bool:  # fmt: skip
    size = end - pos
    yes = size == 4 and (
        _is_word(data, pos, end, b"true") or _is_word(data, pos, end, b"True")
        or _is_word(data, pos, end, b"TRUE")
    )  # fmt: skip
    no = size == 5 and (
        _is_word(data, pos, end, b"false") or _is_word(data, pos, end, b"False")
        or _is_word(data, pos, end, b"FALSE")
    )  # fmt: skip
    if yes or no:
        put(memory, slot, element, np.int64(yes))
    return bool(yes or no)


@kernel
def _days(year: int, month: int, day: int) -> Any:
    """Days since 1970-01-01, or _BAD if there is no such day."""
    if month < 1 or month > 12 or day < 1:
        return _BAD
    last = 30 + (month + (month >> 3)) % 2
    if month == 2:
        last = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > last:
        return _BAD
    year -= month < 3
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days = 365 * year + year // 4 - year // 100 + year // 400 + of_year - 719_468
    return np.int64(days)


@kernel
def _put_time(
    days: int, seconds: int, nanos: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    note: Any,
) -> bool:  # fmt: skip
    """Write a date, or the time ``seconds`` and ``nanos`` after that day began."""
    form = nodes[node, 5]
    # An offset may lead into another day.
    day = days + seconds // _DAY
    second = seconds % _DAY
    if form in (program.DATE, program.INSTANT) and (day < FIRST_DAY or day > LAST_DAY):
        return False
    if form == program.DATE:
        put(memory, nodes[node, 1], element, day)
        return True
    a_second, unit, most = _UNITS[form >> 3]
    if day < -most or day > most:
        return False
    if nanos % unit and note[0] < 0:
        note[0], note[1], note[2] = node, CUT_DIGITS, CUT_DIGITS
    value = (day * _DAY + second) * a_second + nanos // unit
    put(memory, nodes[node, 1], element, value)
    return True


@kernel
def _seconds(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    number: Any, note: Any,
) -> bool:  # fmt: skip
    """Write the seconds with nine digits after the point at ``data[pos:end]``."""
    if number[3] != 9 or number[5] or number[2] > 12:
        return False
    if number[1]:
        pos += 1
    seconds = np.int64(0)
    for i in range(pos, end - 10):
        seconds = seconds * 10 + np.int64(data[i] - 0x30)
    nanos = np.int64(0)
    for i in range(end - 9, end):
        nanos = nanos * 10 + np.int64(data[i] - 0x30)
    if number[1]:
        if nanos:
            return False
        seconds = -seconds
    days = seconds // _DAY
    return bool(
        _put_time(days, seconds - days * _DAY, nanos, nodes, node, element, memory, note)
    )  # fmt: skip


@kernel
def time_of_numbers(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    number: Any, note: Any,
) -> int:  # fmt: skip
    """Read the array at ``pos`` as a date or time. The position after it, or -1: deferred."""
    form = nodes[node, 5] & 7
    for i in range(len(number)):
        number[i] = 0
    count = 0
    pos += 1
    while True:
        pos = skip_space(data, pos, end)
        if pos >= end or count == 7:
            return -1
        value, close = short_integer(data, pos, end)
        if close < 0 or value >= 1_000_000_000 or value <= -1_000_000_000:
            return -1
        number[count] = value
        count += 1
        pos = skip_space(data, close, end)
        if pos >= end:
            return -1
        pos += 1
        if data[pos - 1] == 0x5D:
            break
        if data[pos - 1] != 0x2C:
            return -1
    if form == program.DATE and count != 3:
        return -1
    if form == program.TIME and (count < 2 or count > 4):
        return -1
    if form == program.LOCAL and count < 5:
        return -1
    if form not in (program.DATE, program.TIME, program.LOCAL):
        return -1
    days = np.int64(0)
    first = 0
    if form != program.TIME:
        days = _days(number[0], number[1], number[2])
        if days == _BAD:
            return -1
        first = 3
    seconds = _of_day(number[first], number[first + 1], number[first + 2])
    nanos = number[first + 3]
    if seconds < 0 or nanos < 0 or 0 < nanos < 1000:
        return -1
    if not _put_time(days, seconds, nanos, nodes, node, element, memory, note):
        return -1
    return int(pos)


@inlined
def _of_day(hour: int, minute: int, second: int) -> Any:
    """Seconds since midnight, or -1 if there is no such time."""
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or second < 0 or second > 59:
        return np.int64(-1)
    return np.int64((hour * 60 + minute) * 60 + second)


@inlined
def _two(data: Any, pos: int, end: int) -> Any:
    """The number of two digits at ``pos``, or -1."""
    if end - pos < 2:
        return np.int64(-1)
    high, low = np.int64(data[pos]) - 0x30, np.int64(data[pos + 1]) - 0x30
    if high < 0 or high > 9 or low < 0 or low > 9:
        return np.int64(-1)
    return high * 10 + low


@kernel
def _time_of_text(
    data: Any, pos: int, end: int, nodes: Any, node: int, element: int, memory: SlotArrays,
    note: Any,
) -> bool:  # fmt: skip
    """Write the date or time in ISO 8601 at ``data[pos:end]``."""
    form = nodes[node, 5] & 7
    days, seconds, nanos = np.int64(0), np.int64(0), np.int64(0)
    if form != program.TIME:
        sign = data[pos]
        if sign == 0x2D or sign == 0x2B:
            pos += 1
        start = pos
        year = np.int64(0)
        while pos < end and pos - start < 10 and 0x30 <= data[pos] <= 0x39:
            year = year * 10 + np.int64(data[pos] - 0x30)
            pos += 1
        signed = sign == 0x2D or sign == 0x2B
        digits = pos - start
        if digits < 4 or digits > 9 or (digits > 4 and not signed):
            return False
        if end - pos < 6 or data[pos] != 0x2D or data[pos + 3] != 0x2D:
            return False
        if sign == 0x2D:
            year = -year
        days = _days(year, _two(data, pos + 1, end), _two(data, pos + 4, end))
        if days == _BAD:
            return False
        pos += 6
        if form != program.DATE:
            if pos >= end or data[pos] not in (0x54, 0x74, 0x20):
                return False
            pos += 1
    if form != program.DATE:
        hour, minute, second = _two(data, pos, end), _two(data, pos + 3, end), np.int64(0)
        if hour < 0 or minute < 0 or data[pos + 2] != 0x3A:
            return False
        pos += 5
        if pos < end and data[pos] == 0x3A:
            second = _two(data, pos + 1, end)
            if second < 0:
                return False
            pos += 3
            if pos < end and data[pos] == 0x2E:
                pos += 1
                start = pos
                while pos < end and 0x30 <= data[pos] <= 0x39:
                    if pos - start == 9:
                        return False
                    nanos = nanos * 10 + np.int64(data[pos] - 0x30)
                    pos += 1
                if pos == start:
                    return False
                for _ in range(9 - (pos - start)):
                    nanos *= 10
        seconds = _of_day(hour, minute, second)
        if seconds < 0:
            return False
    if form == program.INSTANT:
        if pos >= end:
            return False
        sign = data[pos]
        pos += 1
        if sign == 0x2B or sign == 0x2D:
            hour, minute = _two(data, pos, end), np.int64(0)
            pos += 2
            if pos < end:
                if data[pos] == 0x3A:
                    pos += 1
                minute = _two(data, pos, end)
                pos += 2
            if hour < 0 or hour > 23 or minute < 0 or minute > 59:
                return False
            shift = (hour * 60 + minute) * 60
            seconds += shift if sign == 0x2D else -shift
        elif sign != 0x5A and sign != 0x7A:
            return False
    if pos != end:
        return False
    return bool(_put_time(days, seconds, nanos, nodes, node, element, memory, note))
