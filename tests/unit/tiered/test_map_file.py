"""Ledgers of the filesystem driver: every entry, or an error, however they are compressed."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.errors import CorruptError, UnsupportedError
from reader.tiered.map_file import MapFile, map_file, metadata_walk, parse_data_header
from reader.tiered.sequence_file import long_pairs, parse_header
from reader.tiered.sequence_file import vint as read_vint
from tests.support.examples import examples
from tests.unit.tiered.placed import outcome
from tests.unit.tiered.walking import walked
from tests.unit.tiered.written_objects import CODECS, map_file_objects, vint

KINDS = ("NONE", "RECORD", "BLOCK")

# The file of a ledger with the entries "abc" and "de", by the documentation of SequenceFile.
GOLDEN = (
    b"SEQ\x06"
    b"\x21org.apache.hadoop.io.LongWritable"
    b"\x22org.apache.hadoop.io.BytesWritable"
    b"\x00\x00"
    b"\x00\x00\x00\x00" + bytes(range(100, 116)) + b"\x00\x00\x00\x2d\x00\x00\x00\x08" + b"\xff" * 8
)
GOLDEN += b"\x00\x00\x00\x21" + bytes.fromhex(
    "0802100318052001280338034802500532070a03623a3110005a060a016b120176"
)
GOLDEN += bytes.fromhex("0000000f00000008000000000000000000000003616263")
GOLDEN += bytes.fromhex("0000000e000000080000000000000001000000026465")


def entries(count: int, size: int, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(size)) for _ in range(count)]


def opened(data: bytes, index: bytes) -> MapFile:
    header = parse_data_header(data)
    (metadata,) = walked(metadata_walk(header, len(data)), data).values()
    return map_file(header, len(data), metadata, index)


def in_windows(data: bytes, index: bytes, window: int = 1 << 20) -> dict[int, bytes]:
    ledger = opened(data, index)
    found = walked(ledger.walk(0, ledger.end.last_entry), data, window)
    found.pop(-1, None)  # in the first block
    return found


def test_golden_bytes() -> None:
    data, index = map_file_objects([b"abc", b"de"])
    assert data == GOLDEN
    assert list(long_pairs(index)) == [(-1, 95)]
    assert in_windows(data, index) == {0: b"abc", 1: b"de"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("window", [1, 30, 999, 1 << 20])
def test_windows_of_any_size_give_the_same_entries(kind: str, window: int) -> None:
    sent = entries(200, 90)
    assert in_windows(*map_file_objects(sent, kind), window) == dict(enumerate(sent))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", ["RECORD", "BLOCK"])
def test_codecs(kind: str, codec: str) -> None:
    sent = entries(60, 90)
    assert in_windows(*map_file_objects(sent, kind, codec=codec)) == dict(enumerate(sent))


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_begins_where_the_index_says(kind: str) -> None:
    sent = entries(100, 90)
    data, index = map_file_objects(sent, kind)
    ledger = opened(data, index)
    for first in range(100):
        for last in (first, min(99, first + 9), 99):
            walk = ledger.walk(first, last)
            assert walk.at in ledger.places.tolist()
            found = walked(walk, data)
            assert len(found) <= last - first + 40, "it begins close by"
            assert {n: found[n] for n in range(first, last + 1)} == {
                n: sent[n] for n in range(first, last + 1)
            }


@pytest.mark.parametrize("kind", ["NONE", "RECORD"])
def test_a_place_that_was_learned_is_where_a_walk_may_begin(kind: str) -> None:
    sent = entries(100, 90)
    data, index = map_file_objects(sent, kind)
    ledger = opened(data, index)
    places: dict[int, int] = {}
    walked(ledger.walk(0, 99), data, places=places)
    for entry, place in places.items():
        if entry >= 0:
            walk = ledger.walk(entry, entry, (entry, place))
            assert walk.at in (place, *ledger.places.tolist())
            assert walked(walk, data) == {entry: sent[entry]}


def test_numbers() -> None:
    for number in (*range(-300, 300), 1 << 20, -(1 << 20), (1 << 31) - 1):
        data = vint(number)
        assert read_vint(data + b"x", 0) == (number, len(data))
        for size in range(len(data)):
            with pytest.raises(IndexError):
                read_vint(data[:size], 0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"SEQ\x06", b"SEQ\x05", "version 5"),
        (b"io.BytesWritable", b"io.OtherWritable", "OtherWritable"),
        (b"io.LongWritable", b"io.TextWritable", "TextWritable"),
    ],
)
def test_what_is_not_handled(old: bytes, new: bytes, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        parse_header(GOLDEN.replace(old, new))


@pytest.mark.parametrize("codec", ["Lz4Codec", "SnappyCodec", "ZStandardCodec"])
def test_codecs_that_the_offloader_never_asks_for_are_refused(codec: str) -> None:
    name = f"org.apache.hadoop.io.compress.{codec}"
    data, _ = map_file_objects(entries(3, 9), "BLOCK", codec=name)
    with pytest.raises(UnsupportedError, match=codec):
        parse_header(data)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def found_in(root: Path, data: bytes, index: bytes) -> dict[int, bytes] | None:
    return outcome(root, "NONE", data, index, len(_SENT) - 1)


_SENT = entries(10, 24, seed=5)


@pytest.mark.parametrize("kind", KINDS)
def test_each_byte_of_the_data(root: Path, kind: str) -> None:
    data, index = map_file_objects(_SENT, kind)
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        found = found_in(root, bytes(damaged), index)
        assert found is None or len(found) == len(_SENT), at


@pytest.mark.parametrize("kind", KINDS)
def test_each_end_of_the_data(root: Path, kind: str) -> None:
    data, index = map_file_objects(_SENT, kind)
    for size in range(len(data)):
        assert found_in(root, data[:size], index) is None, size
    assert found_in(root, data + data[-50:], index) is None


def test_each_byte_of_the_index(root: Path) -> None:
    data, index = map_file_objects(_SENT)
    for at in range(len(index)):
        damaged = bytearray(index)
        damaged[at] ^= 0x41
        found = found_in(root, data, bytes(damaged))
        assert found is None or found == dict(enumerate(_SENT)), at
        assert found_in(root, data, index[:at]) is None


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=examples(200), deadline=None)
def test_damage_is_never_fewer_entries(root: Path, kind: str, data: Any) -> None:
    objects = [bytearray(one) for one in map_file_objects(_SENT, kind)]
    for _ in range(data.draw(st.integers(1, 3))):
        one = objects[data.draw(st.sampled_from([0, 0, 0, 1]))]
        at = data.draw(st.integers(0, max(0, len(one) - 1)))
        size = data.draw(st.integers(0, 40))
        one[at : at + size] = data.draw(st.binary(max_size=40))
    found = found_in(root, bytes(objects[0]), bytes(objects[1]))
    assert found is None or len(found) == len(_SENT)


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=60),
    st.sampled_from(KINDS),
    st.integers(1, 400),
    st.data(),
)
@settings(max_examples=examples(200), deadline=None)
def test_any_ledger(sent: list[bytes], kind: str, window: int, data: st.DataObject) -> None:
    content, index = map_file_objects(sent, kind, block_size=data.draw(st.integers(1, 500)))
    first = data.draw(st.integers(0, len(sent) - 1))
    last = data.draw(st.integers(first, len(sent) - 1))
    found = walked(opened(content, index).walk(first, last), content, window)
    assert [found[n] for n in range(first, last + 1)] == sent[first : last + 1]


def test_an_entry_of_a_huge_length_is_seen_at_once() -> None:
    """Not after all of the file was kept in memory for it."""
    data, index = map_file_objects(_SENT)
    ledger = opened(data, index)
    damaged = bytearray(data)
    at = int(ledger.places[1])
    damaged[at : at + 4] = (1 << 30).to_bytes(4, "big")
    walk = ledger.walk(int(ledger.keys[1]), len(_SENT) - 1)
    with pytest.raises(CorruptError, match="too large"):
        walk.take(np.frombuffer(bytes(damaged), np.uint8)[walk.at : walk.at + 40])
