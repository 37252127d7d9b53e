"""kill -9 at each step, two offloaders at once, failing tasks: each message exactly once."""

import uuid
from pathlib import Path

import pytest

from reader.model import Topic
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.faults import FaultyStore
from testbed.publish import Message, publish
from testbed.s3 import S3
from tests.support.running import (
    Settings,
    Start,
    check_nothing_lost,
    in_table,
    ledgers_of,
    sent_ids,
)


@pytest.fixture
def trimming(admin: Admin, namespace: str) -> str:
    """A namespace where Pulsar deletes at once what no subscription holds."""
    admin.set_retention(namespace, 0, 0)
    return namespace


@pytest.fixture
def topic(admin: Admin, trimming: str) -> Topic:
    """Three partitions, with the hold: nothing is deleted before the offloader's first run."""
    name = Topic.parse(f"{trimming}/orders")
    admin.create_topic(name.full_name, 3)
    for partition in admin.partitions(name.full_name):
        admin.create_subscription(partition, "pulsar-lake")
    return name


def send(cluster: Cluster, admin: Admin, topic: Topic, count: int, ledgers: int) -> list[Message]:
    """``count`` messages to each of ``ledgers`` ledgers, sealed."""
    sent: list[Message] = []
    for _ in range(ledgers):
        batch = [Message(f"{uuid.uuid4()}-{n}".encode(), key=f"key-{n % 11}") for n in range(count)]
        sent += publish(cluster.service_url, topic.full_name, batch, batch=10, ids=True)
        admin.seal(topic.full_name)
    return sent


@pytest.mark.timeout(900)
def test_kill_at_each_step_and_then_two_at_once(
    cluster: Cluster, admin: Admin, s3: S3, topic: Topic, tmp_path: Path, start: Start
) -> None:
    settings = Settings(tmp_path, cluster, f"{s3.uri}/{uuid.uuid4()}", s3.storage_options)
    sent = send(cluster, admin, topic, 200, 2)
    rows = 0
    for step in ("tasks-running", "files-written", "committed"):
        run = start(settings, "offload", topic.local_name, "--once", "--now", kill=step)
        assert run.code() == -9, run.err
        rows = check_nothing_lost(settings.storage, admin, topic, sent)
        assert rows == (len(sent) if step == "committed" else 0)
        if step != "committed":
            sent += send(cluster, admin, topic, 50, 1)
    # Killed after the commit, before the hold moved: all ledgers are still there.
    assert {row_id[1] for row_id in sent_ids(sent)} <= {
        ledger for ledgers in ledgers_of(admin, topic).values() for ledger in ledgers
    }
    sent += send(cluster, admin, topic, 300, 3)
    runs = [start(settings, "offload", topic.local_name, "--once", "--now") for _ in range(2)]
    assert [run.code() for run in runs] == [0, 0], [run.err for run in runs]
    assert sum("committed as version" in run.err for run in runs) >= 1
    assert check_nothing_lost(settings.storage, admin, topic, sent) == len(sent)
    # Only now may Pulsar delete them: one open ledger a partition is left.
    for partition in admin.partitions(topic.full_name):
        admin.trim(partition)
    wait_until(
        "the trimmed ledgers",
        lambda: all(len(ledgers) == 1 for ledgers in ledgers_of(admin, topic).values()),
    )
    assert check_nothing_lost(settings.storage, admin, topic, sent) == len(sent)


@pytest.mark.timeout(600)
@pytest.mark.proxied
@pytest.mark.parametrize("kind", ["refuse", "apply_then_500"])
def test_a_task_that_fails_is_run_again(
    cluster: Cluster, admin: Admin, s3: S3, topic: Topic, tmp_path: Path, start: Start, kind: str
) -> None:
    """Its first file may be there all the same: it is not part of the table."""
    uri = f"{s3.uri}/{uuid.uuid4()}"
    sent = send(cluster, admin, topic, 100, 1)

    def is_file(method: str, path: str) -> bool:
        return method in ("PUT", "POST") and ".parquet" in path

    with FaultyStore(s3.endpoint) as store:
        settings = Settings(tmp_path, cluster, uri, s3.options_at(store.endpoint))
        rule = getattr(store, kind)(is_file, 12)
        run = start(settings, "offload", topic.local_name, "--once", "--now")
        assert run.code() == 0, run.err
        assert rule.hits == 12
    good = Settings(tmp_path, cluster, uri, s3.storage_options)
    assert check_nothing_lost(good.storage, admin, topic, sent) == len(sent)
    assert len(in_table(good.storage, topic)) == len(sent)


@pytest.mark.timeout(600)
def test_one_failing_topic_stops_no_other(
    cluster: Cluster, admin: Admin, trimming: str, topic: Topic, tmp_path: Path, start: Start
) -> None:
    settings = Settings(tmp_path, cluster, str(tmp_path / "lake"), topics=[f"{trimming}/*"])
    bad = Topic.parse(f"{trimming}/bad")
    admin.create_topic(bad.full_name)
    admin.create_subscription(bad.full_name, "pulsar-lake")
    publish(cluster.service_url, bad.full_name, [b"x"])
    admin.seal(bad.full_name)
    # A file where the table's directory should be: this topic alone cannot be written.
    place = tmp_path / "lake" / bad.tenant / bad.namespace / bad.name
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    sent = send(cluster, admin, topic, 50, 1)
    run = start(settings, "offload", "--once", "--now")
    assert run.code() == 1, run.err
    assert f"error: {bad}" in run.err
    assert "Traceback" not in run.err
    assert check_nothing_lost(settings.storage, admin, topic, sent) == len(sent)
    status = start(settings, "status", "--format", "json")
    assert status.code() == 0, status.err
    assert f"error: {bad}" not in status.err
    assert str(bad) in status.out
    assert "last turn (1 in a row)" in status.out
