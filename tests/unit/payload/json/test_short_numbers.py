"""Numbers that are read eight digits at a time, compared with Python's own."""

import random

import numpy as np
import pytest

from reader.payload.json.program import MOST_DIGITS
from reader.payload.json.tokens import PRECISE_DIGITS, short_decimal, short_integer

AFTER = [b"", b"7", b",", b"}            ", b"99999999999999999999", b"e5", b".5"]
"""What stands behind a payload's end: other payloads."""


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    zero = len(digits) > 1 and digits[0] == "0"
    return None if zero or not 0 < len(digits) <= MOST_DIGITS else int(text)


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("inside", [True, False])
def test_integers(after: bytes, inside: bool) -> None:
    """``inside``: a comma follows before the payload ends."""
    random.seed(1)
    for size in range(1, 28):
        for text in ("".join(random.choices("0123456789", k=size)) for _ in range(20)):
            for number in (text, "-" + text, "0" * size, "9" * size):
                data = (number + "," * inside).encode() + after
                end = len(number) + inside
                value, close = short_integer(np.frombuffer(data, np.uint8), 0, end)
                expected = _integer(number)
                assert (close, value if close >= 0 else None) == (
                    -1 if expected is None else len(number),
                    expected,
                )


@pytest.mark.parametrize("after", AFTER)
def test_decimals(after: bytes) -> None:
    random.seed(1)
    for whole in range(18):
        for places in range(18):
            digits = "".join(random.choices("0123456789", k=whole + places))
            text = digits[:whole] + "." * (places > 0) + digits[whole:]
            data = np.frombuffer(b"-" + text.encode() + after, np.uint8)
            value, after_point, close = short_decimal(data, 0, 1 + len(text))
            zero = whole > 1 and digits[0] == "0"
            if zero or not whole or whole + places > PRECISE_DIGITS:
                assert close == -1
            else:
                assert (value, after_point, close) == (int(digits), places, 1 + len(text))


@pytest.mark.parametrize(
    "text", ["", "-", "x", "1.", "1.x", "1e5", "1E5", "1.5e5", ".5", "01", "-01.5", "+1", "1.5E-3"]
)
def test_what_is_left_to_others(text: str) -> None:
    data = np.frombuffer(text.encode() + b" " * 16, np.uint8)
    assert short_integer(data, 0, len(text))[1] == -1
    assert short_decimal(data, 0, len(text))[2] == -1


@pytest.mark.parametrize("text", ["12/", "12:", "1/2", "12\x00", "12\x7f", "12\xff3"])
def test_neighbours_of_digits_are_none(text: str) -> None:
    data = np.frombuffer(text.encode("latin-1") + b"1" * 16, np.uint8)
    stop = next(i for i, one in enumerate(text) if one not in "0123456789")
    assert short_integer(data, 0, len(data)) == (int(text[:stop]), stop)
    assert short_decimal(data, 0, len(data)) == (int(text[:stop]), 0, stop)
