"""One topic with rows in every state, for the tests of this folder: nobody writes to it later."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame

from offloader.config import Config
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.contract.against_java import offload_in_thread
from tests.support.schemas import avro_record

ORDER = avro_record("Order", {"id": "long", "customer": "string", "amount": "double"})
COLD, SEALED, OPEN = 300, 100, 50
TOTAL = COLD + SEALED + OPEN


def order(number: int) -> dict[str, object]:
    """The message number `number`."""
    return {"id": number, "customer": f"c{number % 7}", "amount": number * 0.5}


@dataclass(frozen=True, slots=True)
class Orders:
    """Ids 0 … 299 are in the Delta table, 300 … 399 in sealed ledgers, 400 … 449 in open ones."""

    topic: str
    namespace: str

    @property
    def table(self) -> str:
        """The name to use in SQL."""
        return f"pulsar.`{self.namespace}`.orders"


@pytest.fixture(scope="session")
def orders(cluster: Cluster, admin: Admin, lake_config: Config) -> Orders:
    """Offload without Spark: shells and servers have a JVM of their own."""
    namespace = f"public/spark-{uuid.uuid4().hex[:8]}"
    admin.create_namespace(namespace)
    topic = admin.create_topic(f"{namespace}/orders", partitions=2)

    def send(first: int, count: int) -> None:
        numbers = range(first, first + count)
        publish(
            cluster.service_url, topic, map(order, numbers), schema=json_schema(ORDER), batch=10
        )

    send(0, COLD)
    admin.seal(topic)
    offload_in_thread(lake_config, topic)
    send(COLD, SEALED)
    admin.seal(topic)
    send(COLD + SEALED, OPEN)
    return Orders(topic, namespace)


@pytest.fixture
def sql(lake: PulsarLake) -> Callable[[str], DataFrame]:
    """Runs SQL in the session of the whole test run."""
    return lake.spark.sql


@pytest.fixture
def values(lake: PulsarLake) -> Callable[[str], list[tuple[object, ...]]]:
    """Runs SQL and gives its rows as tuples."""
    return lambda text: [tuple(row) for row in lake.spark.sql(text).collect()]
