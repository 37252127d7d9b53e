"""The daemon maintains its tables by itself, and says what others have done to them."""

import os
from pathlib import Path

import pytest

from offloader.parquet.file_names import data_file
from reader.config import StorageConfig
from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.support.additions import open_table
from tests.support.running import Settings, Start
from tests.support.tables import TOPIC, all_rows, fill


@pytest.mark.timeout(900)
def test_beside_its_turns(
    cluster: Cluster, admin: Admin, namespace: str, tmp_path: Path, start: Start
) -> None:
    topic = Topic.parse(f"{namespace}/orders")
    admin.create_topic(topic.full_name)
    publish(cluster.service_url, topic.full_name, [b"1", b"2"])
    admin.seal(topic.full_name)
    settings = Settings(
        tmp_path, cluster, str(tmp_path / "lake"), maintenance_interval="1s", max_age="1s"
    )
    orphan = Path(settings.storage.root, topic.local_name, data_file(0, 1))
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"half a file")
    os.utime(orphan, (1.7e9, 1.7e9))

    run = start(settings, "offload", topic.local_name)
    run.wait_for("committed as version 1")
    run.wait_for("1 unused files (11 B) deleted")
    assert not orphan.exists()
    table = TopicTable.open(settings.storage, topic)
    assert table is not None
    table.handle.restore(0)
    run.wait_for("is not ours: RESTORE by delta-rs")
    run.interrupt()
    assert run.code() == 0, run.err

    status = start(settings, "status", topic.local_name)
    assert status.code() == 0
    assert "is not ours: RESTORE by delta-rs" in status.out

    # Its failures are not those of its turns.
    table.handle.alter.set_table_properties({"delta.appendOnly": "false"})
    log = Path(orphan.parent, "_delta_log")
    (log / f"{table.handle.version() + 1:020d}.json").write_text("{")
    run = start(settings, "offload", topic.local_name)
    run.wait_for("maintenance: ")
    run.interrupt()
    run.code()
    status = start(settings, "status", topic.local_name)
    status.code()
    assert "last maintenance (" in status.out


@pytest.mark.parametrize("step", ["maintenance-written", "maintenance-committed"])
def test_kill_in_the_middle(tmp_path: Path, start: Start, cluster: Cluster, step: str) -> None:
    storage = open_storage(StorageConfig(uri=str(tmp_path / "lake")))
    fill(storage, range(1, 9))
    rows = all_rows(storage)
    run = Settings(tmp_path, cluster, storage.root)
    name = "public/default/orders"
    assert start(run, "maintain", name, kill=step).code() == -9
    assert all_rows(storage) == rows
    assert len(open_table(storage, TOPIC).paths()) == (8 if step == "maintenance-written" else 1)
    again = start(run, "maintain", name, "--dry-run")
    assert again.code() == 0, again.err
    assert ("would be" in again.out) == (step == "maintenance-written")
    again = start(run, "maintain", name)
    assert again.code() == 0, again.err
    assert all_rows(storage) == rows
    assert len(open_table(storage, TOPIC).paths()) == 1
    assert ("8 files" in again.out) == (step == "maintenance-written")
