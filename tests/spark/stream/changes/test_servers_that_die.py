"""Servers that die under a stream: it goes on by itself, and each message comes once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spark_ext import PulsarLake
from testbed.cluster import Bookie, Cluster
from tests.spark.stream.conftest import Topic
from tests.spark.stream.runs import reader, running


@pytest.fixture
def topic(make: Callable[[int], Topic]) -> Topic:
    return make(2)


@pytest.fixture
def bookie(cluster: Cluster) -> Iterator[Bookie]:
    """One that may be killed or paused; it is back when the test ends."""
    victim = cluster.bookies[1]
    yield victim
    victim.resume()
    if not victim.alive:
        victim.start()
    cluster.wait_bookies()


@pytest.mark.long
@pytest.mark.parametrize("how", ["restarted", "killed"])
def test_a_broker_that_goes_away(
    how: str, lake: PulsarLake, cluster: Cluster, topic: Topic, tmp_path: Path
) -> None:
    """With a limit, so that entries are read before each micro-batch, and batches are begun."""
    topic.send(0, 400)
    with running(reader(lake, maxMessagesPerTrigger=20).table(topic.table), tmp_path) as stream:
        stream.wait_for_some()
        if how == "restarted":
            cluster.restart_broker()
        else:
            cluster.kill_broker()
            cluster.start_broker()
        topic.send(400, 20)
        stream.wait_for(range(420), 200)
        assert all(len(one) <= 20 for one in stream.batches)


@pytest.mark.long
def test_a_bookie_that_is_paused(
    lake: PulsarLake, topic: Topic, bookie: Bookie, tmp_path: Path
) -> None:
    topic.send(0, 20)
    with running(reader(lake).table(topic.table), tmp_path) as stream:
        stream.wait_for(range(20))
        topic.send(20, 200)
        bookie.pause()
        stream.wait_for(range(220))


@pytest.mark.long
def test_a_bookie_that_is_killed(
    lake: PulsarLake, topic: Topic, bookie: Bookie, tmp_path: Path
) -> None:
    topic.send(0, 200)
    with running(reader(lake, maxMessagesPerTrigger=20).table(topic.table), tmp_path) as stream:
        stream.wait_for_some()
        bookie.kill()
        topic.send(200, 200)
        stream.wait_for(range(400), 200)
