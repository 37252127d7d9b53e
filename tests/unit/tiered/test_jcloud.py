"""Objects of the jcloud drivers: every entry, or an error."""

import random
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.errors import CorruptError, UnsupportedError
from reader.tiered.jcloud_blocks import JcloudWalk
from reader.tiered.jcloud_index import parse_index
from tests.support.examples import examples
from tests.unit.tiered.placed import JCLOUD, outcome
from tests.unit.tiered.walking import walked
from tests.unit.tiered.written_objects import jcloud_objects

GOLDEN_INDEX = bytes.fromhex(
    "de47de47 00000055 000000000000009d 0000000000000080 00000001 00000021"
    "0802 1003 1805 2001 2803 3803 4802 5005"
    "3207 0a03623a311000 5a06 0a016b120176"
    "000000000000 0000 00000001 0000000000000000".replace(" ", "")
)
GOLDEN_DATA = (
    bytes.fromhex("fbdbabcb 0000000000000080 000000000000009d 0000000000000000".replace(" ", ""))
    + bytes(100)
    + bytes.fromhex(
        "00000003 0000000000000000 616263 00000002 0000000000000001 6465".replace(" ", "")
    )
)


def entries(count: int, size: int, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(rng.randrange(size)) for _ in range(count)]


def test_golden_bytes() -> None:
    assert jcloud_objects([b"abc", b"de"]) == (GOLDEN_INDEX, GOLDEN_DATA)
    index = parse_index(GOLDEN_INDEX)
    assert (index.end.last_entry, index.end.length, index.data_length) == (1, 5, 157)
    assert walked(JcloudWalk(index, 0, 1), GOLDEN_DATA) == {0: b"abc", 1: b"de"}


@pytest.mark.parametrize("window", [1, 7, 128, 1000, 1 << 20])
@pytest.mark.parametrize("block_size", [160, 500, 1 << 20])
def test_windows_of_any_size_give_the_same_entries(window: int, block_size: int) -> None:
    sent = entries(70, 20)
    index, data = jcloud_objects(sent, block_size)
    parsed = parse_index(index)
    assert walked(JcloudWalk(parsed, 0, 69), data, window) == dict(enumerate(sent))


def test_a_range_begins_with_its_block_and_ends_where_it_has_to() -> None:
    sent = entries(70, 20)
    index, data = jcloud_objects(sent, 500)
    parsed = parse_index(index)
    assert len(parsed.firsts) > 2
    for first in range(70):
        for last in (first, min(69, first + 9), 69):
            walk = JcloudWalk(parsed, first, last)
            block = parsed.block_of(first)
            assert walk.at == parsed.offsets[block]
            assert walk.end == parsed.block_end(parsed.block_of(last))
            found = walked(walk, data)
            assert list(found) == list(range(int(parsed.firsts[block]), last + 1))
            assert found[last] == sent[last]


def test_a_place_that_was_learned_is_where_a_walk_may_begin() -> None:
    sent = entries(70, 20)
    index, data = jcloud_objects(sent, 500)
    parsed = parse_index(index)
    places: dict[int, int] = {}
    walked(JcloudWalk(parsed, 0, 69), data, places=places)
    assert sorted(places) == list(range(70))
    for entry, place in places.items():
        walk = JcloudWalk(parsed, entry, entry, (entry, place))
        assert walk.at == place
        assert walked(walk, data) == {entry: sent[entry]}
        # One of an earlier block is of no use: there may be padding in between.
        if entry and parsed.block_of(entry) != parsed.block_of(entry - 1):
            walk = JcloudWalk(parsed, entry, entry, (entry - 1, places[entry - 1]))
            assert walk.at == parsed.offsets[parsed.block_of(entry)]


def test_a_streaming_offload_is_not_handled() -> None:
    with pytest.raises(UnsupportedError, match="as a stream"):
        parse_index(bytes.fromhex("3d1fb0bc") + bytes(100))


def test_what_pulsar_itself_loses_is_refused() -> None:
    """An entry larger than a block is not stored, and the index has a block without bytes."""
    index, _ = jcloud_objects([b"a" * 100, b"b" * 50, b"c" * 100], 310)
    parsed = parse_index(index)
    assert len(parsed.offsets) == 2
    lost = bytearray(index)
    struct.pack_into(">q", lost, 8, int(parsed.offsets[1]))  # the data object's length
    with pytest.raises(CorruptError, match="offsets do not ascend"):
        parse_index(bytes(lost))


@pytest.mark.parametrize("size", [0, 3, 4, 31, 32, 40, 84])
def test_an_index_that_is_cut_off(size: int) -> None:
    with pytest.raises(CorruptError):
        parse_index(GOLDEN_INDEX[:size])


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jcloud")


def found_in(root: Path, index: bytes, data: bytes) -> dict[int, bytes] | None:
    return outcome(root, JCLOUD, data, index, len(_SENT) - 1)


_SENT = entries(12, 30, seed=5)
_INDEX, _DATA = jcloud_objects(_SENT, 300)


def test_each_byte_of_an_index_but_what_nobody_needs(root: Path) -> None:
    """Whatever becomes of it: an error, or every entry. Only unneeded metadata may be anything."""
    metadata = range(32, len(_INDEX) - 20 * len(parse_index(_INDEX).firsts))
    for at in range(len(_INDEX)):
        for flip in (1, 0x80, 0xFF):
            damaged = bytearray(_INDEX)
            damaged[at] ^= flip
            found = found_in(root, bytes(damaged), _DATA)
            assert found is None or (at in metadata and found == dict(enumerate(_SENT)))


def test_each_byte_of_the_data(root: Path) -> None:
    """What is not an entry's own is seen; an entry's has a checksum of its own, if any."""
    parsed = parse_index(_INDEX)
    places: dict[int, int] = {}
    walked(JcloudWalk(parsed, 0, len(_SENT) - 1), _DATA, places=places)
    inside = np.zeros(len(_DATA), bool)
    for entry, place in places.items():
        inside[place + 12 : place + 12 + len(_SENT[entry])] = True
    for at in range(len(_DATA)):
        damaged = bytearray(_DATA)
        damaged[at] ^= 0x41
        found = found_in(root, _INDEX, bytes(damaged))
        if inside[at]:
            assert found is not None
            assert len(found) == len(_SENT)
        else:
            assert found is None, at


@given(data=st.data())
@settings(max_examples=examples(400), deadline=None)
def test_damage_is_never_fewer_entries(root: Path, data: st.DataObject) -> None:
    """Bytes changed, cut out, put in, of either object."""
    objects = [bytearray(_INDEX), bytearray(_DATA)]
    for _ in range(data.draw(st.integers(1, 3))):
        one = objects[data.draw(st.integers(0, 1))]
        at = data.draw(st.integers(0, max(0, len(one) - 1)))
        size = data.draw(st.integers(0, 40))
        one[at : at + size] = data.draw(st.binary(max_size=40))
    found = found_in(root, bytes(objects[0]), bytes(objects[1]))
    assert found is None or len(found) == len(_SENT)


@given(
    st.lists(st.binary(max_size=60), min_size=1, max_size=60),
    st.integers(200, 3000),
    st.integers(1, 400),
    st.data(),
)
@settings(max_examples=examples(200), deadline=None)
def test_any_ledger(sent: list[bytes], block_size: int, window: int, data: st.DataObject) -> None:
    index, content = jcloud_objects(sent, block_size)
    parsed = parse_index(index)
    first = data.draw(st.integers(0, len(sent) - 1))
    last = data.draw(st.integers(first, len(sent) - 1))
    found = walked(JcloudWalk(parsed, first, last), content, window)
    assert {n: found[n] for n in range(first, last + 1)} == {
        n: sent[n] for n in range(first, last + 1)
    }
