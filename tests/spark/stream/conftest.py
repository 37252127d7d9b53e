"""Topics that the tests of this folder write to while streams read them."""

from collections.abc import Callable, Iterable, Mapping
from itertools import count

import pytest

from offloader.config import Config
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.spark.conftest import ORDER, order
from tests.spark.stream.moves import Moves


class Topic:
    """A topic of one test, which writes to it."""

    def __init__(
        self, cluster: Cluster, admin: Admin, namespace: str, name: str, partitions: int
    ) -> None:
        self.namespace = namespace
        self.short = f"{namespace}/{name}"
        self.table = f"pulsar.`{namespace}`.{name}"
        self.name = admin.create_topic(self.short, partitions=partitions)
        self._url = cluster.service_url
        self._admin = admin

    def trim(self) -> None:
        """Delete all sealed ledgers, where the open one has entries; returns when they are gone.

        Pulsar keeps nothing from now on, and everything before: a test may offload it.
        """
        self._admin.set_retention(self.namespace, 0, 0)

        def is_trimmed() -> bool:
            self._admin.trim(self.name)
            return all(
                len(self._admin.ledgers(one)) == 1 for one in self._admin.partitions(self.name)
            )

        wait_until("sealed ledgers are deleted", is_trimmed)

    def seal(self) -> None:
        self._admin.seal(self.name)

    def send(self, first: int, count: int, **more: object) -> None:
        """Orders by number; ``more``: further fields."""
        fields = [{"name": name, "type": ["null", "string"], "default": None} for name in more]
        values = ({**order(number), **more} for number in range(first, first + count))
        self.send_as({**ORDER, "fields": [*ORDER["fields"], *fields]}, values)

    def send_as(self, schema: object, values: Iterable[Mapping[str, object]]) -> None:
        """Records of another schema."""
        publish(self._url, self.name, values, schema=json_schema(schema), batch=10)

    def send_to(self, index: int, first: int, count: int) -> None:
        """Orders to one of its partitions."""
        values = map(order, range(first, first + count))
        part = f"{self.name}-partition-{index}"
        publish(self._url, part, values, schema=json_schema(ORDER), batch=10)


Make = Callable[[int], Topic]


@pytest.fixture
def make(cluster: Cluster, admin: Admin, namespace: str) -> Make:
    numbers = count()
    return lambda partitions: Topic(cluster, admin, namespace, f"orders{next(numbers)}", partitions)


@pytest.fixture
def moves(
    cluster: Cluster,
    admin: Admin,
    lake: PulsarLake,
    lake_config: Config,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Moves:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1.2)
    admin.set_retention(namespace, 0, 0)
    return Moves(cluster.service_url, admin, lake_config, lake, f"{namespace}/orders")
