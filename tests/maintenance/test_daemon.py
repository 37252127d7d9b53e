"""The daemon maintains its tables by itself, and says what others have done to them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from offloader.parquet.file_names import data_file
from reader.model import Topic
from reader.table import TopicTable
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.support.running import Settings, Start


@pytest.mark.long
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
