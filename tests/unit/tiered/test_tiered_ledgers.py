"""Ledgers are found in the places that settings name, and read by the ranges that are needed."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from reader import errors
from reader.config import ReadConfig, StorageConfig, TieredConfig
from reader.model import OffloadContext, Partition, Topic
from reader.storage import check_storage_options
from reader.tiered import TieredLedgers
from reader.tiered.object_reads import ObjectReads
from reader.tiered.tiered_ledgers import WINDOW
from tests.unit.tiered.placed import FORMATS, JCLOUD, PARTITION, UUID, entries, place, put, read
from tests.unit.tiered.written_objects import jcloud_objects, map_file_objects


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """(name, bytes) of each read of an object."""
    seen: list[tuple[str, int]] = []
    original = ObjectReads.read

    def noted(self: ObjectReads, at: int, size: int) -> object:
        seen.append((str(self), size))
        return original(self, at, size)

    monkeypatch.setattr(ObjectReads, "read", noted)
    yield seen


@pytest.mark.parametrize("form", FORMATS)
def test_every_range(tmp_path: Path, form: str) -> None:
    sent = entries(300, 400)
    put(tmp_path, sent, form, block_size=9_000)
    ledgers = TieredLedgers([place(tmp_path, form)])
    assert read(ledgers, 0, 299) == dict(enumerate(sent))
    for first, last in ((0, 0), (299, 299), (5, 4), (100, 199), (17, 17), (0, 150)):
        fresh = TieredLedgers([place(tmp_path, form)])
        expected = {n: sent[n] for n in range(first, last + 1)}
        assert read(fresh, first, last) == expected
        assert read(ledgers, first, last) == expected


@pytest.mark.parametrize("form", [JCLOUD, "NONE", "RECORD"])
def test_single_entries_are_exact_ranges_once_their_block_was_read(
    tmp_path: Path, form: str, ranges: list[tuple[str, int]]
) -> None:
    """As a lookback does it: from the end back, in portions, and then single ones."""
    sent = entries(4000, 600)
    data, _ = put(tmp_path, sent, form, block_size=1 << 20)
    ledgers = TieredLedgers([place(tmp_path, form)])
    for low in range(3000, 1000, -500):
        assert list(read(ledgers, low, low + 499)) == list(range(low, low + 500))
    ranges.clear()
    for n in range(1600, 3400, 100):
        assert read(ledgers, n, n) == {n: sent[n]}
    assert len(ranges) == 18, "one request each"
    assert sum(size for _, size in ranges) <= sum(len(sent[n]) + 40 for n in range(1600, 3400, 100))
    assert {name for name, _ in ranges} == {str(data)}


def test_a_small_range_does_not_take_a_whole_block(
    tmp_path: Path, ranges: list[tuple[str, int]]
) -> None:
    sent = entries(4000, 2000)
    put(tmp_path, sent, JCLOUD, block_size=1 << 25)
    ledgers = TieredLedgers([place(tmp_path, JCLOUD)])
    assert read(ledgers, 3, 3) == {3: sent[3]}
    assert sum(size for name, size in ranges if not name.endswith("index")) < 200_000


def test_large_ledgers_come_in_windows(tmp_path: Path, ranges: list[tuple[str, int]]) -> None:
    sent = [bytes([n % 256]) * 300_000 for n in range(80)]
    data, _ = put(tmp_path, sent, JCLOUD, block_size=10 << 20)
    ledgers = TieredLedgers([place(tmp_path, JCLOUD)])
    blocks = list(ledgers.read(PARTITION, 7, UUID, 0, 79))
    assert sum(len(one) for one in blocks) == 80
    assert all(int(one.lengths.sum()) <= 4 << 20 for one in blocks)
    assert all(size <= WINDOW for _, size in ranges)
    assert len(ranges) == 1 + -(-data.stat().st_size // WINDOW), "the index, and windows"


def test_many_ledgers_are_read_one_after_the_other(tmp_path: Path) -> None:
    sent = {n: entries(20 + n, 50) for n in range(3, 9)}
    for n, some in sent.items():
        put(tmp_path, some, JCLOUD, ledger=n)
    ledgers = TieredLedgers([place(tmp_path, JCLOUD)])
    wanted = [(n, UUID, 2, len(some) - 1) for n, some in sent.items()]
    blocks = list(ledgers.read_all(PARTITION, [*wanted[:2], (4, UUID, 5, 4), *wanted[2:]]))
    assert [one.ledger_id for one in blocks] == list(sent)
    assert [len(one) for one in blocks] == [18 + n for n in sent]
    given = ledgers.read_all(PARTITION, [*wanted[:3], (99, UUID, 0, 0), *wanted[3:]])
    for n in (3, 4, 5):
        assert next(given).ledger_id == n
    with pytest.raises(errors.NotFoundError, match="ledger 99 of a/b/c-partition-2"):
        next(given)


def test_the_places_of_a_namespace_are_looked_through(tmp_path: Path) -> None:
    """A bucket of long ago, another driver, one of another namespace."""
    sent = entries(9, 20)
    put(tmp_path / "old", sent, "NONE")
    others = place(tmp_path / "old", "NONE", namespaces=["a/other", "x/*"])
    wrong = place(tmp_path / "new", JCLOUD)
    right = place(tmp_path / "old", "NONE", namespaces=["x/y", "a/?"])
    assert read(TieredLedgers([others, wrong, right]), 0, 8) == dict(enumerate(sent))
    with pytest.raises(errors.NotFoundError, match="-ledger-7-index is not there"):
        read(TieredLedgers([others, wrong]), 0, 8)
    with pytest.raises(errors.UnsupportedError, match="no place is named for ledgers of a/b"):
        read(TieredLedgers([others]), 0, 8)


@pytest.mark.parametrize("form", FORMATS)
def test_another_attempt_is_another_object(tmp_path: Path, form: str) -> None:
    put(tmp_path, entries(9, 20), form)
    ledgers = TieredLedgers([place(tmp_path, form)])
    other = OffloadContext("4a1e9e0e-0000-0000-0000-000000000002")
    with pytest.raises(errors.NotFoundError, match="000000000002"):
        list(ledgers.read(PARTITION, 7, other, 0, 8))


def test_names_of_topics_are_encoded_as_java_does_it(tmp_path: Path) -> None:
    partition = Partition(Topic("a", "b", "größe ~*/x"), -1)
    data, index = map_file_objects([b"x"])
    folder = tmp_path / "a/b/persistent/gr%C3%B6%C3%9Fe+%7E*%2Fx" / f"7-{UUID.uuid}"
    folder.mkdir(parents=True)
    (folder / "data").write_bytes(data)
    (folder / "index").write_bytes(index)
    ledgers = TieredLedgers([place(tmp_path, "NONE")])
    (block,) = ledgers.read(partition, 7, UUID, 0, 0)
    assert block.entry_ids.tolist() == [0]


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_deleted_is_not_found(tmp_path: Path, form: str) -> None:
    """Also where it was open already, as far as the filesystem says so."""
    paths = put(tmp_path, entries(9, 20), form)
    paths[0].unlink()
    with pytest.raises(errors.NotFoundError, match="is not there"):
        read(TieredLedgers([place(tmp_path, form)]), 0, 8)
    put(tmp_path, entries(9, 20), form)
    paths[1].unlink()
    with pytest.raises(errors.NotFoundError, match="is not there"):
        read(TieredLedgers([place(tmp_path, form)]), 0, 8)


@pytest.mark.parametrize("form", FORMATS)
def test_a_ledger_is_looked_for_anew_after_a_read_that_failed(tmp_path: Path, form: str) -> None:
    """Its objects are moved to another place while a process reads them."""
    sent = entries(50, 200)
    paths = put(tmp_path / "old", sent, form)
    ledgers = TieredLedgers([place(tmp_path / one, form) for one in ("old", "new")])
    assert read(ledgers, 0, 49) == dict(enumerate(sent))
    put(tmp_path / "new", sent, form)
    for path in paths:
        path.write_bytes(b"")  # a file that is open here
        path.unlink()
    with pytest.raises(errors.CorruptError):
        read(ledgers, 0, 49)
    assert read(ledgers, 0, 49) == dict(enumerate(sent))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0"])
def test_an_object_of_another_size_is_damaged(
    tmp_path: Path, form: str, which: int, change: object
) -> None:
    assert callable(change)
    path = put(tmp_path, entries(50, 200), form)[which]
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(errors.CorruptError, match="ledger 7 of a/b/c-partition-2"):
        read(TieredLedgers([place(tmp_path, form)]), 0, 49)


@pytest.mark.parametrize("form", FORMATS)
def test_more_entries_than_there_are(tmp_path: Path, form: str) -> None:
    put(tmp_path, entries(50, 200), form)
    with pytest.raises(errors.CorruptError, match="has entries up to 49, and not to 50"):
        read(TieredLedgers([place(tmp_path, form)]), 0, 50)


def test_the_ledgers_length_is_compared(tmp_path: Path) -> None:
    """Of a whole ledger: the one check that takes all of its entries."""
    sent = [b"a" * 100, b"b" * 100, b"c" * 300]
    index, data = jcloud_objects(sent, 500)  # in two blocks, the first with padding
    shorter = jcloud_objects([b"a" * 100, b"b" * 90, b"c" * 300], 500)[1]
    assert len(data) == len(shorter)
    name = f"{UUID.uuid}-ledger-7"
    (tmp_path / name).write_bytes(shorter)
    (tmp_path / f"{name}-index").write_bytes(index)
    with pytest.raises(errors.CorruptError, match="has 490 bytes of entries, and not 500"):
        read(TieredLedgers([place(tmp_path, JCLOUD)]), 0, 2)


@pytest.mark.parametrize("form", ["NONE", "RECORD"])
def test_a_file_that_ends_between_two_entries(tmp_path: Path, form: str) -> None:
    sent = [bytes([n]) * 10 for n in range(5)]
    data, _ = put(tmp_path, sent, form)
    whole = data.read_bytes()
    data.write_bytes(whole[: whole.index(b"\0\0\0\x08" + (4).to_bytes(8, "big")) - 4])
    with pytest.raises(errors.CorruptError, match="ends before entry 4"):
        read(TieredLedgers([place(tmp_path, form)]), 0, 4)


def test_a_place_that_does_not_answer_is_not_the_last(tmp_path: Path) -> None:
    """The uuid makes sure that another place's objects are the right ones."""
    sent = entries(9, 20)
    put(tmp_path / "right", sent, JCLOUD)
    (tmp_path / "wrong" / f"{UUID.uuid}-ledger-7-index").mkdir(parents=True)  # cannot be read
    wrong, right = (place(tmp_path / one, JCLOUD) for one in ("wrong", "right"))
    assert read(TieredLedgers([wrong, right]), 0, 8) == dict(enumerate(sent))
    empty = place(tmp_path / "empty", JCLOUD)
    for places in ([wrong, empty], [empty, wrong]):
        with pytest.raises(errors.UnavailableError, match=r"cannot read .*; .* is not there"):
            read(TieredLedgers(places), 0, 8)


def test_no_more_ledgers_are_kept_of_reads_that_were_ended_early(tmp_path: Path) -> None:
    ledgers = TieredLedgers([place(tmp_path, JCLOUD)])
    before = len(list(Path("/proc/self/fd").iterdir()))
    for n in range(100):
        put(tmp_path, entries(20, 50), JCLOUD, ledger=n)
        blocks = ledgers.read(PARTITION, n, UUID, 0, 19)
        next(blocks)
        blocks.close()
    assert len(list(Path("/proc/self/fd").iterdir())) - before <= 64 + 8


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    wrong = place(tmp_path, JCLOUD, uri="s3://", options={})
    with pytest.raises(errors.ConfigurationError, match=r"\[\[tiered\]\] s3://"):
        read(TieredLedgers([wrong]), 0, 0)
    (tmp_path / f"{UUID.uuid}-ledger-7-index").mkdir()
    with pytest.raises(errors.UnavailableError, match="cannot read"):
        read(TieredLedgers([place(tmp_path, JCLOUD)]), 0, 0)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"uri": "s3://b", "namespaces": ["a"]}, "tiered.0.namespaces.0: no pattern"),
        ({"uri": "s3://b", "format": "avro"}, "tiered.0.format"),
        ({}, "tiered.0.uri"),
        ({"uri": ""}, "tiered.0.uri"),
        ({"uri": "s3://b", "bucket": "b"}, "unknown key tiered.0.bucket"),
        ({"uri": "s3://b", "options": {"endpoint_url": "http://u:p@h"}}, "tiered.0.options"),
    ],
)
def test_wrong_settings(section: Mapping[str, object], said: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=said) as refused:
        ReadConfig.load({"tiered": [section]})
    assert "u:p" not in str(refused.value)


def test_an_unknown_option_is_told_by_its_place() -> None:
    wrong = TieredConfig.model_validate({"uri": "s3://b", "options": {"regoin": "x"}})
    with pytest.raises(errors.ConfigurationError, match=r"\[\[tiered\]\] s3://b: .*regoin"):
        check_storage_options(StorageConfig(), [wrong])
