"""Decimal numbers to doubles, in numba functions.

Source: D. Lemire, "Number Parsing at a Gigabyte per Second", Software: Practice and Experience 51
(2021); N. Mushtak, D. Lemire, "Fast Number Parsing Without Fallback", ibid. 53 (2023).
"""

from typing import Any

import numpy as np

from reader.kernels.compiling import inlined, kernel
from reader.kernels.unaligned import leading_zeros

EXPONENTS = 110
_LOWEST = -EXPONENTS
_NONE, _ONE, _NEAR = np.uint64(0), np.uint64(1), np.uint64(64)


def _power(q: int) -> int:
    """5**q · 2**k for the k that makes it 128 bits long, as the algorithm wants it rounded."""
    power: int = 5 ** abs(q)
    size = power.bit_length()
    if q >= 0:
        return power << 128 - size if size <= 128 else power >> size - 128
    if q >= -27:
        return (1 << size + 127) // power + 1
    inverse = (1 << 2 * size + 128) // power + 1
    return inverse >> inverse.bit_length() - 128


_POWERS = [_power(q) for q in range(-EXPONENTS, EXPONENTS + 1)]
_HIGH = np.array([power >> 64 for power in _POWERS], np.uint64)
_LOW = np.array([power & (2**64 - 1) for power in _POWERS], np.uint64)


@inlined
def _product(a: Any, b: Any) -> Any:
    """The 128-bit product of two uint64 as (low, high)."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    low = a_low * b_low
    cross = a_high * b_low + (low >> half)
    middle = a_low * b_high + (cross & mask)
    high = a_high * b_high + (cross >> half) + (middle >> half)
    return (middle << half) | (low & mask), high


@kernel
def double_bits(digits: Any, exponent: Any, shows: Any) -> Any:
    """The bits of the double that is nearest to digits · 10**exponent, ties to even.

    ``digits`` are 0 to 10**18; ``exponent`` is at most EXPONENTS away from 0. ``shows``: the
    result is -1 unless the double, printed with as many digits (half to even), is known to give the
    number again.
    """
    if digits == 0:
        return np.int64(0)
    zeros = leading_zeros(np.uint64(digits))
    word = np.uint64(digits) << zeros
    power_high, power_low = _HIGH[exponent - _LOWEST], _LOW[exponent - _LOWEST]
    low, high = _product(word, power_high)
    if shows or high & np.uint64(0x1FF) == np.uint64(0x1FF):
        _, more = _product(word, power_low)
        low += more
        if more > low:
            high += _ONE
    upper = high >> np.uint64(63)
    cut = upper + np.uint64(9)
    fraction = high >> cut
    power = ((217706 * exponent) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    exact = low <= _ONE and -4 <= exponent <= 23 and fraction << cut == high
    if exact and fraction & np.uint64(3) == _ONE:  # half way between two: to the even one
        fraction &= ~_ONE
    fraction = (fraction + (fraction & _ONE)) >> _ONE
    if shows:
        # Both as 128 bits of the same scale: twice the distance, and 1 of the last digit.
        near = (fraction << cut) << _ONE
        far_high, far_low = near - high - (_ONE if low else _NONE), _NONE - low
        if far_high >> np.uint64(63):
            far_high, far_low = high - near, low
        far_high, far_low = (far_high << _ONE) | (far_low >> np.uint64(63)), far_low << _ONE
        rest = np.uint64(64) - zeros
        unit_high, unit_low = power_high >> rest, (power_high << zeros) | (power_low >> rest)
        # All are exact to a few units of 2**-128; within that, whether they are equal is not known.
        gap_high = unit_high - far_high - (_ONE if unit_low < far_low else _NONE)
        gap_low = unit_low - far_low + _NEAR
        if gap_low < _NEAR:
            gap_high += _ONE
        if gap_high >> np.uint64(63):
            return np.int64(-1)
        if gap_high == 0 and gap_low < _NEAR + _NEAR:
            # Between a multiple of 2**-shift and one of a half there is no smaller distance.
            shift = 1075 - power + exponent
            if digits & 1 or shift >= 60 or not -27 <= exponent <= 55:
                return np.int64(-1)
    if fraction == _ONE << np.uint64(53):
        fraction = _ONE << np.uint64(52)
        power += 1
    fraction &= (_ONE << np.uint64(52)) - _ONE
    return np.int64(fraction) | (power << 52)
