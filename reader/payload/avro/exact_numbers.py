"""Numbers of 128 bits that a column of another scale holds exactly, compiled.

A number is a pair of 64 bits, (low, high), in two's complement.
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import kernel

# 10**precision, as two halves of 64 bits.
_LIMIT_HIGH = np.array([10**p >> 64 for p in range(39)], np.uint64)
_LIMIT_LOW = np.array([10**p & (2**64 - 1) for p in range(39)], np.uint64)
_HALF = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)
_TEN = np.uint64(10)


@kernel
def _negated(low: Any, high: Any) -> Any:
    low = ~low + np.uint64(1)
    return low, ~high + (np.uint64(1) if low == 0 else np.uint64(0))


@kernel
def within(low: Any, high: Any, precision: int) -> bool:
    """Return whether the number has at most ``precision`` digits, of 38."""
    if high >> np.uint64(63):
        low, high = _negated(low, high)
    top, bottom = _LIMIT_HIGH[precision], _LIMIT_LOW[precision]
    return bool(high < top or (high == top and low < bottom))


@kernel
def rescaled(low: Any, high: Any, shift: int, precision: int) -> Any:
    """Return (low, high, fits): the number · 10^shift, if that is an integer of ``precision``
    digits."""
    negative = high >> np.uint64(63) != 0
    if negative:
        low, high = _negated(low, high)
    while shift > 0 and (low != 0 or high != 0):
        if not within(low, high, 37):
            return low, high, False
        # Four digits of 32 bits, from the lowest.
        first = (low & _MASK) * _TEN
        second = (low >> _HALF) * _TEN + (first >> _HALF)
        third = (high & _MASK) * _TEN + (second >> _HALF)
        fourth = (high >> _HALF) * _TEN + (third >> _HALF)
        low = (first & _MASK) | ((second & _MASK) << _HALF)
        high = (third & _MASK) | ((fourth & _MASK) << _HALF)
        shift -= 1
    while shift < 0 and (low != 0 or high != 0):
        top = high // _TEN
        rest = high - top * _TEN
        upper = (rest << _HALF) | (low >> _HALF)
        middle = upper // _TEN
        rest = upper - middle * _TEN
        lower = (rest << _HALF) | (low & _MASK)
        bottom = lower // _TEN
        if lower != bottom * _TEN:
            return low, high, False
        low, high = (middle << _HALF) | bottom, top
        shift += 1
    fits = within(low, high, precision)
    if negative:
        low, high = _negated(low, high)
    return low, high, fits


@kernel
def exact_integer(bits: int) -> Any:
    """Return (integer, whether it is the very value of the double of these bits)."""
    value = np.int64(bits).view(np.float64)
    if not -9223372036854775808.0 <= value < 9223372036854775808.0:
        return np.int64(0), False
    number = np.int64(value)
    return number, np.float64(number).view(np.int64) == np.int64(bits)
