"""Servers that die under a stream: it goes on by itself, and each message comes once."""

from pathlib import Path

import pytest

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import BookieProcess, ProcessCluster
from tests.conftest import unique_name
from tests.spark.stream.conftest import Topic
from tests.spark.stream.runs import reader, running


@pytest.fixture
def topic(request: pytest.FixtureRequest, servers: ProcessCluster, servers_admin: Admin) -> Topic:
    """A topic of two partitions in a namespace of the test's own."""
    namespace = f"public/{unique_name(request)}"
    servers_admin.create_namespace(namespace)
    return Topic(servers, servers_admin, namespace, "orders", 2)


@pytest.mark.parametrize("how", ["restarted", "killed"])
def test_a_broker_that_goes_away(
    how: str, servers_lake: PulsarLake, servers: ProcessCluster, topic: Topic, tmp_path: Path
) -> None:
    """With a limit, so that entries are read before each micro-batch, and batches are begun."""
    topic.send(0, 400)
    with running(
        reader(servers_lake, maxMessagesPerTrigger=20).table(topic.table), tmp_path
    ) as stream:
        stream.wait_for_some()
        if how == "restarted":
            servers.restart_broker()
        else:
            servers.kill_broker()
            servers.start_broker()
        topic.send(400, 20)
        stream.wait_for(range(420), 200)
        assert all(len(one) <= 20 for one in stream.batches)


def test_a_bookie_that_is_paused(
    servers_lake: PulsarLake, topic: Topic, bookie: BookieProcess, tmp_path: Path
) -> None:
    topic.send(0, 20)
    with running(reader(servers_lake).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(20))
        topic.send(20, 200)
        bookie.pause()
        stream.wait_for(range(220))


def test_a_bookie_that_is_killed(
    servers_lake: PulsarLake, topic: Topic, bookie: BookieProcess, tmp_path: Path
) -> None:
    topic.send(0, 200)
    with running(
        reader(servers_lake, maxMessagesPerTrigger=20).table(topic.table), tmp_path
    ) as stream:
        stream.wait_for_some()
        bookie.kill()
        topic.send(200, 200)
        stream.wait_for(range(400), 200)
