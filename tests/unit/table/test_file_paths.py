"""A log that names files outside of its table is refused, by whoever reads the table."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from offloader.commit.vacuum import unused_files
from offloader.maintenance.table_files import files_of
from reader.config import StorageConfig
from reader.errors import CorruptError
from reader.model import Partition, Topic
from reader.plan.cold_files import table_files
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from reader.table.file_paths import is_inside, require_inside

TOPIC = Topic("a", "b", "c")
ROWS = pa.table({"__partition": [-1], "__ledgerId": [1], "__entryId": [0], "__publishTime": [5]})

OUTSIDE = [
    "../other/{}",
    "../../b/other/{}",
    "x/../../other/{}",
    "%2e%2e/other/{}",
    "..%2Fother/{}",
    "%252e%252e/other/{}",
    "..\\other\\{}",
    "{root}/a/b/other/{}",
    "%2F{root}/a/b/other/{}",
    "file:{root}/a/b/other/{}",
    "file%3A//{root}/a/b/other/{}",
    "s3://other-bucket/{}",
    "S3A://other-bucket/{}",
    "https://evil.example/{}",
    "a\0b",
    "..",
    "",
]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path)))


def table_with(storage: Storage, root: Path, path: str) -> None:
    """The topic's table, whose log names ``path``; beside it another table, with the file."""
    other, ours = root / "a" / "b" / "other", Path(storage.table_uri(TOPIC))
    write_deltalake(str(other), ROWS)
    shutil.copytree(other, ours)
    [file] = (one.name for one in other.glob("*.parquet"))
    (ours / file).unlink()
    log = ours / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for one in actions:
        if "add" in one:
            one["add"]["path"] = path.format(file, root=root)
    log.write_text("\n".join(map(json.dumps, actions)))


READERS: dict[str, Callable[[TopicTable], Any]] = {
    "files": lambda table: table.files(),
    "plan": table_files,
    "maintenance": files_of,
    "rows": lambda table: list(table.batches(["__ledgerId"])),
    "count": lambda table: table.dataset().count_rows(),
    "partitions": lambda table: table.partitions(),
    "snapshot": lambda table: table.is_empty,
    "paths": lambda table: table.paths(),
}


@pytest.mark.parametrize("path", OUTSIDE)
def test_nobody_follows_it(storage: Storage, tmp_path: Path, path: str) -> None:
    table_with(storage, tmp_path, path)
    table = TopicTable.open(storage, TOPIC)
    assert table is not None
    for read in READERS.values():
        with pytest.raises(CorruptError, match="names a file outside of it"):
            read(table)
    with pytest.raises(CorruptError):
        unused_files(storage, TOPIC, 1 << 60)


def test_what_lies_below_is_read(storage: Storage, tmp_path: Path) -> None:
    table_with(storage, tmp_path, "{}")
    table = TopicTable.open(storage, TOPIC)
    assert table is not None
    assert table.files().num_rows == 1
    assert table.partitions() == [Partition(TOPIC, -1)]


def test_names_that_are_fine() -> None:
    names = [
        "p0-17-5ee6a54f-2ba4-4d6b-8f3c-0f4f1f0f0f0f.zstd.parquet",
        "date=2026-01-01/part-0.parquet",
        "date=2026-01-01%2010%3A00/part-0.parquet",
        "a..b.parquet",
        "..a/b.parquet",
        "100%25.parquet",
        "%",
    ]
    assert all(is_inside(one) for one in names)
    require_inside(pa.chunked_array([names]), "nowhere")
