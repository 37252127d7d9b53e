"""The one compiled loop that writes columns as bytes, row by row, for every payload format.

A *part* is one thing that each row writes: constant bytes, then a value of one column. What is
nested is written before, as a block of its own, and is a span of bytes here. No byte is written
beyond what `blocks.Block.bound` says, as every value is as large as was counted there.
"""

from typing import Any

import numpy as np

from reader.encode.payload.row_writer import addresses
from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import first_bit
from reader.payload.shared_kernels import has_twice

# The words of a part. GUARD and VALID are the addresses of a byte for each row, or 0: all of them.
# A row without its guard writes nothing; one that is not valid writes the absent bytes.
(
    KIND, GUARD, VALID, PREFIX, PREFIX_SIZE, ABSENT, ABSENT_SIZE, DATA, STARTS, ENDS, WIDTH, COUNTS,
) = range(12)  # fmt: skip
PART = 12

# Kinds. Values are int64 (ZIGZAG, VARINT, INTEGER_TEXT), `WIDTH` bytes (RAW), a byte 0 or 1
# (BOOLEAN_TEXT), or spans of bytes: as they are (SPAN), after their length as a varint (SIZED), a
# zigzag varint (ZIGZAG_SIZED) or four bytes, big-endian (SIZED32), as JSON strings (TEXT, BASE64),
# as a JSON number that is a double (DOUBLE_TEXT), as Avro's one block of COUNTS items (COUNTED), as
# JSON items that each end in a comma, in the brackets that WIDTH holds (ITEMS_TEXT).
(
    CONSTANT, ZIGZAG, VARINT, RAW, SPAN, SIZED, ZIGZAG_SIZED, SIZED32, TEXT, BASE64, INTEGER_TEXT,
    BOOLEAN_TEXT, DOUBLE_TEXT, COUNTED, ITEMS_TEXT,
) = range(15)  # fmt: skip

_QUOTE, _BACKSLASH, _COMMA, _ZERO, _DOT = 0x22, 0x5C, 0x2C, 0x30, 0x2E
_OPEN, _CLOSE = 0x7B, 0x7D
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_BASE64 = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
# The letter after the backslash; 0: \u and four digits.
_SHORT = np.zeros(32, np.uint8)
for _code, _letter in ((8, b"b"), (9, b"t"), (10, b"n"), (12, b"f"), (13, b"r")):
    _SHORT[_code] = _letter[0]


@kernel
def _varint(to: int, value: int) -> Any:
    """Write 64 bits; the address after them."""
    word = np.uint64(value)
    while word >= np.uint64(0x80):
        addresses.store8(to, np.int64(word | np.uint64(0x80)))
        word >>= np.uint64(7)
        to += 1
    addresses.store8(to, np.int64(word))
    return to + 1


@inlined
def _zigzag(value: int) -> Any:
    return (value << 1) ^ (value >> 63)


@kernel
def _escape(to: int, byte: int) -> Any:
    """Write a character that a JSON string cannot hold as it is."""
    addresses.store8(to, _BACKSLASH)
    letter = np.int64(_SHORT[byte]) if byte < 0x20 else byte
    if letter:
        addresses.store8(to + 1, letter)
        return to + 2
    addresses.store8(to + 1, ord("u"))
    addresses.store8(to + 2, _ZERO)
    addresses.store8(to + 3, _ZERO)
    addresses.store8(to + 4, np.int64(_HEX[byte >> 4]))
    addresses.store8(to + 5, np.int64(_HEX[byte & 15]))
    return to + 6


@kernel
def _text(to: int, at: int, size: int) -> Any:
    """Write a JSON string, as Jackson does; the address after it."""
    addresses.store8(to, _QUOTE)
    to += 1
    end = at + size
    while end - at >= 32:
        special = addresses.special_mask(at)
        if special == 0:
            addresses.move32(to, at)
            to += 32
            at += 32
        else:
            plain = first_bit(special)
            addresses.copy(to, at, plain)
            to = _escape(to + plain, addresses.load8(at + plain))
            at += plain + 1
    while at < end:
        byte = addresses.load8(at)
        if byte < 0x20 or byte in (_QUOTE, _BACKSLASH):
            to = _escape(to, byte)
        else:
            addresses.store8(to, byte)
            to += 1
        at += 1
    addresses.store8(to, _QUOTE)
    return to + 1


@kernel
def escaped_size(count: int, data: int, starts: int, ends: int, guard: int, valid: int) -> int:
    """How many bytes the content of JSON strings takes: of the rows that are written."""
    total = 0
    for i in range(count):
        if (guard and addresses.load8(guard + i) == 0) or (
            valid and addresses.load8(valid + i) == 0
        ):
            continue
        at, end = data + addresses.load64(starts + 8 * i), data + addresses.load64(ends + 8 * i)
        total += end - at
        while end - at >= 32:
            special = addresses.special_mask(at)
            if special == 0:
                at += 32
            else:
                at += first_bit(special)
                byte = addresses.load8(at)
                total += 1 if byte >= 0x20 or _SHORT[byte] else 5
                at += 1
        while at < end:
            byte = addresses.load8(at)
            if byte < 0x20:
                total += 1 if _SHORT[byte] else 5
            elif byte in (_QUOTE, _BACKSLASH):
                total += 1
            at += 1
    return total


@kernel
def _base64(to: int, at: int, size: int) -> Any:
    """Write a JSON string of base64; the address after it."""
    addresses.store8(to, _QUOTE)
    to += 1
    done = 0
    while done < size:
        left = size - done
        word = addresses.load8(at + done) << 16
        if left > 1:
            word |= addresses.load8(at + done + 1) << 8
        if left > 2:
            word |= addresses.load8(at + done + 2)
        addresses.store8(to, np.int64(_BASE64[word >> 18]))
        addresses.store8(to + 1, np.int64(_BASE64[(word >> 12) & 63]))
        addresses.store8(to + 2, np.int64(_BASE64[(word >> 6) & 63]) if left > 1 else ord("="))
        addresses.store8(to + 3, np.int64(_BASE64[word & 63]) if left > 2 else ord("="))
        to += 4
        done += 3
    addresses.store8(to, _QUOTE)
    return to + 1


@kernel
def _integer(to: int, value: int) -> Any:
    """Write a number in decimal; the address after it."""
    word = np.uint64(value)
    if value < 0:
        addresses.store8(to, ord("-"))
        to += 1
        word = ~word + np.uint64(1)
    digits = 1
    rest = word // np.uint64(10)
    while rest:
        digits += 1
        rest //= np.uint64(10)
    for i in range(digits - 1, -1, -1):
        rest = word // np.uint64(10)
        addresses.store8(to + i, np.int64(word - rest * np.uint64(10)) + _ZERO)
        word = rest
    return to + digits


@kernel
def _double(to: int, at: int, size: int) -> Any:
    """Write the text of a double, so that it is not taken for an integer."""
    addresses.copy(to, at, size)
    for i in range(size):
        byte = addresses.load8(at + i)
        if byte in (_DOT, ord("e"), _QUOTE):
            return to + size
    addresses.store8(to + size, _DOT)
    addresses.store8(to + size + 1, _ZERO)
    return to + size + 2


@kernel
def _span(to: int, kind: int, at: int, size: int, width: int, count: int) -> Any:
    """Write a span of bytes by its kind; the address after it."""
    if kind == TEXT:
        return _text(to, at, size)
    if kind == BASE64:
        return _base64(to, at, size)
    if kind == DOUBLE_TEXT:
        return _double(to, at, size)
    if kind == ITEMS_TEXT:
        addresses.store8(to, width & 0xFF)
        inner = max(size - 1, 0)
        addresses.copy(to + 1, at, inner)
        addresses.store8(to + 1 + inner, width >> 8)
        return to + inner + 2
    if kind == COUNTED:
        if count:
            to = _varint(to, _zigzag(count))
            addresses.copy(to, at, size)
            to += size
        addresses.store8(to, 0)
        return to + 1
    if kind == SIZED32:
        for i in range(4):
            addresses.store8(to + i, size >> (24 - 8 * i))
        to += 4
    elif kind == SIZED:
        to = _varint(to, size)
    elif kind == ZIGZAG_SIZED:
        to = _varint(to, _zigzag(size))
    addresses.copy(to, at, size)
    return to + size


@kernel
def write_rows(
    parts: Any, count: int, live: int, is_object: bool, suffix: int, suffix_size: int, out: int,
    offsets: Any,
) -> None:  # fmt: skip
    """Write ``count`` rows to ``out``; row i is ``out + offsets[i]`` up to the next one.

    A row that is not ``live`` has no bytes; others end with the suffix. ``is_object``: members each
    begin with a comma, and braces go around them.
    """
    to = out
    for i in range(count):
        offsets[i] = to - out
        if live and addresses.load8(live + i) == 0:
            continue
        begin = to
        for p in range(len(parts)):
            guard, valid = parts[p, GUARD], parts[p, VALID]
            if guard and addresses.load8(guard + i) == 0:
                continue
            if valid and addresses.load8(valid + i) == 0:
                addresses.copy(to, parts[p, ABSENT], parts[p, ABSENT_SIZE])
                to += parts[p, ABSENT_SIZE]
                continue
            size = parts[p, PREFIX_SIZE]
            if size:
                addresses.copy(to, parts[p, PREFIX], size)
                to += size
            kind, data = parts[p, KIND], parts[p, DATA]
            if kind == ZIGZAG:
                to = _varint(to, _zigzag(addresses.load64(data + 8 * i)))
            elif kind == RAW:
                width = parts[p, WIDTH]
                addresses.copy(to, data + width * i, width)
                to += width
            elif kind == VARINT:
                to = _varint(to, addresses.load64(data + 8 * i))
            elif kind == INTEGER_TEXT:
                to = _integer(to, addresses.load64(data + 8 * i))
            elif kind == BOOLEAN_TEXT:
                if addresses.load8(data + i):
                    addresses.store64(to, 0x65757274)
                    to += 4
                else:
                    addresses.store64(to, 0x65736C6166)
                    to += 5
            elif kind != CONSTANT:
                start = addresses.load64(parts[p, STARTS] + 8 * i)
                size = addresses.load64(parts[p, ENDS] + 8 * i) - start
                items = parts[p, COUNTS]
                if items:
                    items = addresses.load64(items + 8 * i)
                to = _span(to, kind, data + start, size, parts[p, WIDTH], items)
        if is_object:
            if to == begin:
                addresses.store8(to, _OPEN)
                to += 1
            addresses.store8(begin, _OPEN)
            addresses.store8(to, _CLOSE)
            to += 1
        if suffix_size:
            addresses.copy(to, suffix, suffix_size)
            to += suffix_size
    offsets[count] = to - out


@kernel
def first_twice(data: Any, keys: Any, offsets: Any, live: Any, table: Any) -> int:
    """The first map that has two equal keys, or -1: keys are (start, end) in ``data``.

    Map i has keys ``offsets[i]`` up to ``offsets[i + 1]``, and counts where ``live[i]``; ``table``
    is working memory of four times as many as the most that one has, and four at least.
    """
    for i in range(len(live)):
        if (
            live[i]
            and offsets[i + 1] - offsets[i] > 1
            and has_twice(data, keys, offsets[i], offsets[i + 1], table)
        ):
            return i
    return -1
