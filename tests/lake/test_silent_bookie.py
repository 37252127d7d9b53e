"""A bookie that answers nothing, under a query: the same answer, some seconds later."""

from contextlib import ExitStack

from offloader.config import Config
from spark_ext import PulsarLake
from testbed.cluster import Cluster
from testbed.proxy import TcpProxy
from testbed.publish import publish

COUNT = 30_000


def test_a_silent_bookie_only_costs_time(
    cluster: Cluster, namespace: str, lake: PulsarLake, lake_config: Config
) -> None:
    """Bookies are reached through proxies, because all test processes share them.

    `lake` is asked for so that Spark is not started, and ended, by this test's own session.
    """
    topic = f"{namespace}/big"
    values = (b"%08d" % n + bytes(n % 251 for _ in range(300)) for n in range(COUNT))
    publish(cluster.service_url, f"persistent://{topic}", values, batch=4)
    with ExitStack() as stack:
        proxies = [stack.enter_context(TcpProxy(one.address)) for one in cluster.bookies]
        behind = {
            bookie.address: proxy.address
            for bookie, proxy in zip(cluster.bookies, proxies, strict=True)
        }
        pulsar = lake_config.pulsar.model_copy(update={"bookies": behind})
        mine = stack.enter_context(PulsarLake(lake_config.model_copy(update={"pulsar": pulsar})))
        proxies[2].stall()
        [row] = (
            mine.table(topic, tiers="bookkeeper")
            .selectExpr(
                "count(*) AS n", "sum(cast(substr(cast(value AS string), 1, 8) AS bigint)) AS s"
            )
            .collect()
        )
        assert (row["n"], row["s"]) == (COUNT, COUNT * (COUNT - 1) // 2)
        assert proxies[2].connections
