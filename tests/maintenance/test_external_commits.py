"""Commits of others are seen, named, and said once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from offloader.commit.delta_committer import DeltaCommitter
from offloader.commit.external_commits import ExternalCommits, external_commits
from offloader.config import load_config
from offloader.output import Replacement
from offloader.service.status import topic_status
from reader.clients import Clients
from reader.config import StorageConfig
from reader.errors import CommitConflictError, UnsupportedError
from reader.pulsar.admin import AdminClient
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from tests.support.additions import addition, open_table
from tests.support.tables import DAY_US, TOPIC, fill, maintainer, now_us


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


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
def test_what_external_writers_do_is_named(
    storage: Storage,
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
    [found] = external_commits(storage, TOPIC, versions)
    assert (found.version, found.operation) == (version + 1, operation)
    assert found.touches_files == touches
    assert abs(found.at_ms - now_us() // 1000) < 600_000
    text = str(found)
    assert f"version {version + 1} " in text
    assert "delta-rs" in text
    assert consequence in text

    config = load_config({"storage": storage.config.model_dump(), "pulsar": UNREACHABLE})
    with AdminClient(config.pulsar) as admin:
        status = topic_status(
            Clients(config, admin=admin),
            config.offload.subscription,
            TOPIC,
            clock_ms=now_us() // 1000,
            failures={},
        )
    assert (text in status.errors) == touches
    assert (text in status.warnings) != touches


UNREACHABLE = {"admin_url": "http://127.0.0.1:9", "timeout": "1s"}


def test_nothing_of_ours_is_external(storage: Storage) -> None:
    """Nor new columns, properties, compaction and expiry."""
    now = now_us()
    fill(storage, range(1, 9), published=[now - 40 * DAY_US] * 8)
    fill(storage, range(9, 30), fields=pa.schema([("amount", pa.float64()), ("note", pa.string())]))
    maintainer(storage).maintain(TOPIC)
    maintainer(storage, retention="30d").maintain(TOPIC)
    table = open_table(storage, TOPIC)
    operations = {one.operation for one in table.commits()}
    assert {"CREATE TABLE", "WRITE", "ADD COLUMN"} <= operations
    assert external_commits(storage, TOPIC, range(table.version + 1)) == []


def test_each_is_said_once(storage: Storage) -> None:
    fill(storage, [1])
    fill(storage, [2])
    external = ExternalCommits(storage)
    assert external.since_last(open_table(storage, TOPIC)) == []
    restore(open_table(storage, TOPIC).handle)
    delete(open_table(storage, TOPIC).handle)
    found = external.since_last(open_table(storage, TOPIC))
    assert [one.operation for one in found] == ["RESTORE", "DELETE"]
    assert external.since_last(open_table(storage, TOPIC)) == []
    fill(storage, [3])
    assert external.since_last(open_table(storage, TOPIC)) == []


def test_an_offloader_that_was_not_there_hears_of_it_too(storage: Storage) -> None:
    fill(storage, [1])
    fill(storage, [2])
    restore(open_table(storage, TOPIC).handle)
    properties(open_table(storage, TOPIC).handle)
    found = ExternalCommits(storage).since_last(open_table(storage, TOPIC))
    assert [one.operation for one in found] == ["RESTORE", "SET TBLPROPERTIES"]
    fill(storage, [3])
    assert ExternalCommits(storage).since_last(open_table(storage, TOPIC)) == []


def _plan(table: TopicTable) -> Replacement:
    return Replacement({min(table.paths()): 1}, (), False, {})


def test_a_commit_of_theirs_since_the_plan(storage: Storage) -> None:
    """It may have given a file of ours another content: a path with a deletion vector."""
    fill(storage, [1, 2])
    planned = open_table(storage, TOPIC)
    properties(open_table(storage, TOPIC).handle)
    with pytest.raises(CommitConflictError, match=r"version 2 .* is not ours"):
        DeltaCommitter(storage).replace(planned, _plan(planned))
    assert len(open_table(storage, TOPIC).paths()) == 2
    fresh = open_table(storage, TOPIC)
    assert len(DeltaCommitter(storage).replace(fresh, _plan(fresh)).paths()) == 1


def test_a_commit_of_theirs_right_after_ours(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was planned before both is not committed on top of theirs."""
    fill(storage, [1, 2])
    planned = open_table(storage, TOPIC)
    real = DeltaTable.create_write_transaction

    def commit_and_be_followed(self: DeltaTable, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        monkeypatch.undo()
        properties(open_table(storage, TOPIC).handle)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit_and_be_followed)
    after = DeltaCommitter(storage).replace(planned, _plan(planned))
    assert after.version == planned.version + 1
    with pytest.raises(CommitConflictError, match="is not ours"):
        DeltaCommitter(storage).replace(after, _plan(after))


def deletion_vectors(table: TopicTable) -> None:
    table.handle.alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )


def renamed_columns(table: TopicTable) -> None:
    _write(table, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}})


def mapped_columns(table: TopicTable) -> None:
    first = Path(table.uri, "_delta_log", f"{0:020d}.json").read_text().splitlines()
    [metadata] = [one["metaData"] for one in map(json.loads, first) if "metaData" in one]
    metadata["configuration"]["delta.columnMapping.mode"] = "id"
    _write(table, {"metaData": metadata})


def _write(table: TopicTable, action: dict[str, Any]) -> None:
    path = Path(table.uri, "_delta_log", f"{table.version + 1:020d}.json")
    path.write_text(json.dumps({"commitInfo": {"timestamp": 0}}) + "\n" + json.dumps(action))


@pytest.mark.parametrize(
    ("act", "name"),
    [
        (deletion_vectors, "deletionVectors"),
        (renamed_columns, "columnMapping"),
        (mapped_columns, "columnMapping"),
    ],
)
def test_a_table_whose_protocol_is_not_ours_is_left_alone(
    storage: Storage, act: Callable[[TopicTable], None], name: str
) -> None:
    fill(storage, range(1, 9))
    act(open_table(storage, TOPIC))
    table = open_table(storage, TOPIC)
    with pytest.raises(UnsupportedError, match=name):
        maintainer(storage).maintain(TOPIC)
    with pytest.raises(UnsupportedError, match=name):
        DeltaCommitter(storage).replace(table, _plan(table))
    with pytest.raises(UnsupportedError, match=name):
        DeltaCommitter(storage).commit(table, addition(storage, TOPIC, [9], before=8))
    assert open_table(storage, TOPIC).version == table.version
