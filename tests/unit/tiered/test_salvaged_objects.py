"""Ledgers that are declared lost: what their objects still give, and each other entry's place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reader.errors import CorruptError, NotFoundError, UnsupportedError
from reader.sources.salvage import salvage
from reader.tiered import TieredLedgers
from reader.tiered.jcloud_index import parse_index
from reader.tiered.sequence_file import long_pairs
from tests.unit.tiered.placed import FORMATS, JCLOUD, PARTITION, UUID, entries, place, put

SENT = entries(200, 60)


def salvaged(tmp_path: Path, form: str, first: int = 0, last: int = 199) -> list[int]:
    """Entries that are not to be had; all others are what was sent."""
    ledger = TieredLedgers([place(tmp_path, form)]).salvaged(PARTITION, 7, UUID)
    lost, every, wrong = [], [], []
    for block in salvage(7, ledger, first, last):
        for i, number in enumerate(block.entry_ids.tolist()):
            every.append(number)
            at, size = int(block.offsets[i]), int(block.lengths[i])
            if i in block.damaged:
                lost.append(number)
            elif block.arena[at : at + size].tobytes() != SENT[number]:
                wrong.append(number)
    assert every == list(range(first, last + 1))
    # By a wrong length: in a bucket's object nothing says it twice but the entry that follows.
    assert not wrong or (form == JCLOUD and wrong == [lost[0] - 1])
    return lost


def begins(form: str, index: bytes) -> list[int]:
    """Entries that a read may begin with."""
    if form == JCLOUD:
        return [int(one) for one in parse_index(index).firsts]
    return [key for key, _ in long_pairs(index)]


@pytest.mark.parametrize("form", FORMATS)
def test_of_a_ledger_without_damage_all(tmp_path: Path, form: str) -> None:
    put(tmp_path, SENT, form, block_size=900)
    assert salvaged(tmp_path, form) == []
    assert salvaged(tmp_path, form, 20, 30) == []


@pytest.mark.parametrize("form", FORMATS)
def test_damage_in_the_middle(tmp_path: Path, form: str) -> None:
    """What lies in front of it, and what lies behind the next place that the index names."""
    paths = put(tmp_path, SENT, form, block_size=900)
    data, index = (one.read_bytes() for one in paths)
    starts = begins(form, index)
    found = 0
    for at in range(len(data) // 3, 2 * len(data) // 3, 97):
        paths[0].write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        try:
            list(TieredLedgers([place(tmp_path, form)]).read(PARTITION, 7, UUID, 0, 199))
        except CorruptError:
            found += 1
        else:
            continue  # a byte of an entry: nothing tells
        lost = salvaged(tmp_path, form)
        assert lost
        assert lost == list(range(lost[0], lost[-1] + 1))
        assert lost[-1] + 1 in starts
        assert lost[0] >= max(one for one in starts if one <= lost[-1])
    assert found > 1


@pytest.mark.parametrize("form", [one for one in FORMATS if one != "BLOCK"])
def test_an_object_that_was_cut_off(tmp_path: Path, form: str) -> None:
    """Each entry that is there as a whole."""
    path = put(tmp_path, SENT, form, block_size=900)[0]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    lost = salvaged(tmp_path, form)
    assert lost == list(range(lost[0], 200))
    assert 80 < lost[0] < 120


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("change", [lambda data: data + b"\0" * 9, lambda data: data[:-1]])
def test_the_end(tmp_path: Path, form: str, change: Callable[[bytes], bytes]) -> None:
    """What is wrong with the end is no reason to lose more than what is there."""
    path = put(tmp_path, SENT, form, block_size=900)[0]
    path.write_bytes(change(path.read_bytes()))
    lost = salvaged(tmp_path, form)
    assert lost == list(range(200 - len(lost), 200))
    assert len(lost) < 40


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "change",
    [
        None,
        lambda data: data[:-5],
        lambda data: data[:3] + b"\7" + data[4:],  # a version, or a length
        lambda data: data[:20] + b"\xff" + data[21:],  # a class, or a number
    ],
)
def test_an_index_that_is_gone_or_damaged(
    tmp_path: Path, form: str, change: Callable[[bytes], bytes] | None
) -> None:
    """A file of the filesystem driver is read from its beginning; of a bucket's object nothing
    says where the ledger ends."""
    index = put(tmp_path, SENT, form, block_size=900)[1]
    if change is None:
        index.unlink()
    else:
        index.write_bytes(change(index.read_bytes()))
    if form != JCLOUD:
        assert salvaged(tmp_path, form) == []
        return
    with pytest.raises((CorruptError, NotFoundError), match="in Pulsar's tiered storage"):
        salvaged(tmp_path, form)


@pytest.mark.parametrize("form", FORMATS)
def test_data_that_is_gone(tmp_path: Path, form: str) -> None:
    put(tmp_path, SENT, form)[0].unlink()
    with pytest.raises(NotFoundError, match="is not there") as raised:
        salvaged(tmp_path, form)
    assert "pulsar.lost_ledgers = [7]" in str(raised.value.hint)


def test_what_this_release_cannot_read_is_not_lost(tmp_path: Path) -> None:
    """Nor can it be told from a damaged header: who knows better moves the object away."""
    data = put(tmp_path, SENT, "BLOCK")[0]
    good = data.read_bytes()
    codec = b"org.apache.hadoop.io.compress.DefaultCodec"
    assert codec in good
    data.write_bytes(good.replace(codec, codec[:-12] + b"AnotherCodec"))
    with pytest.raises(UnsupportedError, match="AnotherCodec") as raised:
        salvaged(tmp_path, "BLOCK")
    assert "move it away" in str(raised.value.hint)
