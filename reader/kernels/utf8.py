"""Whether bytes are text: ASCII, or UTF-8."""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import HIGH_BITS, load64


@inlined
def is_ascii(data: Any, start: int, end: int) -> bool:
    """Whether the range is ASCII; False as well where it is too near to the end of ``data``."""
    i = start
    while i < end:
        if len(data) - i < 8:
            return False
        word = load64(data, i)
        if end - i < 8:
            word <<= np.uint64(8 * (8 - (end - i)))
        if word & HIGH_BITS:
            return False
        i += 8
    return True


@inlined
def _after_ascii(data: Any, i: int, end: int) -> Any:
    """The first position whose eight bytes are not all ASCII, or fewer before ``end``."""
    while end - i >= 8 and load64(data, i) & HIGH_BITS == 0:
        i += 8
    return i


@kernel
def valid_utf8(data: Any, start: int, end: int) -> bool:
    """Whether ``data[start:end]`` is UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.

    RFC 3629, section 4. The caller guarantees that the range lies inside ``data``.
    """
    i = _after_ascii(data, start, end)
    if i > start and end - i < 8 and load64(data, end - 8) & HIGH_BITS == 0:
        return True
    while i < end:
        lead = data[i]
        if lead < 0x80:
            i = _after_ascii(data, i + 1, end)
            continue
        low, high, more = 0x80, 0xBF, 0
        if lead < 0xC2:
            return False
        if lead < 0xE0:
            more = 1
        elif lead < 0xF0:
            more = 2
            if lead == 0xE0:
                low = 0xA0
            elif lead == 0xED:
                high = 0x9F
        elif lead < 0xF5:
            more = 3
            if lead == 0xF0:
                low = 0x90
            elif lead == 0xF4:
                high = 0x8F
        else:
            return False
        if more >= end - i:
            return False
        if data[i + 1] < low or data[i + 1] > high:
            return False
        for j in range(2, more + 1):
            if data[i + j] & 0xC0 != 0x80:
                return False
        i += more + 1
    return True


@kernel
def valid_utf8_spans(data: Any, starts: Any, ends: Any, found: Any) -> None:
    """``found[i]`` becomes whether span i of ``data`` is UTF-8."""
    for i in range(len(starts)):
        found[i] = valid_utf8(data, starts[i], ends[i])
