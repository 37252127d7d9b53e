"""UTF-8, compared with Python's own."""

import itertools

import numpy as np
import pytest

from reader.kernels.utf8 import valid_utf8


def _is_valid(data: bytes) -> bool:
    """What the kernel says, of bytes between some that are no UTF-8."""
    whole = np.frombuffer(b"\xff" * 9 + data + b"\xff" * 9, np.uint8)
    return bool(valid_utf8(whole, 9, 9 + len(data)))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# Both sides of every limit in table 3-7 of the Unicode standard.
FIRST = b"\x00\x7f\x80\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff"
NEXT = b"\x00\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xff"


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_limit(length: int) -> None:
    right = 0
    for first in FIRST:
        for rest in itertools.product(NEXT, repeat=length - 1):
            data = bytes([first, *rest])
            right += _is_utf8(data)
            assert _is_valid(data) == _is_utf8(data), data
    assert right


@pytest.mark.parametrize("text", ["é", "€", "𐍈", "a" * 8 + "é", "aé" * 9])
def test_cut_and_shifted(text: str) -> None:
    """Eight bytes are looked at together where they can be; what is around them does not count."""
    for before in range(20):
        for behind in range(10):
            data = b"x" * before + text.encode() + b"x" * behind
            for size in range(len(data) + 1):
                assert _is_valid(data[:size]) == _is_utf8(data[:size])
