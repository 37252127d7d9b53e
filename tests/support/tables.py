"""Tables of many small files, and all rows of a table, read without the product."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from offloader.commit.delta_committer import DeltaCommitter
from offloader.commit.storage_clock import storage_clock_ms
from offloader.config import Config, load_config
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks
from reader.model import Partition, Topic
from reader.storage import Storage
from reader.table import TopicTable
from tests.support.additions import FIELDS, PUBLISHED, addition, open_table

TOPIC = Topic("public", "default", "orders")

DAY_US = 86_400_000_000


def fill(
    storage: Storage,
    ledgers: Sequence[int],
    *,
    partition: int = 0,
    published: Sequence[int] = (),
    fields: pa.Schema = FIELDS,
) -> None:
    """One commit with a file of ten rows for each ledger; ``published``: when, µs."""
    table = TopicTable.open(storage, TOPIC)
    before = table.watermark(Partition(TOPIC, partition)) if table else -1
    parts = [
        addition(
            storage,
            TOPIC,
            [ledger],
            before=before,
            partition=partition,
            published=published[place] if published else PUBLISHED,
            fields=fields,
            statistics=("id",),
        )
        for place, ledger in enumerate(ledgers)
    ]
    whole = replace(
        parts[-1],
        files=tuple(file for one in parts for file in one.files),
        ledgers=tuple(ledger for one in parts for ledger in one.ledgers),
    )
    DeltaCommitter(storage).commit(table, whole)


def all_rows(storage: Storage, version: int | None = None) -> list[str]:
    """Every row as text (NaN is equal to itself there), sorted; columns by name, without NULLs.

    By the paths in the log and pyarrow alone.
    """
    filesystem, directory = storage.directory(TOPIC)
    handle = open_table(storage, TOPIC).handle
    if version is not None:
        handle.load_as_version(version)
    found = []
    for path in pa.table(handle.get_add_actions()).column("path").to_pylist():
        with filesystem.open_input_file(f"{directory}/{path}") as source:
            for row in pq.ParquetFile(source).read().to_pylist():
                found.append(repr(filled(row)))
    return sorted(found)


def filled(value: Any) -> Any:
    """A value without NULLs: a column, or a member, that a file lacks is NULL."""
    if isinstance(value, dict):
        return {k: filled(v) for k, v in sorted(value.items()) if v is not None}
    return value


def maintainer(storage: Storage, *, ahead: float = 0.0, **offload: object) -> TableMaintainer:
    """Maintenance where it is ``ahead`` (s) later; keywords are settings of ``[offload]``."""
    return TableMaintainer(
        storage,
        settings(storage, **offload).offload,
        clocks=Clocks(ms=lambda: int((time.time() + ahead) * 1000)),
        storage_clock_ms=lambda config, topic: storage_ms(config, topic) + int(ahead * 1000),
    )


def storage_ms(storage: Storage, topic: Topic) -> int:
    """The storage's time (ms), which those of the tests tell."""
    found = storage_clock_ms(storage, topic)
    assert found is not None
    return found


def settings(storage: Storage, **offload: object) -> Config:
    return load_config({"storage": storage.config.model_dump(), "offload": offload})


def now_us() -> int:
    return time.time_ns() // 1000


def make_older(directory: Path, days: float, names: Sequence[str] = ("**/*",)) -> None:
    """As if those files had been written so much earlier."""
    for pattern in names:
        for path in directory.glob(pattern):
            if path.is_file():
                at = path.stat().st_mtime - days * 86_400
                os.utime(path, (at, at))
