"""A storage's client as a filesystem of pyarrow's, over a store in memory."""

import gc
import time
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from obstore.store import MemoryStore

from reader.storage.stores import is_temporary, temporary_name
from reader.storage.stores.arrow_filesystem import arrow_filesystem
from reader.storage.stores.obstore_client import ObstoreClient
from reader.storage.stores.store_client import Buffer

ROOT = "box/lake"


@pytest.fixture
def client() -> ObstoreClient:
    return ObstoreClient(MemoryStore())


@pytest.fixture
def filesystem(client: ObstoreClient) -> pafs.FileSystem:
    return arrow_filesystem(client, ROOT, "test")


def put(filesystem: pafs.FileSystem, path: str, data: bytes = b"x") -> None:
    with filesystem.open_output_stream(f"{ROOT}/{path}") as sink:
        sink.write(data)


def test_what_it_says_of_files(filesystem: pafs.FileSystem) -> None:
    before = time.time() - 1
    put(filesystem, "a/one", b"abc")
    asked = [f"{ROOT}/a/one", f"{ROOT}/a", f"{ROOT}/b", ROOT, f"{ROOT}/"]
    one, *others = filesystem.get_file_info(asked)
    assert (one.path, one.type, one.size) == (f"{ROOT}/a/one", pafs.FileType.File, 3)
    assert before < one.mtime_ns / 1e9 < time.time() + 1
    assert [each.type.name for each in others] == [
        "Directory",
        "NotFound",
        "Directory",
        "Directory",
    ]
    assert filesystem.type_name == "py::test"


def test_listings(filesystem: pafs.FileSystem) -> None:
    for path in ("a/1", "a/b/c/2", "ab/3"):
        put(filesystem, path)

    def listed(directory: str, **how: bool) -> list[str]:
        selector = pafs.FileSelector(f"{ROOT}{directory}", **how)
        found = filesystem.get_file_info(selector)
        return sorted(
            one.path.removeprefix(f"{ROOT}/") + ("/" if one.type.name == "Directory" else "")
            for one in found
        )

    assert listed("") == ["a/", "ab/"]
    assert listed("/a") == ["a/1", "a/b/"]
    assert listed("/a", recursive=True) == ["a/1", "a/b/", "a/b/c/", "a/b/c/2"]
    assert listed("/no", allow_not_found=True) == []
    with pytest.raises(FileNotFoundError, match="there is no directory box/lake/no"):
        listed("/no")


def test_an_empty_storage_is_no_error(filesystem: pafs.FileSystem) -> None:
    assert filesystem.get_file_info(pafs.FileSelector(ROOT)) == []


@pytest.mark.parametrize("path", ["other/x", "box/lakes/x", "/box/lake/x"])
def test_nothing_lies_beside_the_root(filesystem: pafs.FileSystem, path: str) -> None:
    with pytest.raises(FileNotFoundError, match="does not lie below box/lake"):
        filesystem.open_output_stream(path)


def test_reading(filesystem: pafs.FileSystem) -> None:
    data = bytes(range(256)) * 20_000
    put(filesystem, "d", data)
    with filesystem.open_input_file(f"{ROOT}/d") as source:
        assert source.size() == len(data)
        assert source.read_at(5, 1000) == data[1000:1005]
        assert source.read_at(100, len(data) - 3) == data[-3:]
        source.seek(-4, 2)
        assert source.read(2) == data[-4:-2]
        assert source.tell() == len(data) - 2
        source.seek(0)
        assert source.read() == data
    with filesystem.open_input_stream(f"{ROOT}/d") as source:
        assert source.read(3) == data[:3]
        assert source.read() == data[3:]
        assert source.read() == b""
    for opened in (filesystem.open_input_file, filesystem.open_input_stream):
        with pytest.raises(FileNotFoundError):
            opened(f"{ROOT}/none")


def test_parquet_and_datasets(filesystem: pafs.FileSystem) -> None:
    table = pa.table({"a": range(100_000), "b": [str(n) for n in range(100_000)]})
    for name in ("x", "y"):
        with filesystem.open_output_stream(f"{ROOT}/t/{name}.parquet") as sink:
            pq.write_table(table, sink, row_group_size=10_000)
    sub = pafs.SubTreeFileSystem(f"{ROOT}/t", filesystem)
    found = pads.dataset(["x.parquet", "y.parquet"], filesystem=sub, format="parquet")
    assert found.count_rows() == 200_000
    assert found.to_table(columns=["b"], filter=pads.field("a") == 77).to_pydict() == {
        "b": ["77", "77"]
    }
    with pq.ParquetFile(f"{ROOT}/t/x.parquet", filesystem=filesystem, pre_buffer=True) as file:
        assert file.read().equals(table)


@pytest.mark.parametrize("columns", [["c", "d"], ["a"]])
def test_other_columns_are_not_read(client: ObstoreClient, columns: list[str]) -> None:
    """And those that lie side by side come at once, a row group each."""
    asked: list[int] = []

    class Counting(ObstoreClient):
        def ranges(self, path: str):  # type: ignore[no-untyped-def]
            inner = super().ranges(path)

            class Wrapper:
                size = inner.size

                def read(self, start: int, length: int) -> Buffer:
                    asked.append(length)
                    return inner.read(start, length)

            return Wrapper()

    filesystem = arrow_filesystem(Counting(MemoryStore()), ROOT, "test")
    draw = np.random.default_rng(7).random
    table = pa.table({name: draw(100_000) for name in "abcdefghij"})
    with filesystem.open_output_stream(f"{ROOT}/x") as sink:
        pq.write_table(table, sink, row_group_size=25_000, compression="none", use_dictionary=False)
    with pq.ParquetFile(f"{ROOT}/x", filesystem=filesystem) as file:
        read = pa.Table.from_batches(file.iter_batches(columns=columns))
    assert read.equals(table.select(columns))
    assert len(asked) == 1 + 4  # the footer, and the row groups
    assert sum(asked) < 8_200_000 * len(columns) / 10 + (64 << 10)


def test_many_small_writes_are_few_of_the_stores(client: ObstoreClient) -> None:
    sizes: list[int] = []

    class Counting(ObstoreClient):
        def writing(self, path: str):  # type: ignore[no-untyped-def]
            inner = super().writing(path)

            class Wrapper:
                def write(self, data: Buffer) -> None:
                    sizes.append(len(data))
                    inner.write(data)

                finish, abandon = inner.finish, inner.abandon

            return Wrapper()

    filesystem = arrow_filesystem(Counting(MemoryStore()), ROOT, "test")
    with filesystem.open_output_stream(f"{ROOT}/x") as sink:
        for number in range(3000):
            sink.write(number.to_bytes(4) * 250)
            assert sink.tell() == 1000 * (number + 1)
    assert sum(sizes) == 3_000_000
    assert len(sizes) <= 4
    with filesystem.open_input_file(f"{ROOT}/x") as source:
        assert source.read_at(4, 2_999_000) == (2999).to_bytes(4)


# -- what is not finished --------------------------------------------------------------------------


def there(filesystem: pafs.FileSystem) -> list[str]:
    found = filesystem.get_file_info(pafs.FileSelector(ROOT, recursive=True))
    return [one.base_name for one in found if one.type == pafs.FileType.File]


def test_a_block_that_raises_leaves_nothing(filesystem: pafs.FileSystem) -> None:
    with pytest.raises(KeyError), filesystem.open_output_stream(f"{ROOT}/a") as sink:
        sink.write(b"x" * (20 << 20))
        raise KeyError
    sink = filesystem.open_output_stream(f"{ROOT}/b")
    with pytest.raises(KeyError):
        try:
            sink.write(b"x")
            raise KeyError
        finally:
            sink.close()
    assert there(filesystem) == []


def test_what_is_dropped_leaves_nothing(filesystem: pafs.FileSystem) -> None:
    sink = filesystem.open_output_stream(f"{ROOT}/a")
    sink.write(b"x" * (20 << 20))
    sink.flush()
    del sink
    gc.collect()
    assert there(filesystem) == []


def test_a_file_that_is_written_because_of_an_error_is_there(filesystem: pafs.FileSystem) -> None:
    try:
        raise KeyError
    except KeyError:
        put(filesystem, "a")
        with pytest.raises(ValueError, match="no"):
            put_and_raise(filesystem)
    for one in failing(filesystem):
        assert one
    try:
        raise KeyError
    except KeyError:
        sink = filesystem.open_output_stream(f"{ROOT}/d")
    sink.write(b"x")
    sink.close()  # the error that was handled when it was opened is long over
    assert there(filesystem) == ["a", "c", "d"]


def put_and_raise(filesystem: pafs.FileSystem) -> None:
    with filesystem.open_output_stream(f"{ROOT}/b"):
        raise ValueError("no")


def failing(filesystem: pafs.FileSystem) -> Iterator[bool]:
    """A generator that is resumed while its caller handles nothing."""
    with filesystem.open_output_stream(f"{ROOT}/c") as sink:
        yield True
        sink.write(b"x")


def test_an_error_of_the_store_is_an_oserror(filesystem: pafs.FileSystem) -> None:
    class Refusing(ObstoreClient):
        def writing(self, path: str):  # type: ignore[no-untyped-def]
            raise OSError("no space here")

    refusing = arrow_filesystem(Refusing(MemoryStore()), ROOT, "test")
    with pytest.raises(OSError, match="no space here"):
        refusing.open_output_stream(f"{ROOT}/x")


def test_deletion(filesystem: pafs.FileSystem) -> None:
    for path in ("a/1", "a/2", "b/3"):
        put(filesystem, path)
    filesystem.delete_file(f"{ROOT}/a/1")
    with pytest.raises(FileNotFoundError):
        filesystem.delete_file(f"{ROOT}/a/1")
    filesystem.delete_dir(f"{ROOT}/a")
    assert there(filesystem) == ["3"]
    filesystem.create_dir(f"{ROOT}/c/d", recursive=True)
    assert there(filesystem) == ["3"]
    acts: tuple[Callable[[], object], ...] = (
        lambda: filesystem.move(f"{ROOT}/b/3", f"{ROOT}/b/4"),
        lambda: filesystem.copy_file(f"{ROOT}/b/3", f"{ROOT}/b/4"),
        lambda: filesystem.open_append_stream(f"{ROOT}/b/3"),
    )
    for act in acts:
        with pytest.raises(NotImplementedError):
            act()


@pytest.mark.parametrize(
    ("name", "temporary"),
    [
        (".00000000000000000007.json.tmp.3", True),
        (".x.tmp.0a9f", True),
        ("part-1.parquet", False),
        ("x.tmp.3", False),
        (".x.tmp.", False),
        (".x.tmp.zz", False),
        ("_last_checkpoint", False),
    ],
)
def test_names_of_what_is_being_written(name: str, temporary: bool) -> None:
    """As the HDFS layer of delta-rs names them, too."""
    assert is_temporary(name) == temporary
    assert is_temporary(temporary_name(name))
