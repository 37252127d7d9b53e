"""Varints and fields, compared with what was written."""

import numpy as np
import pytest

from reader.kernels.protobuf_wire import field, varint
from tests.unit.decode.entries import varint as written

NONE = (0, 0, -1, -1)


def _array(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view


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
    ("tag", "good"), [(0, False), (7, False), (8, True), (2**32 - 8, True), (2**32, False)]
)
def test_tag(tag: int, good: bool) -> None:
    data = written(tag) + b"\x05"
    expected = (tag, 5, len(data) - 1, len(data)) if good else NONE
    assert field(_array(data), 0, len(data)) == expected


@pytest.mark.parametrize(
    ("wire", "data", "expected"),
    [
        (0, b"\x80\x01", (128, 1, 3)),
        (0, b"\xff" * 9 + b"\x01", (-1, 1, 11)),
        (0, b"\x80", None),
        (0, b"", None),
        (1, bytes(8), (0, 1, 9)),
        (1, bytes(7), None),
        (2, b"\x02ab", (2, 2, 4)),
        (2, b"\x00", (0, 2, 2)),
        (2, b"\x03ab", None),
        (2, b"\x83", None),
        (2, b"\xff" * 9 + b"\x01", None),  # a length of -1
        (3, b"\x0c", None),
        (4, b"", None),
        (5, bytes(4), (0, 1, 5)),
        (5, bytes(3), None),
        (6, bytes(9), None),
        (7, bytes(9), None),
    ],
)
def test_field(wire: int, data: bytes, expected: tuple[int, int, int] | None) -> None:
    """What follows a field, and what comes before it, does not count."""
    tag = 8 | wire
    for before in (b"", b"\xff"):
        at = len(before)
        whole = _array(before + bytes([tag]) + data + b"\x01")
        found = field(whole, at, len(whole) - 1)
        if expected is None:
            assert found[3] == -1
        else:
            value, begin, after = expected
            assert found == (tag, value, at + begin, at + after)
