"""UTF-8 and varints, compared with Python's own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from reader.decode.passes.protobuf_wire import field, skip, utf8, varint
from tests.unit.decode.entries import varint as written


def _array(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view


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
def test_utf8_at_every_limit(length: int) -> None:
    right = 0
    for first in FIRST:
        for rest in itertools.product(NEXT, repeat=length - 1):
            data = bytes([first, *rest])
            right += _is_utf8(data)
            assert utf8(_array(data), 0, len(data)) == _is_utf8(data), data
    assert right


@pytest.mark.parametrize("text", ["é", "€", "𐍈", "a" * 8 + "é", "aé" * 9])
def test_utf8_cut_and_shifted(text: str) -> None:
    """Eight bytes are looked at together where they can be; what follows does not count."""
    for before in range(10):
        data = b"x" * before + text.encode() + b"\xff" * 9
        for size in range(len(data) + 1):
            assert utf8(_array(data), 0, size) == _is_utf8(data[:size])


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_varint(value: int) -> None:
    data = written(value)
    signed = value - 2**64 if value >= 2**63 else value
    assert varint(_array(data + b"\x00"), 0, len(data)) == (signed, len(data))
    for end in range(len(data)):
        assert varint(_array(data), 0, end)[1] == -1


def test_varint_of_more_than_ten_bytes() -> None:
    data = b"\x80" * 10 + b"\x00"
    assert varint(_array(data), 0, len(data))[1] == -1
    assert varint(_array(b"\x80" * 9 + b"\x00"), 0, 10) == (0, 10)


@pytest.mark.parametrize(
    ("tag", "good"), [(0, False), (7, False), (8, True), (2**32 - 1, True), (2**32, False)]
)
def test_tag(tag: int, good: bool) -> None:
    data = written(tag)
    assert field(_array(data), 0, len(data)) == ((tag, len(data)) if good else (0, -1))


@pytest.mark.parametrize(
    ("wire", "data", "after"),
    [
        (0, b"\x80\x01", 2),
        (0, b"\x80", -1),
        (1, bytes(8), 8),
        (1, bytes(7), -1),
        (2, b"\x02ab", 3),
        (2, b"\x03ab", -1),
        (2, b"\xff" * 9 + b"\x01", -1),  # a length of -1
        (3, b"\x0c", -1),
        (4, b"", -1),
        (5, bytes(4), 4),
        (5, bytes(3), -1),
        (6, bytes(9), -1),
        (7, bytes(9), -1),
    ],
)
def test_skip(wire: int, data: bytes, after: int) -> None:
    assert skip(_array(data), 0, len(data), 8 | wire) == after
