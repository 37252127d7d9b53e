"""Filters of rows in memory, and what a read loads."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from reader.plan import CompactedRead, RowFilter
from reader.sources import RowFormat, compacted
from reader.sources.reading import matching, read_rows

_WHERE = pc.field("value") > 2


def _batch(values: np.ndarray) -> pa.RecordBatch:
    buffers = [None, pa.py_buffer(values)]
    return pa.record_batch({"value": pa.Array.from_buffers(pa.int64(), len(values), buffers)})


def test_rows_that_match() -> None:
    batch = _batch(np.arange(5))
    assert matching(batch, _WHERE) == batch.slice(3)
    assert matching(batch, pc.field("value") > 9) == batch.slice(0, 0)
    with pytest.raises(pa.ArrowInvalid, match="nope"):
        matching(batch, pc.field("nope") > 2)


def test_rows_are_in_one_piece_and_in_order() -> None:
    values = np.arange(300_000)  # several of what Arrow filters at once
    found = matching(_batch(values), pc.field("value") != 7)
    np.testing.assert_array_equal(found.column("value").to_numpy(), np.delete(values, 7))


def test_no_thread_of_arrows_drops_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asked for the interpreter's lock, as the interpreter ends, aborts the process."""
    dropped: Counter[int] = Counter()

    class Values(np.ndarray):
        def __del__(self) -> None:
            dropped[threading.get_ident()] += 1

    columns = pa.schema([("value", pa.int64())])
    rows, where = RowFormat(columns, (), columns), RowFilter(_WHERE, ("value",))
    read = CompactedRead(cast(Any, None))

    def one_batch(*_: Any) -> Iterator[pa.RecordBatch]:
        yield _batch(np.arange(5).view(Values))

    monkeypatch.setattr(compacted, "read_compacted", one_batch)
    for _ in range(3000):  # with ``batch.filter`` some 40 are dropped elsewhere
        found = read_rows(cast(Any, None), read, rows, where)
        assert [one.num_rows for one in found] == [2]
    assert {*dropped} == {threading.get_ident()}


_FILES_ALONE = """
import sys
from types import SimpleNamespace
import pyarrow as pa, pyarrow.parquet as pq
from reader.config import StorageConfig
from reader.model import Topic
from reader.plan import ColdFile, FilesRead
from reader.sources import RowFormat, read_rows
from reader.storage import open_storage

columns, topic = pa.schema([("value", pa.int64())]), Topic("a", "b", "t")
storage = open_storage(StorageConfig(uri=sys.argv[1]))
filesystem, directory = storage.directory(topic)
filesystem.create_dir(directory)
pq.write_table(pa.table([[1, 2]], columns), f"{directory}/f", filesystem=filesystem)
read = FilesRead(topic, 0, (ColdFile("f", 1, 2, None),))
form = RowFormat(columns, (), columns)
rows = sum(one.num_rows for one in read_rows(SimpleNamespace(storage=storage), read, form))
print(rows, "numba" in sys.modules)
"""


def test_files_are_read_without_kernels(tmp_path: Path) -> None:
    """They take most of a second to load, which the first rows would wait for."""
    done = subprocess.run(
        [sys.executable, "-c", _FILES_ALONE, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "2 False\n"
