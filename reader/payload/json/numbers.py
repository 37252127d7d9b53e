"""JSON number literals to exact column values; None where the column cannot reproduce them.

`NaN`, `Infinity` and `-Infinity`, which are no JSON but which Python and others write, are
literals of doubles alone.
"""

import re
from dataclasses import dataclass
from decimal import Decimal

SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Doubles that are not numbers of JSON, by their name."""

# Longer literals fit no column type; Python refuses some of them.
_LONGEST = 4000
# Nor can so few digits make up for a larger power of ten.
_LONGEST_POWER = 6
_PLAIN = re.compile(r"-?[0-9]+")
_JSON = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LITERAL = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written, or one of the names in `SPECIAL`."""

    text: str


def is_number(text: str) -> bool:
    """Return whether ``text`` is a number literal of JSON."""
    return _JSON.fullmatch(text) is not None


def exact_integer(text: str, bits: int = 64) -> int | None:
    """The integer of a literal without fraction and exponent, within ``bits`` bits."""
    if len(text) > 20 or not _PLAIN.fullmatch(text):
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def exact_whole(text: str) -> int | None:
    """Return the integer of 64 bits that a literal is, however it is written: ``1.0``, ``1e3``."""
    value = exact_unscaled(text, 19, 0)
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def exact_double(text: str) -> float | None:
    """The nearest double, if writing it with as many digits gives the literal's value again.

    So ``0.1`` is exact, ``9007199254740993``, ``1e400`` and ``1e-400`` are not. Above 18 digits
    the double has to equal the number. (Java before 19 writes up to 18.)
    """
    if text in SPECIAL:
        return SPECIAL[text]
    value = float(text)
    mantissa = text.lstrip("-").lower().partition("e")[0]
    digits = mantissa.replace(".", "").strip("0")
    if not digits:
        return value
    if len(digits) <= 15 and 1e-290 < abs(value) < 1e290:
        return value
    if value in (float("inf"), float("-inf")) or value == 0 or len(text) > _LONGEST:
        return None
    number = Decimal(text)
    if len(digits) > 18:
        return value if Decimal(value) == number else None
    # Both, because they differ on a tie: 2**-24 is …062 by the one and …063 by the other.
    again = (Decimal(f"{value:.{len(digits) - 1}e}"), Decimal(repr(value)))
    return value if number in again else None


def exact_unscaled(text: str, precision: int, scale: int) -> int | None:
    """The literal · 10^scale, if that is an integer of at most ``precision`` digits."""
    found = _LITERAL.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    sign, whole, fraction, power = found.groups("")
    written = (whole + fraction).lstrip("0")
    if not written:
        return 0
    if len(power.lstrip("+-0")) > _LONGEST_POWER:
        return None
    significant = written.rstrip("0")
    shift = int(power or 0) - len(fraction) + scale + len(written) - len(significant)
    if shift < 0 or len(significant) + shift > precision:
        return None
    value = int(significant + "0" * shift)
    return -value if sign else value
