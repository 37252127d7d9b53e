"""Servers that die under a query or an offload: the same answer, or nothing lost."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import BookieProcess, ProcessCluster
from testbed.publish import publish
from tests.support.fixtures import Offload

COUNT = 30_000


@pytest.fixture(scope="module")
def big(servers: ProcessCluster, servers_admin: Admin, servers_namespace: str) -> str:
    """A topic of several sealed ledgers and an open one."""
    topic = f"{servers_namespace}/big"
    values = (b"%08d" % n + bytes(n % 251 for _ in range(300)) for n in range(COUNT))
    publish(servers.service_url, f"persistent://{topic}", values, batch=4)
    return topic


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


def test_a_bookie_killed_in_the_middle_of_a_query(
    big: str, servers_lake: PulsarLake, bookie: BookieProcess
) -> None:
    frame = servers_lake.table(big)
    assert digest(frame) == EXPECTED
    killer = kill_soon(bookie.kill, 0.3)
    assert digest(frame) == EXPECTED
    killer.join()
    assert digest(servers_lake.table(big)) == EXPECTED
    assert digest(servers_lake.table(big, tiers="bookkeeper")) == EXPECTED


def test_a_bookie_killed_in_the_middle_of_an_offload(
    big: str, servers_lake: PulsarLake, servers_offload: Offload, bookie: BookieProcess
) -> None:
    killer = kill_soon(bookie.kill, 0.5)
    servers_offload(big)
    killer.join()
    assert servers_lake.table(big, tiers="parquet").count() > COUNT // 2
    assert digest(servers_lake.table(big)) == EXPECTED


def test_a_broker_that_restarts(
    big: str, servers_lake: PulsarLake, servers: ProcessCluster
) -> None:
    frame = servers_lake.table(big)
    assert digest(frame) == EXPECTED
    servers.restart_broker()
    assert digest(servers_lake.table(big)) == EXPECTED
    assert digest(frame) == EXPECTED
