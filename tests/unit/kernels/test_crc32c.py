"""CRC32C against known vectors and a bit-by-bit computation; LZ4 against pyarrow's encoder."""

import random

import numpy as np
import pyarrow as pa
import pytest

from reader.decode.passes.lz4 import lz4_decode
from reader.kernels.crc32c import crc32c, crc32c_portable
from tests.unit.decode.entries import crc32c_slow

# RFC 3720, B.4, and the check value of the CRC catalogue.
VECTORS = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (b"123456789", 0xE3069283),
    (b"", 0),
]
# The first is the instruction of the CPU where it has one.
IMPLEMENTATIONS = pytest.mark.parametrize("function", [crc32c, crc32c_portable])


@IMPLEMENTATIONS
@pytest.mark.parametrize(("data", "value"), VECTORS)
def test_vectors(function, data, value):  # type: ignore[no-untyped-def]
    assert function(np.frombuffer(data, np.uint8), 0, len(data)) == value


@IMPLEMENTATIONS
def test_every_offset_and_length(function):  # type: ignore[no-untyped-def]
    data = random.Random(0).randbytes(64)
    buf = np.frombuffer(data, np.uint8)
    for start in range(20):
        for size in range(40):
            assert function(buf, start, size) == crc32c_slow(data[start : start + size])


@IMPLEMENTATIONS
def test_seed_continues(function):  # type: ignore[no-untyped-def]
    buf = np.frombuffer(random.Random(1).randbytes(100), np.uint8)
    for cut in (0, 1, 7, 50, 100):
        assert function(buf, cut, 100 - cut, function(buf, 0, cut)) == function(buf, 0, 100)


@IMPLEMENTATIONS
@pytest.mark.parametrize(("offset", "length"), [(-1, 2), (0, 11), (10, 1), (3, -1), (2**62, 2**62)])
def test_outside_of_the_buffer(function, offset, length):  # type: ignore[no-untyped-def]
    with pytest.raises(IndexError):
        function(np.zeros(10, np.uint8), offset, length)


def _lz4(data: bytes, size: int) -> bytes | None:
    """Decoded between two guards, which must not change."""
    out = np.full(size + 64, 0xEE, np.uint8)
    good = lz4_decode(np.frombuffer(data, np.uint8), 0, len(data), out, 32, size)
    assert (out[:32] == 0xEE).all()
    assert (out[32 + size :] == 0xEE).all()
    return out[32 : 32 + size].tobytes() if good else None


def _samples() -> list[bytes]:
    draw = random.Random(2)
    found = [b"", b"a", b"ab" * 9, b"x" * 70_000, draw.randbytes(5000), bytes(12), bytes(13)]
    for period in range(1, 40):  # repeats that overlap themselves
        unit = draw.randbytes(period)
        found.append(draw.randbytes(20) + unit * 30 + draw.randbytes(draw.randrange(20)))
    words = [draw.randbytes(draw.randrange(1, 30)) for _ in range(40)]
    found += [b"".join(draw.choices(words, k=n)) for n in (5, 50, 3000)]
    return found


@pytest.mark.parametrize("data", _samples(), ids=lambda data: f"{len(data)}")
def test_lz4_gives_exactly_what_was_compressed(data: bytes) -> None:
    packed = bytes(pa.Codec("lz4_raw").compress(data))
    assert _lz4(packed, len(data)) == data
    assert _lz4(packed, len(data) + 1) is None
    assert _lz4(packed, 0 if not data else len(data) - 1) is None or not data


def test_lz4_of_broken_bytes() -> None:
    """Never outside of its place, and if it is right, then what pyarrow says."""
    draw = random.Random(3)
    samples = [data for data in _samples() if len(data) < 6000]
    codec = pa.Codec("lz4_raw")
    right = 0
    for _ in range(5000):
        data = draw.choice(samples)
        packed = bytearray(codec.compress(data))
        for _ in range(draw.randrange(1, 4)):
            packed[draw.randrange(len(packed))] = draw.choice((0, 0xF0, 0xFF, draw.randrange(256)))
        size = max(0, len(data) + draw.choice((0, 0, 0, -5, 5, 300)))
        found = _lz4(bytes(packed), size)
        if found is not None:
            right += 1
            assert found == (bytes(codec.decompress(bytes(packed), size)) if size else b"")
    assert right > 100
