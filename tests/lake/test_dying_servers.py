"""Servers that die under a query or an offload: the same answer, or nothing lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Bookie, Cluster
from testbed.publish import publish

COUNT = 30_000


@pytest.fixture(scope="module")
def big(cluster: Cluster, admin: Admin, lake_namespace: str) -> str:
    """A topic of several sealed ledgers and an open one."""
    topic = f"{lake_namespace}/big"
    values = (b"%08d" % n + bytes(n % 251 for _ in range(300)) for n in range(COUNT))
    publish(cluster.service_url, f"persistent://{topic}", values, batch=4)
    return topic


@pytest.fixture
def victim(cluster: Cluster) -> Iterator[Bookie]:
    """A bookie that may be killed; it is back when the test ends."""
    bookie = cluster.bookies[1]
    yield bookie
    if not bookie.alive:
        bookie.start()
    cluster.wait_bookies()


def digest(frame: Any) -> tuple[int, int]:
    row = frame.selectExpr(
        "count(*) AS n", "sum(cast(substr(cast(value AS string), 1, 8) AS bigint)) AS s"
    ).collect()[0]
    return row["n"], row["s"]


EXPECTED = (COUNT, COUNT * (COUNT - 1) // 2)


def kill_soon(kill: Callable[[], None], after: float) -> threading.Thread:
    timer = threading.Timer(after, kill)
    timer.start()
    return timer


@pytest.mark.long
def test_a_bookie_killed_in_the_middle_of_a_query(
    big: str, lake: PulsarLake, victim: Bookie
) -> None:
    frame = lake.table(big)
    assert digest(frame) == EXPECTED
    killer = kill_soon(victim.kill, 0.3)
    assert digest(frame) == EXPECTED
    killer.join()
    assert digest(lake.table(big)) == EXPECTED
    assert digest(lake.table(big, tiers="bookkeeper")) == EXPECTED


def test_a_paused_bookie_only_costs_time(big: str, lake: PulsarLake, cluster: Cluster) -> None:
    bookie = cluster.bookies[2]
    bookie.pause()
    try:
        assert digest(lake.table(big, tiers="bookkeeper")) == EXPECTED
    finally:
        bookie.resume()
        cluster.wait_bookies()


@pytest.mark.long
def test_a_bookie_killed_in_the_middle_of_an_offload(
    big: str, lake: PulsarLake, offload: Callable[[str], None], victim: Bookie, admin: Admin
) -> None:
    killer = kill_soon(victim.kill, 0.5)
    offload(big)
    killer.join()
    assert lake.table(big, tiers="parquet").count() > COUNT // 2
    assert digest(lake.table(big)) == EXPECTED


@pytest.mark.long
def test_a_broker_that_restarts(big: str, lake: PulsarLake, cluster: Cluster) -> None:
    frame = lake.table(big)
    assert digest(frame) == EXPECTED
    cluster.restart_broker()
    assert digest(lake.table(big)) == EXPECTED
    assert digest(frame) == EXPECTED
