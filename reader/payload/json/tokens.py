"""Tokens of JSON (RFC 8259), found by numba functions over ``data[pos:end]``.

None reads outside of its range. What they do not accept is left to Python.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import HIGH_BITS, first_bit, load64, same16
from reader.kernels.utf8 import valid_utf8
from reader.payload.json.program import MOST_DIGITS
from reader.payload.shared_kernels import plain_end

_QUOTE, _BACKSLASH = 0x22, 0x5C

PRECISE_DIGITS = 15
"""A double keeps so many whatever they are."""
_TENS = np.array([10**n for n in range(PRECISE_DIGITS + 1)], np.int64)
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)  # 10 and more then have the high bit
_PAIRS = np.uint64(0x000000FF000000FF)
_FIRST_PAIRS = np.uint64(100 + (1_000_000 << 32))
_SECOND_PAIRS = np.uint64(1 + (10_000 << 32))


@inlined
def skip_space(data: Any, pos: int, end: int) -> int:
    """The first position that is not white space."""
    while pos < end and data[pos] <= 0x20:
        if data[pos] not in (0x20, 0x0A, 0x0D, 0x09):
            break
        pos += 1
    return pos


@inlined
def is_name(data: Any, pos: int, end: int, names: Any, start: int, size: int) -> bool:
    """Whether ``names[start : start + size]`` is at ``pos``; 16 more bytes of names follow."""
    if size > end - pos:
        return False
    i = 0
    while i < size and len(data) - pos - i >= 16:
        wanted = 0xFFFF if size - i >= 16 else (1 << (size - i)) - 1
        if same16(data, pos + i, names, start + i) & wanted != wanted:
            return False
        i += 16
    while i < size:
        if data[pos + i] != names[start + i]:
            return False
        i += 1
    return True


@inlined
def string_end(data: Any, pos: int, end: int) -> Any:
    """(end of the string that starts after the quote at ``pos``, whether it has escapes).

    The end is -1 for anything that is not a string in UTF-8; escapes are not checked.
    """
    i = plain_end(data, pos + 1, end)
    if i < end and data[i] == _QUOTE:
        return i, False
    return _string_end(data, pos, end)


@kernel
def _string_end(data: Any, pos: int, end: int) -> Any:
    i = plain_end(data, pos + 1, end)
    escapes = False
    high = False
    while i < end:
        byte = data[i]
        if byte == _QUOTE:
            if high and not valid_utf8(data, pos + 1, i):
                return np.int64(-1), False
            return i, escapes
        if byte < 0x20:
            return np.int64(-1), False
        if byte >= 0x80:
            high = True
        elif byte == _BACKSLASH:
            escapes = True
            i += 1
        i = plain_end(data, i + 1, end)
    return np.int64(-1), False


@inlined
def _digits(data: Any, pos: int, end: int) -> Any:
    """(value, end) of the digits at ``pos``; of more than `MOST_DIGITS` the value is not theirs."""
    value = np.int64(0)
    while len(data) - pos >= 8:
        # Eight at a time, each in a byte of its own, the first in the lowest.
        word = load64(data, pos) ^ _ZEROS
        others = ((word + _ABOVE_NINE) | word) & HIGH_BITS
        count = min(first_bit(np.int64(others)) >> 3, end - pos)
        if count <= 0:
            return value, np.int64(pos)
        word <<= np.uint64(64 - 8 * count)
        # Pairs, then fours, then all eight.
        word = word * np.uint64(10) + (word >> np.uint64(8))
        high, low = word & _PAIRS, (word >> np.uint64(16)) & _PAIRS
        eight = (high * _FIRST_PAIRS + low * _SECOND_PAIRS) >> np.uint64(32)
        value = value * _TENS[count] + np.int64(eight)
        pos += count
        if count < 8:
            return value, np.int64(pos)
    while pos < end and 0x30 <= data[pos] <= 0x39:
        value = value * 10 + np.int64(data[pos] - 0x30)
        pos += 1
    return value, np.int64(pos)


@inlined
def short_integer(data: Any, pos: int, end: int) -> Any:
    """(value, end) of the integer of at most `MOST_DIGITS` digits at ``pos``.

    The end is -1 for any other number, and for anything else.
    """
    negative = data[pos] == 0x2D
    if negative:
        pos += 1
    value, close = _digits(data, pos, end)
    digits = close - pos
    if digits == 0 or digits > MOST_DIGITS or (digits > 1 and data[pos] == 0x30):
        return value, np.int64(-1)
    if close < end and data[close] in (0x2E, 0x45, 0x65):
        return value, np.int64(-1)
    return (-value if negative else value), np.int64(close)


@inlined
def short_decimal(data: Any, pos: int, end: int) -> Any:
    """(digits as one integer, how many after the point, end) of the number at ``pos``, unsigned.

    The end is -1 for one of more than `PRECISE_DIGITS`, or with an exponent, and for anything else.
    """
    if data[pos] == 0x2D:
        pos += 1
    value, close = _digits(data, pos, end)
    digits = close - pos
    wrong = digits == 0 or (digits > 1 and data[pos] == 0x30)
    places = np.int64(0)
    if close < end and data[close] == 0x2E:
        begin = close + 1
        after, close = _digits(data, begin, end)
        places = close - begin
        wrong = wrong or places == 0
        if digits + places <= PRECISE_DIGITS:
            value = value * _TENS[places] + after
    if wrong or digits + places > PRECISE_DIGITS:
        return value, places, np.int64(-1)
    if close < end and data[close] in (0x45, 0x65):
        return value, places, np.int64(-1)
    return value, places, np.int64(close)


@kernel
def _hex4(data: Any, pos: int, end: int) -> Any:
    if end - pos < 4:
        return -1
    value = np.int64(0)
    for i in range(4):
        byte = np.int64(data[pos + i])
        if 0x30 <= byte <= 0x39:
            digit = byte - 0x30
        elif 0x41 <= byte <= 0x46:
            digit = byte - 0x37
        elif 0x61 <= byte <= 0x66:
            digit = byte - 0x57
        else:
            return -1
        value = value * 16 + digit
    return value


@kernel
def unescape(data: Any, pos: int, end: int, side: Any, at: int) -> int:
    """Write the string ``data[pos:end]`` without its escapes to ``side[at:]``; its end, or -1.

    A result is never longer than its source, so ``side`` holds whatever ``data`` holds.
    """
    while pos < end:
        byte = data[pos]
        pos += 1
        if byte != _BACKSLASH:
            side[at] = byte
            at += 1
            continue
        if pos >= end:
            return -1
        byte = data[pos]
        pos += 1
        if byte in (_QUOTE, _BACKSLASH, 0x2F):
            side[at] = byte
        elif byte == 0x62:
            side[at] = 0x08
        elif byte == 0x66:
            side[at] = 0x0C
        elif byte == 0x6E:
            side[at] = 0x0A
        elif byte == 0x72:
            side[at] = 0x0D
        elif byte == 0x74:
            side[at] = 0x09
        elif byte == 0x75:
            point = _hex4(data, pos, end)
            pos += 4
            if 0xD800 <= point < 0xDC00:
                if end - pos < 6 or data[pos] != _BACKSLASH or data[pos + 1] != 0x75:
                    return -1
                low = _hex4(data, pos + 2, end)
                if low < 0xDC00 or low > 0xDFFF:
                    return -1
                point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                pos += 6
            if point < 0 or 0xDC00 <= point < 0xE000:
                return -1
            if point < 0x80:
                side[at] = point
            elif point < 0x800:
                side[at] = 0xC0 | (point >> 6)
                side[at + 1] = 0x80 | (point & 0x3F)
                at += 1
            elif point < 0x10000:
                side[at] = 0xE0 | (point >> 12)
                side[at + 1] = 0x80 | ((point >> 6) & 0x3F)
                side[at + 2] = 0x80 | (point & 0x3F)
                at += 2
            else:
                side[at] = 0xF0 | (point >> 18)
                side[at + 1] = 0x80 | ((point >> 12) & 0x3F)
                side[at + 2] = 0x80 | ((point >> 6) & 0x3F)
                side[at + 3] = 0x80 | (point & 0x3F)
                at += 3
        else:
            return -1
        at += 1
    return at


@kernel
def json_text(data: Any, pos: int, end: int, side: Any, at: int) -> int:
    """Write the JSON ``data[pos:end]`` without white space to ``side[at:]``; return its end.

    Of each string there is one text: only quotes, backslashes and control characters are escapes.
    The escapes of the source are known to be valid. The result is never longer than the source.
    """
    inside = False
    while pos < end:
        byte = data[pos]
        if byte == _QUOTE:
            inside = not inside
        elif not inside and byte <= 0x20:
            pos += 1
            continue
        if byte != _BACKSLASH:
            side[at] = byte
            at += 1
            pos += 1
            continue
        size = 2
        if data[pos + 1] == 0x75:
            size = 12 if 0xD800 <= _hex4(data, pos + 2, end) < 0xE000 else 6
        after = unescape(data, pos, pos + size, side, at)
        pos += size
        byte = side[at]
        if after - at > 1 or (byte >= 0x20 and byte != _QUOTE and byte != _BACKSLASH):
            at = after
            continue
        side[at] = _BACKSLASH
        short = np.uint8(0)
        if byte in (_QUOTE, _BACKSLASH):
            short = byte
        elif byte == 0x08:
            short = np.uint8(0x62)
        elif byte == 0x09:
            short = np.uint8(0x74)
        elif byte == 0x0A:
            short = np.uint8(0x6E)
        elif byte == 0x0C:
            short = np.uint8(0x66)
        elif byte == 0x0D:
            short = np.uint8(0x72)
        if short:
            side[at + 1] = short
            at += 2
            continue
        side[at + 1] = 0x75
        side[at + 2] = 0x30
        side[at + 3] = 0x30
        side[at + 4] = 0x30 + (byte >> 4)
        low = byte & 15
        side[at + 5] = low + (0x30 if low < 10 else 0x57)
        at += 6
    return at


@kernel
def number_end(data: Any, pos: int, end: int, number: Any) -> int:
    """The end of the number literal at ``pos``, or -1. Fills ``number``:

    0 digits of integer and fraction as one integer (if 8 is at most `MOST_DIGITS`), 1 negative,
    2 digits before the point, 3 after it, 4 exponent (as far as it is small), 5 whether there is
    one, 6 significant digits, 7 digits after the point without closing zeros, 8 digits without
    leading zeros.
    """
    for i in range(len(number)):
        number[i] = 0
    if data[pos] == 0x2D:
        number[1] = 1
        pos += 1
    start = pos
    significant = 0
    zeros = 0
    kept = 0
    value = np.int64(0)
    while pos < end and 0x30 <= data[pos] <= 0x39:
        digit = np.int64(data[pos] - 0x30)
        if significant + zeros < MOST_DIGITS:
            value = value * 10 + digit
        if digit:
            significant += zeros + 1
            zeros = 0
        elif significant:
            zeros += 1
        pos += 1
    number[2] = pos - start
    if number[2] == 0 or (number[2] > 1 and data[start] == 0x30):
        return -1
    if pos < end and data[pos] == 0x2E:
        pos += 1
        point = pos
        while pos < end and 0x30 <= data[pos] <= 0x39:
            digit = np.int64(data[pos] - 0x30)
            if significant + zeros < MOST_DIGITS:
                value = value * 10 + digit
            if digit:
                significant += zeros + 1
                zeros = 0
                kept = pos - point + 1
            elif significant:
                zeros += 1
            pos += 1
        number[3] = pos - point
        if number[3] == 0:
            return -1
    number[0] = value
    number[6] = significant
    number[7] = kept
    number[8] = significant + zeros
    if pos < end and (data[pos] == 0x65 or data[pos] == 0x45):
        number[5] = 1
        pos += 1
        sign = 1
        if pos < end and (data[pos] == 0x2B or data[pos] == 0x2D):
            sign = -1 if data[pos] == 0x2D else 1
            pos += 1
        start = pos
        while pos < end and 0x30 <= data[pos] <= 0x39:
            if number[4] < 100000:
                number[4] = number[4] * 10 + np.int64(data[pos] - 0x30)
            pos += 1
        number[4] *= sign
        if pos == start:
            return -1
    return pos


@kernel
def is_base64(data: Any, pos: int, end: int) -> bool:
    """Whether the string is base64 as RFC 4648 writes it: padded, unused bits zero."""
    size = end - pos
    if size % 4:
        return False
    last = np.int64(0)
    body = size
    if size and data[end - 1] == 0x3D:
        body -= 1
        if data[end - 2] == 0x3D:
            body -= 1
    for i in range(body):
        byte = np.int64(data[pos + i])
        if 0x41 <= byte <= 0x5A:
            last = byte - 0x41
        elif 0x61 <= byte <= 0x7A:
            last = byte - 0x47
        elif 0x30 <= byte <= 0x39:
            last = byte + 4
        elif byte == 0x2B:
            last = np.int64(62)
        elif byte == 0x2F:
            last = np.int64(63)
        else:
            return False
    if size - body == 1:
        return bool(last & 3 == 0)
    return bool(size == body or last & 15 == 0)


@inlined
def has_bytes(data: Any, pos: int, end: int, a: int, b: int, c: int, d: int) -> bool:
    """Whether the next four bytes are these."""
    return bool(
        end - pos >= 4
        and data[pos] == a
        and data[pos + 1] == b
        and data[pos + 2] == c
        and data[pos + 3] == d
    )
