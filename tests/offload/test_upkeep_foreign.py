"""Commits of others are seen, named, and said once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from offloader.foreign import ForeignWatch, foreign_commits
from offloader.status import topic_status
from reader.admin import AdminClient
from reader.config import StorageConfig, load_config
from tests.offload.additions import open_table
from tests.offload.tables import DAY_US, TOPIC, fill, now_us, tender


@pytest.fixture
def storage(tmp_path: Path) -> StorageConfig:
    return StorageConfig(uri=str(tmp_path / "lake"))


def restore(table: DeltaTable) -> None:
    table.restore(1)


def delete(table: DeltaTable) -> None:
    table.delete("id > 5")


def overwrite(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table().slice(0, 3), mode="overwrite")


def optimize(table: DeltaTable) -> None:
    table.optimize.compact()


def properties(table: DeltaTable) -> None:
    table.alter.set_table_properties({"delta.appendOnly": "false"})


@pytest.mark.parametrize(
    ("act", "operation", "touches", "consequence"),
    [
        (restore, "RESTORE", True, "a RESTORE to version 2 takes them back"),
        (delete, "DELETE", True, "rows may be missing"),
        (overwrite, "WRITE", True, "rows may be missing"),
        (optimize, "OPTIMIZE", True, "statistics of floats"),
        (properties, "SET TBLPROPERTIES", False, "only the offloader may commit"),
    ],
)
def test_what_strangers_do_is_named(
    storage: StorageConfig,
    act: Callable[[DeltaTable], None],
    operation: str,
    touches: bool,
    consequence: str,
) -> None:
    fill(storage, [1])
    fill(storage, [2])
    version = open_table(storage, TOPIC).version
    act(open_table(storage, TOPIC).handle)
    fill(storage, [3])
    versions = range(open_table(storage, TOPIC).version + 1)
    [found] = foreign_commits(storage, TOPIC, versions)
    assert (found.version, found.operation) == (version + 1, operation)
    assert found.touches_files == touches
    assert abs(found.at_ms - now_us() // 1000) < 600_000
    text = str(found)
    assert f"version {version + 1} " in text
    assert "delta-rs" in text
    assert consequence in text

    config = load_config({"storage": storage.model_dump(), "pulsar": UNREACHABLE})
    with AdminClient(config.pulsar) as admin:
        status = topic_status(config, admin, TOPIC, clock_ms=now_us() // 1000, failures={})
    assert (text in status.errors) == touches
    assert (text in status.warnings) != touches


UNREACHABLE = {"admin_url": "http://127.0.0.1:9", "timeout": "1s"}


def test_nothing_of_ours_is_foreign(storage: StorageConfig) -> None:
    """Nor new columns, properties, compaction and expiry."""
    now = now_us()
    fill(storage, range(1, 9), published=[now - 40 * DAY_US] * 8)
    fill(storage, range(9, 30), fields=pa.schema([("amount", pa.float64()), ("note", pa.string())]))
    tender(storage).tend(TOPIC)
    tender(storage, retention="30d").tend(TOPIC)
    table = open_table(storage, TOPIC)
    operations = {info["operation"] for info in table.commits()}
    assert {"CREATE TABLE", "WRITE", "ADD COLUMN"} <= operations
    assert foreign_commits(storage, TOPIC, range(table.version + 1)) == []


def test_each_is_said_once(storage: StorageConfig) -> None:
    fill(storage, [1])
    fill(storage, [2])
    watch = ForeignWatch(storage)
    assert watch.news(open_table(storage, TOPIC)) == []
    restore(open_table(storage, TOPIC).handle)
    delete(open_table(storage, TOPIC).handle)
    found = watch.news(open_table(storage, TOPIC))
    assert [one.operation for one in found] == ["RESTORE", "DELETE"]
    assert watch.news(open_table(storage, TOPIC)) == []
    fill(storage, [3])
    assert watch.news(open_table(storage, TOPIC)) == []


def test_an_offloader_that_was_not_there_hears_of_it_too(storage: StorageConfig) -> None:
    fill(storage, [1])
    fill(storage, [2])
    restore(open_table(storage, TOPIC).handle)
    properties(open_table(storage, TOPIC).handle)
    found = ForeignWatch(storage).news(open_table(storage, TOPIC))
    assert [one.operation for one in found] == ["RESTORE", "SET TBLPROPERTIES"]
    fill(storage, [3])
    assert ForeignWatch(storage).news(open_table(storage, TOPIC)) == []
