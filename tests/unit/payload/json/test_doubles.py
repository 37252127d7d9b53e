"""Decimal numbers to doubles: the compiled function against Python's own."""

import struct

from hypothesis import example, given, settings
from hypothesis import strategies as st

from reader.payload.json.double import EXPONENTS, double_bits
from reader.payload.json.numbers import exact_double
from tests.support.examples import examples

EXPONENT = st.integers(-EXPONENTS, EXPONENTS)


def bits_of(value: float) -> int:
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return int(bits)


@given(st.integers(0, 10**18 - 1), EXPONENT)
@example(174513758128983910, -1)  # half way, to even
@example(9007199254740993, 0)
@example(10**18 - 1, EXPONENTS)
@settings(max_examples=examples(2000), deadline=None)
def test_the_nearest_double(digits: int, exponent: int) -> None:
    found = double_bits(digits, exponent, False)
    assert found == bits_of(float(f"{digits}e{exponent}"))


@given(st.integers(1 << 52, (1 << 53) - 1), st.integers(-6, 4), st.integers(-1, 1))
@settings(max_examples=examples(1000), deadline=None)
def test_half_way_between_two(fraction: int, shift: int, off: int) -> None:
    """The odd 54-bit numbers are between two doubles; ``off`` is a little beside them."""
    half = 2 * fraction + 1
    digits, exponent = (half << shift, 0) if shift >= 0 else (half * 5**-shift, shift)
    digits += off
    if digits < 10**18:
        assert double_bits(digits, exponent, False) == bits_of(float(f"{digits}e{exponent}"))


@given(st.integers(1, 10**17 - 1), EXPONENT)
@example(8881921047108448, -1)  # the double is just half of the last digit away
@example(22211391340975062, -3)
@settings(max_examples=examples(2000), deadline=None)
def test_what_shows_as_it_was_written_is_exact(digits: int, exponent: int) -> None:
    text = f"{digits}e{exponent}"
    found, exact = double_bits(digits, exponent, True), exact_double(text)
    if found >= 0:
        assert exact is not None and found == bits_of(exact)


@given(st.floats(1e-90, 1e90))
@settings(max_examples=examples(2000), deadline=None)
def test_what_programs_write_is_known_to_show(value: float) -> None:
    mantissa, _, power = repr(value).partition("e")
    whole, _, part = mantissa.partition(".")
    found = double_bits(int(whole + part), int(power or 0) - len(part), True)
    if found >= 0:
        assert found == bits_of(value)
    else:  # half of a digit away, and not to even: Python has to be asked
        assert exact_double(repr(value)) == value
