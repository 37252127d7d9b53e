"""The first signal lets the running commit finish, the second ends at once."""

from __future__ import annotations

import uuid
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reader.model import Topic
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.proxy import TcpProxy
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


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ctrl_c(
    cluster: Cluster, admin: Admin, s3: S3, topic: Topic, tmp_path: Path, start: Start
) -> None:
    uri = f"{s3.uri}/{uuid.uuid4()}"
    good = Settings(tmp_path, cluster, uri, s3.storage_options)
    (tmp_path / "proxied").mkdir()
    with TcpProxy(urlsplit(s3.endpoint).netloc) as proxy:
        options = s3.options_at(f"http://{proxy.address}")
        settings = Settings(tmp_path / "proxied", cluster, uri, options)
        sent = send(cluster, admin, topic)

        # While files are written: twice, at once.
        run = start(settings, "offload", topic.local_name, "--now")
        run.wait_for("offloading 1 ledgers")
        proxy.stall()
        run.interrupt()
        run.wait_for("stopping after the running commit")
        assert run.running
        run.interrupt()
        assert run.code(timeout=10) == 130
        proxy.resume()
        assert check_nothing_lost(good.storage, admin, topic, sent) == 0

        # While files are written: once. The commit is finished first.
        run = start(settings, "offload", topic.local_name, "--now")
        run.wait_for("offloading 1 ledgers")
        proxy.stall()
        run.interrupt()
        run.wait_for("stopping after the running commit")
        assert run.running
        proxy.resume()
        assert run.code() == 0
        assert "committed as version" in run.err
        assert check_nothing_lost(good.storage, admin, topic, sent) == len(sent)

        # Between rounds: at once.
        sent += send(cluster, admin, topic)
        run = start(settings, "offload", topic.local_name, "--now")
        run.wait_for("committed as version")
        run.interrupt()
        assert run.code(timeout=30) == 0
    assert check_nothing_lost(good.storage, admin, topic, sent) == len(sent)
    assert "Traceback" not in run.err
