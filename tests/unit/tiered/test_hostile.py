"""Objects that say what cannot be: an error of ours, soon, and never fewer entries."""

import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.errors import CorruptError, PulsarLakeError
from reader.tiered import TieredLedgers, sequence_walk
from reader.tiered.jcloud_blocks import JcloudWalk
from reader.tiered.jcloud_index import parse_index
from reader.tiered.object_reads import ObjectReads
from reader.tiered.sequence_file import inflated, long_pairs, parse_header
from tests.support.examples import examples
from tests.unit.tiered.placed import FORMATS, JCLOUD, UUID, entries, place, put, put_objects, read
from tests.unit.tiered.test_map_file import opened
from tests.unit.tiered.walking import walked
from tests.unit.tiered.written_objects import CODECS, index_of, jcloud_objects, map_file_objects

HUGE = 2 << 30


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    seen: list[int] = []
    original = ObjectReads.read

    def noted(self: ObjectReads, at: int, size: int) -> object:
        seen.append(size)
        return original(self, at, size)

    monkeypatch.setattr(ObjectReads, "read", noted)
    yield seen


def enlarge(path: Path) -> None:
    """With a hole: nothing is written."""
    with path.open("r+b") as file:
        file.truncate(HUGE)


# -- fewer entries ---------------------------------------------------------------------------------


def test_an_index_that_points_behind_the_block_of_its_entry(tmp_path: Path) -> None:
    """Blocks say which entries they have, and any block may follow a place in the index."""
    sent = entries(300, 400)
    _, index = put(tmp_path, sent, "BLOCK", block_size=9_000)
    pairs = list(long_pairs(index.read_bytes()))
    assert len(pairs) > 5
    (first, _), (_, behind) = pairs[2], pairs[3]
    wrong = [(key, behind if key == first else at) for key, at in pairs if at != behind]
    index.write_bytes(index_of(wrong))
    for last in (first, first + 1, 299):
        with pytest.raises(CorruptError, match=f"the index says that entry {first} is in it"):
            read(TieredLedgers([place(tmp_path, "BLOCK")]), first, last)


def _other_pairs(rng: random.Random, index: bytes) -> bytes:
    """An index that is well-formed, and wrong."""
    pairs = list(long_pairs(index))
    at, other = rng.randrange(1, len(pairs)), rng.randrange(1, len(pairs))
    if rng.random() < 0.5:  # what still ascends is not refused at once
        keys, places = [key for key, _ in pairs], [byte for _, byte in pairs]
        del keys[at], places[other]
        return index_of(list(zip(keys, places, strict=True)))
    key, byte = pairs[at]
    pairs[at] = rng.choice([(key, pairs[other][1]), (pairs[other][0], byte), (key + 1, byte)])
    return index_of(pairs)


def _other_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    at = rng.randrange(len(data))
    number = rng.choice([-1, 0, 5, 127, 1 << 31, 1 << 40, 1 << 62, -(1 << 63)])
    put_in = rng.choice([bytes([data[at] ^ 1 << rng.randrange(8)]), struct.pack(">q", number)])
    changed[at : at + len(put_in)] = put_in
    return bytes(changed)


@pytest.fixture(scope="module")
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, tuple[bytes, ...]]:
    """A form, where a ledger of it lies, and its objects."""
    root = tmp_path_factory.mktemp("written")
    paths = put(root, entries(120, 60), request.param, block_size=300)
    return request.param, root, tuple(one.read_bytes() for one in paths)


@pytest.mark.parametrize("written", FORMATS, indirect=True)
@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=examples(400), deadline=None)
def test_ranges_of_damaged_ledgers(
    written: tuple[str, Path, tuple[bytes, ...]], rng: random.Random
) -> None:
    """A part of a ledger has no length to be compared with."""
    form, root, good = written
    which = rng.randrange(2)
    change: Callable[[random.Random, bytes], bytes] = _other_bytes
    if which == 1 and form != JCLOUD and rng.random() < 0.8:
        change = _other_pairs
    objects = [*good]
    objects[which] = change(rng, good[which])
    put_objects(root, form, *objects)
    ledgers = TieredLedgers([place(root, form)])
    first = rng.randrange(120)
    for last in (first, rng.randrange(first, 120)):
        try:
            found = read(ledgers, first, last)
        except PulsarLakeError:
            continue
        assert list(range(first, last + 1)) == [n for n in found if first <= n <= last]


# -- memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, 1 << 23, 1 << 40, 1 << 62])
def test_a_block_that_says_any_number_of_records(tmp_path: Path, count: int) -> None:
    data, index = map_file_objects(entries(30, 40), "BLOCK")
    for which, content in enumerate((data, index)):
        at = parse_header(content).size + 20
        body = abs(count).to_bytes(8, "big")
        said = b"\x88" + body if count > 0 else struct.pack(">b", count)
        objects = [data, index]
        objects[which] = content[:at] + said + content[at + 1 :]
        put_objects(tmp_path, "BLOCK", *objects)
        with pytest.raises(CorruptError):
            read(TieredLedgers([place(tmp_path, "BLOCK")]), 0, 29)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_inflated_is_bounded(codec: str) -> None:
    header = parse_header(map_file_objects([b"x"], "BLOCK", codec=codec)[0])
    packed = CODECS[codec](bytes(5_000))
    assert inflated(header, packed, 5_000) == bytes(5_000)
    for most in (1, 4_999):
        with pytest.raises(CorruptError, match=f"more than {most} bytes"):
            inflated(header, packed, most)
    with pytest.raises(CorruptError, match="cut off"):
        inflated(header, packed[:-1], 5_000)


@pytest.mark.parametrize("kind", ["RECORD", "BLOCK"])
def test_what_is_compressed_well_comes_by_and_by(
    kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A window may become a thousand times as large."""
    monkeypatch.setattr(sequence_walk, "MOST_TOGETHER", 50_000)
    sent = [bytes([n]) * 20_000 for n in range(40)]
    data, index = map_file_objects(sent, kind)
    walk = opened(data, index).walk(0, 39)
    assert len(data) < 10_000
    at = walk.at
    found = walk.take(np.frombuffer(data[at:], np.uint8))
    assert 0 < sum(int(one.lengths.sum()) for one in found) <= 80_000
    put(tmp_path, sent, kind)
    assert read(TieredLedgers([place(tmp_path, kind)]), 0, 39) == dict(enumerate(sent))


@pytest.mark.parametrize("entry", [-1, 0, 5])
def test_a_record_of_a_huge_length(tmp_path: Path, entry: int, bytes_read: list[int]) -> None:
    path, _ = put(tmp_path, entries(10, 40), "NONE")
    data = bytearray(path.read_bytes())
    at = data.index(struct.pack(">iq", 8, entry)) - 4
    data[at : at + 4] = struct.pack(">i", 1 << 30)
    path.write_bytes(data)
    enlarge(path)
    with pytest.raises(CorruptError, match="bytes belong together"):
        read(TieredLedgers([place(tmp_path, "NONE")]), 0, 9)
    assert sum(bytes_read) < 17 << 20


def test_an_entry_of_a_huge_length(tmp_path: Path, bytes_read: list[int]) -> None:
    data_path, index_path = put(tmp_path, entries(10, 40), JCLOUD)
    index, data = bytearray(index_path.read_bytes()), bytearray(data_path.read_bytes())
    index[8:16] = data[12:20] = struct.pack(">q", HUGE)
    at = data.index(struct.pack(">q", 5), 128) - 4
    data[at : at + 4] = struct.pack(">i", 1 << 30)
    index_path.write_bytes(index)
    data_path.write_bytes(data)
    enlarge(data_path)
    with pytest.raises(CorruptError, match="bytes belong together"):
        read(TieredLedgers([place(tmp_path, JCLOUD)]), 0, 9)
    assert sum(bytes_read) < 17 << 20


@pytest.mark.parametrize("window", [1, 5, 8, 4096])
def test_padding_is_compared_piece_by_piece(window: int) -> None:
    sent = [b"a" * 10, b"b" * 9_000]
    index, data = jcloud_objects(sent, 9_150)
    parsed = parse_index(index)
    assert len(parsed.offsets) == 2
    begin, end = 128 + 12 + 10, int(parsed.offsets[1])
    assert walked(JcloudWalk(parsed, 0, 1), data, window) == dict(enumerate(sent))
    walk = JcloudWalk(parsed, 0, 1)
    walk.take(np.frombuffer(data, np.uint8)[:begin])
    assert walk.need == 4, "not all of it at once"
    for at in (begin, begin + 1, begin + 4097, end - 1):
        damaged = bytearray(data)
        damaged[at] ^= 1
        with pytest.raises(CorruptError, match="does not end with padding"):
            walked(JcloudWalk(parsed, 0, 1), bytes(damaged), window)


# -- kernels ---------------------------------------------------------------------------------------


_AFTER_PREWARM = """
import sys
from reader.config import TieredConfig
from reader.model import OffloadContext, Partition, Topic
from reader.tiered import TieredLedgers, jcloud_blocks, prewarm, sequence_walk

def kernels():
    every = [*vars(jcloud_blocks).values(), *vars(sequence_walk).values()]
    return [len(one.signatures) for one in every if hasattr(one, "signatures")]

prewarm()
before = kernels()
rows = 0
for form, root in zip(sys.argv[2::2], sys.argv[3::2]):
    place = TieredConfig(uri=root, format="jcloud" if form == "jcloud" else "filesystem")
    partition, context = Partition(Topic.parse("a/b/c"), 2), OffloadContext(sys.argv[1])
    rows += sum(map(len, TieredLedgers([place]).read(partition, 7, context, 0, 199)))
assert rows == 800, rows
assert kernels() == before, (before, kernels())
"""


def test_reads_compile_nothing_after_prewarm(tmp_path: Path) -> None:
    """A kernel is compiled anew for arrays that cannot be written to. In a fresh process."""
    given = [UUID.uuid]
    for form in FORMATS:
        put(tmp_path / form, [bytes([n]) * 60_000 for n in range(200)], form, block_size=200_000)
        given += [form, str(tmp_path / form)]
    subprocess.run([sys.executable, "-c", _AFTER_PREWARM, *given], check=True, timeout=250)
