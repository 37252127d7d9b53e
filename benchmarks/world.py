"""Servers, topics, tables and sessions, each made when it is first asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.data.layouts import WHOLE, Layout
from benchmarks.data.topics import Published, TopicSpec, publish
from benchmarks.servers import NAMESPACE, Servers
from offloader.config import Config, load_config
from reader.clients import Clients
from reader.closing import Closing
from testbed.admin import Admin
from testbed.cluster import ProcessCluster
from testbed.usage import cpu_seconds

if TYPE_CHECKING:
    from offloader.model.turn import Committed
    from spark_ext import PulsarLake


class World(Closing):
    """A context manager that leaves no process and no file behind.

    quick: small topics. What names no layout is on the cluster `WHOLE`: `cluster`, `admin` and
    `client` are its. The tables are in a directory, so that no object store takes part in the
    numbers.
    """

    def __init__(self, *, quick: bool) -> None:
        self.quick = quick
        self._stack = ExitStack()
        self._servers: dict[Layout, Servers] = {}
        self._published: dict[str, Published] = {}
        self._offloaded: set[tuple[str, str]] = set()
        self._lakes: dict[str, PulsarLake] = {}

    def __enter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pulsar-lake-bench-"))
        self.directory = Path(folder)
        return self

    def close(self) -> None:
        """End every process that was started."""
        self._stack.close()

    # -- Pulsar --------------------------------------------------------------------------------

    def servers(self, layout: Layout = WHOLE) -> Servers:
        if layout not in self._servers:
            made = Servers(layout, self.directory / layout.name)
            self._servers[layout] = self._stack.enter_context(made)
        return self._servers[layout]

    def stop_except(self, layouts: Collection[Layout]) -> None:
        """End the clusters of all other layouts but `WHOLE`, and forget their topics."""
        for layout in {*self._servers} - {WHOLE, *layouts}:
            self._servers.pop(layout).close()
            gone = [name for name, one in self._published.items() if one.spec.layout == layout]
            for name in gone:
                del self._published[name]

    @property
    def cluster(self) -> ProcessCluster:
        return self.servers().cluster

    @property
    def admin(self) -> Admin:
        return self.servers().admin

    @property
    def client(self) -> Any:
        """A `pulsar.Client`."""
        return self.servers().client

    def topic(self, spec: TopicSpec) -> Published:
        """The topic, published now unless it was already."""
        if spec.name not in self._published:
            name = f"{NAMESPACE}/{spec.name}"
            servers = self.servers(spec.layout)
            made = publish(servers.client, servers.admin, name, spec, quick=self.quick)
            self._published[spec.name] = made
        return self._published[spec.name]

    def has(self, spec: TopicSpec) -> bool:
        """Whether it was published already."""
        return spec.name in self._published

    def stored_bytes(self, topic: Published) -> int:
        """The size of its ledgers as BookKeeper counts it: one replica."""
        admin = self.servers(topic.spec.layout).admin
        ledgers = admin.internal_stats(topic.name)["ledgers"]
        return sum(int(one["size"]) for one in ledgers)

    # -- the product ---------------------------------------------------------------------------

    def config(self, store: str, layout: Layout = WHOLE, **sections: dict[str, Any]) -> Config:
        """``settings``, read."""
        return load_config(self.settings(store, layout, **sections))

    def settings(
        self, store: str, layout: Layout = WHOLE, **sections: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Settings with tables and learned publish times of their own, in folders named `store`.

        Two stores see the same topics: offloaded in the one, hot in the other.
        """
        cluster = self.servers(layout).cluster
        settings: dict[str, dict[str, Any]] = {
            "pulsar": {"service_url": cluster.service_url, "admin_url": cluster.admin_url},
            "storage": {"uri": str(self.directory / "tables" / store)},
            "offload": {"grace": "0s", "subscription": f"bench-{store}"},
            "spark": {"delta": True},  # a peer
            "query": {
                "cache_dir": str(self.directory / "publish-times" / store),
                # The hold names the other store's table; Pulsar keeps everything all the same.
                "allow_data_loss": True,
            },
        }
        for name, keys in sections.items():
            settings[name] = settings.get(name, {}) | keys
        return settings

    def lake(self, config: Config) -> PulsarLake:
        """One session a configuration, all in one JVM."""
        from spark_ext import PulsarLake

        key = config.model_dump_json()
        if key not in self._lakes:
            lake = self._stack.enter_context(PulsarLake(config))
            lake.spark.sql("SELECT 1").collect()
            self._lakes[key] = lake
        return self._lakes[key]

    @cached_property
    def bare(self) -> PulsarLake:
        """A session without any table: all topics are hot in it."""
        return self.lake(self.config("none"))

    def offload(self, config: Config, topic: Published) -> Committed:
        """Everything, as one turn of the offloader in a Spark that runs already."""
        from offloader.convert import spark_jobs
        from offloader.turn.topic_offloader import TopicOffloader
        from reader.model import Topic

        context = self.bare.spark.sparkContext
        with Clients(config) as clients:
            turn = TopicOffloader(clients, config.offload, spark_jobs(lambda: context)).turn(
                Topic.parse(topic.name), now=True
            )
        assert turn.committed is not None
        return turn.committed

    def offloaded(self, config: Config, topic: Published) -> PulsarLake:
        """The lake with the topic wholly in its table."""
        key = (config.storage.uri, topic.name)
        if key not in self._offloaded:
            self.offload(config, topic)
            self._offloaded.add(key)
        return self.lake(config)

    @property
    def jvm(self) -> int:
        """The process id of Spark's JVM."""
        gateway: Any = self.bare.spark.sparkContext._gateway
        return int(gateway.proc.pid)

    def cpu(self) -> float:
        """CPU seconds so far of this process, Spark's JVM, its workers and the planner."""
        return cpu_seconds(self.jvm)
