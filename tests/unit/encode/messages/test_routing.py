"""Partitions of keys, against hashes written down from their definitions and from Java's answers.

That the Java client chooses the same, tests/integration/test_partition_choice.py asks it.
"""

import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.encode import Hashing, key_partitions
from reader.kernels.byte_spans import ByteSpans
from tests.support.examples import examples

JAVA, MURMUR = Hashing.JAVA_STRING_HASH, Hashing.MURMUR3_32_HASH
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
MOST = 1 << 31
"""Modulo this a hash is itself."""


def partitions(keys: list[str | None], count: int, hashing: Hashing = JAVA) -> list[int]:
    found = key_partitions(ByteSpans.of(pa.array(keys).cast(pa.large_binary())), count, hashing)
    return [int(one) for one in found]


def java(text: str) -> int:
    """``String.hashCode() & Integer.MAX_VALUE``: over UTF-16 units, in 32 bits."""
    value = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be")):
        value = (31 * value + unit) % (1 << 32)
    return value & 0x7FFFFFFF


def murmur(data: bytes) -> int:
    """MurmurHash3_x86_32 with seed 0, by its author's description; without the sign."""

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> 32 - bits) & 0xFFFFFFFF

    def mixed(block: bytes) -> int:
        word = int.from_bytes(block, "little") * 0xCC9E2D51 & 0xFFFFFFFF
        return rotated(word, 15) * 0x1B873593 & 0xFFFFFFFF

    value = 0
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        value = (rotated(value ^ mixed(data[at : at + 4]), 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    value ^= mixed(data[whole:]) ^ len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    return (value ^ value >> 16) & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # Of jshell: "…".hashCode() & Integer.MAX_VALUE
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("key-1", 101943363),
        ("Aa", 2112),
        ("BB", 2112),
        ("polygenelubricants", 0),  # Integer.MIN_VALUE, of which Java knows no absolute value
        ("äöü", 226986),
        ("€", 8364),
        ("🔑", 1772660),
        ("a🔑z", 57842309),
        ("a much longer key, of some thirty letters", 803501634),
    ],
)
def test_javas_hash(key: str, hashed: int) -> None:
    assert partitions([key], MOST) == [hashed]
    assert java(key) == hashed


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # The published values of seed 0, without their sign.
        ("", 0),
        ("a", 0x3C2569B2),
        ("abc", 0xB3DD93FA & 0x7FFFFFFF),
        ("abcd", 0x43ED676A),
        ("Hello, world!", 0xC0363E43 & 0x7FFFFFFF),
        ("The quick brown fox jumps over the lazy dog", 0x2E4FF723),
    ],
)
def test_murmurs_hash(key: str, hashed: int) -> None:
    assert partitions([key], MOST, MURMUR) == [hashed]
    assert murmur(key.encode()) == hashed


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.none() | TEXT, min_size=1, max_size=20), st.integers(1, 100))
def test_any_keys(keys: list[str | None], count: int) -> None:
    wanted = [(java(k), murmur(k.encode())) if k is not None else None for k in keys]
    assert partitions(keys, count) == [-1 if one is None else one[0] % count for one in wanted]
    assert partitions(keys, count, MURMUR) == [
        -1 if one is None else one[1] % count for one in wanted
    ]


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=12))
def test_what_is_not_utf8_harms_nothing(data: bytes) -> None:
    """Spark's strings are not checked."""
    spans = ByteSpans.of(pa.array([b"x", data, b"y"], pa.large_binary()))
    for hashing in Hashing:
        found = key_partitions(spans, 7, hashing)
        assert ((found >= 0) & (found < 7)).all()
        assert found[0] == key_partitions(spans.slice(1), 7, hashing)[0]


def test_the_names_of_hashes_are_the_java_clients() -> None:
    assert [str(one) for one in Hashing] == ["JavaStringHash", "Murmur3_32Hash"]
