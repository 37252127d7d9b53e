"""What the readers and the offloader ask of a storage, on a server of each kind."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from offloader.commit.storage_clock import check_clock, storage_clock_ms
from reader.config import StorageConfig
from reader.model import Topic
from reader.storage import Storage, is_temporary, open_storage
from tests.storages.racers import commit, die_in, half_write, put, race

pytestmark = pytest.mark.long


def names(storage: Storage, directory: str = "", *, recursive: bool = True) -> dict[str, str]:
    filesystem, root = storage.filesystem()
    selector = pafs.FileSelector(f"{root}/{directory}".rstrip("/"), recursive=recursive)
    found = filesystem.get_file_info(selector)
    return {one.path.removeprefix(root).lstrip("/"): one.type.name for one in found}


def write(storage: Storage, path: str, data: bytes) -> None:
    filesystem, root = storage.filesystem()
    with filesystem.open_output_stream(f"{root}/{path}") as sink:
        sink.write(data)


def test_sizes_and_times(storage: Storage) -> None:
    filesystem, root = storage.filesystem()
    before = time.time() - 1
    write(storage, "a/one", b"abc")
    write(storage, "a/empty", b"")
    info = filesystem.get_file_info([f"{root}/a/one", f"{root}/a/empty", f"{root}/a", f"{root}/b"])
    kinds = [one.type for one in info]
    assert kinds[:2] == [pafs.FileType.File] * 2
    assert kinds[2:] == [pafs.FileType.Directory, pafs.FileType.NotFound]
    assert [one.size for one in info[:2]] == [3, 0]
    for one in info[:2]:
        assert before <= one.mtime_ns / 1e9 <= time.time() + 1
    listed = filesystem.get_file_info(pafs.FileSelector(f"{root}/a"))
    assert sorted((one.base_name, one.size) for one in listed) == [("empty", 0), ("one", 3)]
    for one in listed:  # a header has whole seconds
        assert before - 1 <= one.mtime_ns / 1e9 <= time.time() + 1


def test_listings(storage: Storage) -> None:
    for path in ("a/1", "a/b/2", "a/b/c/3", "ab/4", "a~2Fb/5"):
        write(storage, path, b"x")
    assert names(storage, "a", recursive=False) == {"a/1": "File", "a/b": "Directory"}
    files = {path for path, kind in names(storage).items() if kind == "File"}
    assert files == {"a/1", "a/b/2", "a/b/c/3", "ab/4", "a~2Fb/5"}
    filesystem, root = storage.filesystem()
    with pytest.raises(FileNotFoundError):
        filesystem.get_file_info(pafs.FileSelector(f"{root}/none"))
    lenient = pafs.FileSelector(f"{root}/none", allow_not_found=True)
    assert filesystem.get_file_info(lenient) == []
    objects = storage.objects()
    assert sorted(one.path for one in objects.below("a")) == ["a/1", "a/b/2", "a/b/c/3"]


def test_a_listing_is_whole_while_directories_come_and_go(
    storage: Storage, config: StorageConfig
) -> None:
    """A write that does not see its own manifest would send its rows once more."""
    kept = {f"a/{number:02}.manifest" for number in range(20)}
    for path in kept:
        write(storage, path, b"x")
    beside = open_storage(config).objects()
    over = Event()

    def come_and_go() -> None:
        while not over.is_set():
            for number in range(5):
                beside.put(f"a/{number}/one", b"")
            for number in range(5):
                beside.delete([f"a/{number}/one"])

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(come_and_go)
        try:
            for _ in range(200):
                found = {one.path for one in storage.objects().below("a")}
                assert kept <= found
        finally:
            over.set()
        going.result()


def test_a_file_is_no_directory(storage: Storage) -> None:
    write(storage, "a/1", b"x")
    assert storage.objects().below("a/1") == []


def test_ranges(storage: Storage) -> None:
    filesystem, root = storage.filesystem()
    data = random.Random(7).randbytes(3_000_000)
    write(storage, "d/random", data)
    with filesystem.open_input_file(f"{root}/d/random") as source:
        assert source.size() == len(data)
        for start, length in ((0, 4), (2_999_990, 100), (1_000_001, 65_537), (5, 0)):
            assert source.read_at(length, start) == data[start : start + length]
        source.seek(17)
        assert source.read(3) == data[17:20]
        assert source.read() == data[20:]
    with filesystem.open_input_stream(f"{root}/d/random") as source:
        assert source.read(10) + source.read() == data
    for opened in (filesystem.open_input_file, filesystem.open_input_stream):
        with pytest.raises(FileNotFoundError):
            opened(f"{root}/d/none").read()


def test_a_large_file_comes_back(storage: Storage) -> None:
    """Larger than the parts of an upload."""
    filesystem, root = storage.filesystem()
    values = random.Random(9).randbytes(40 << 20)
    table = pa.table({"a": pa.array(memoryview(values).cast("q"))})
    with filesystem.open_output_stream(f"{root}/large.parquet") as sink:
        pq.write_table(
            table, sink, compression="none", use_dictionary=False, row_group_size=1 << 20
        )
    found = pq.read_table(f"{root}/large.parquet", filesystem=filesystem)
    assert found.equals(table)


def test_nothing_is_there_before_it_is_whole(storage: Storage, config: StorageConfig) -> None:
    filesystem, root = storage.filesystem()
    path = f"{root}/w/one"
    sink = filesystem.open_output_stream(path)
    sink.write(bytes(20 << 20))
    assert filesystem.get_file_info(path).type == pafs.FileType.NotFound
    sink.close()
    assert filesystem.get_file_info(path).size == 20 << 20
    if not isinstance(filesystem, pafs.S3FileSystem):  # pyarrow's own makes a file of it
        with pytest.raises(KeyError), filesystem.open_output_stream(f"{root}/w/two") as sink:
            sink.write(bytes(20 << 20))
            raise KeyError
    die_in(half_write, config)
    left = [path for path in names(storage) if not is_temporary(path.rpartition("/")[2])]
    assert {path for path in left if path.startswith(("w/", "half"))} <= {"w/one", "half"}


def test_deletion(storage: Storage) -> None:
    filesystem, root = storage.filesystem()
    for number in range(3):
        write(storage, f"a/{number}", b"x")
    filesystem.delete_file(f"{root}/a/0")
    with pytest.raises(FileNotFoundError):
        filesystem.delete_file(f"{root}/a/0")
    assert names(storage, "a").keys() == {"a/1", "a/2"}
    filesystem.delete_dir(f"{root}/a")
    assert "a/1" not in names(storage)
    write(storage, "b/1", b"x")
    storage.objects().delete(["b/1", "b/none", "none/at/all"])
    storage.objects().delete(["b/none"])
    assert storage.objects().below("b") == []


def test_small_objects(storage: Storage) -> None:
    objects = storage.objects()
    assert objects.get("~sink/a/1") is None
    assert objects.put_if_absent("~sink/a/1", b"first")
    assert not objects.put_if_absent("~sink/a/1", b"second")
    assert objects.get("~sink/a/1") == b"first"
    objects.put("~sink/a/1", b"third")
    objects.put("~sink/a/empty", b"")
    assert [objects.get(f"~sink/a/{name}") for name in ("1", "empty")] == [b"third", b""]
    filesystem, root = storage.filesystem()
    with filesystem.open_input_file(f"{root}/~sink/a/1") as source:
        assert source.read() == b"third"
    objects.delete(["~sink/a/1"])
    assert objects.put_if_absent("~sink/a/1", b"again")
    storage.require_exclusive_put()


def test_more_than_a_page(storage: Storage) -> None:
    objects = storage.objects()
    for number in range(1_100):
        objects.put(f"p/{number:04}", b"")
    assert len(objects.below("p")) == 1_100
    assert len(names(storage, "p")) == 1_100


def test_one_of_many_processes_is_first(storage: Storage, config: StorageConfig) -> None:
    rounds = 20
    found = race(put, config, rounds)
    for number in range(rounds):
        winners = [pid for won, pid in (one[number] for one in found) if won]
        assert len(winners) == 1
        assert storage.objects().get(f"race/{number}") == str(winners[0]).encode()
    left = [one.path for one in storage.objects().below("race")]
    assert len(left) == rounds  # losers have cleaned up


def test_one_commit_of_many_wins(storage: Storage, config: StorageConfig) -> None:
    rounds = 10
    uri = f"{storage.root}/raced"
    options = storage.delta_options() or None
    DeltaTable.create(uri, Schema([Field("a", PrimitiveType("long"))]), storage_options=options)
    found: Any = race(commit, config, rounds)
    winners = Counter(sum(one[number] for one in found) for number in range(rounds))
    assert winners == {1: rounds}
    assert DeltaTable(uri, storage_options=options).version() == rounds


def test_the_clock(storage: Storage) -> None:
    topic = Topic("public", "default", "timed")
    there = storage_clock_ms(storage, topic)
    assert there is not None
    assert abs(there - time.time() * 1000) < 5_000
    check_clock(lambda: int(time.time() * 1000), lambda: storage_clock_ms(storage, topic))
