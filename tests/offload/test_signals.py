"""The first signal lets the running Spark jobs finish, the second ends at once."""

import threading
import uuid
from pathlib import Path

import pytest

from reader.model import Topic
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.publish import Message, publish
from testbed.s3 import S3
from tests.support.running import Settings, Start, check_nothing_lost


@pytest.fixture
def topic(admin: Admin, namespace: str) -> Topic:
    name = Topic.parse(f"{namespace}/orders")
    admin.create_topic(name.full_name)
    return name


def send(cluster: Cluster, admin: Admin, topic: Topic) -> list[Message]:
    messages = [f"{uuid.uuid4()}".encode() for _ in range(100)]
    sent = publish(cluster.service_url, topic.full_name, messages, batch=10, ids=True)
    admin.seal(topic.full_name)
    return sent


@pytest.mark.timeout(900)
def test_ctrl_c(
    cluster: Cluster, admin: Admin, s3: S3, topic: Topic, tmp_path: Path, start: Start
) -> None:
    uri = f"{s3.uri}/{uuid.uuid4()}"
    good = Settings(tmp_path, cluster, uri, s3.storage_options)
    (tmp_path / "slow").mkdir()
    writes, goes_on = threading.Event(), threading.Event()

    def wait() -> bool:
        writes.set()
        return goes_on.wait(300)

    def is_file(method: str, path: str) -> bool:
        return method in ("PUT", "POST") and ".parquet" in path

    with FaultyStore(s3.endpoint) as store:
        settings = Settings(tmp_path / "slow", cluster, uri, s3.options_at(store.endpoint))
        sent = send(cluster, admin, topic)

        # While files are written: twice, at once.
        store.call(is_file, wait, applied=False)
        run = start(settings, "offload", topic.local_name, "--now")
        assert writes.wait(300)
        run.interrupt()
        run.wait_for("stopping after the running jobs")
        assert run.running
        run.interrupt()
        assert run.code(timeout=240) == 130
        goes_on.set()
        assert check_nothing_lost(good.storage, admin, topic, sent) == 0

        # While files are written: once. The commit is finished first.
        writes.clear()
        goes_on.clear()
        store.call(is_file, wait, applied=False)
        run = start(settings, "offload", topic.local_name, "--now")
        assert writes.wait(300)
        run.interrupt()
        run.wait_for("stopping after the running jobs")
        assert run.running
        goes_on.set()
        assert run.code() == 0
        assert "committed as version" in run.err
        assert check_nothing_lost(good.storage, admin, topic, sent) == len(sent)

        # Between rounds: at once.
        sent += send(cluster, admin, topic)
        run = start(settings, "offload", topic.local_name, "--now")
        run.wait_for("committed as version")
        run.interrupt()
        assert run.code() == 0
    assert check_nothing_lost(good.storage, admin, topic, sent) == len(sent)
    assert "Traceback" not in run.err
