"""Readers of Spark's: one query, the same by a Connect client, and one streaming query."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from reader.model import Topic
from spark_ext import PulsarLake
from testbed.closing import Closing
from tests.contract.corpus import Kind
from tests.contract.corpus.world import Outcomes, World
from tests.contract.stream.unions import Rows, queried, streamed, together
from tests.spark.connect.client import Client

# Schemas of every kind some: each takes Spark its time.
SOME = (
    "avro-everything",
    "json-everything",
    "json-broken",
    "clients",
    "__changing",
    "keyvalue-times-separated",
    "keyvalue-avro-protobuf-separated",
    "native-deep",
    "protobuf-flat",
    "mixed-types",
    "mixed-encodings",
    "edges-string",
    "edges-timestamp",
    "primitive-local_date_time",
)


_UNCOMPILED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class SparkReaders(Closing):
    """Readers of the kinds that the lake's own settings read. Rows are JSON.

    lake: a session of the readers' own, which does not compile plans: to compile those of so many
        tables takes longer than to run them.
    """

    def __init__(self, world: World, folder: Path, lake: PulsarLake) -> None:
        self._world, self._folder, self._lake = world, folder, lake
        for name, value in _UNCOMPILED.items():
            lake.spark.conf.set(name, value)
        self._client = Client(_connect_url(lake), dict(os.environ))
        catalog = "spark.sql.catalog.pulsar.config"
        self._client.ask("configure", _UNCOMPILED | {catalog: lake.spark.conf.get(catalog)})

    def close(self) -> None:
        self._client.close()

    def query(self, kinds: Iterable[Kind], tiers: str | None = None) -> Outcomes:
        return self._together(kinds, lambda topics: queried(self._lake, topics, tiers))

    def connect(self, kinds: Iterable[Kind]) -> Outcomes:
        """The query of a Connect client, of some kinds: its rows are made as those of ``query``."""
        some = [kind for kind in kinds if kind.name in SOME]

        def read(topics: Sequence[str]) -> Rows:
            names = [Topic.parse(topic) for topic in topics]
            tables = [f"pulsar.`{one.tenant}/{one.namespace}`.`{one.name}`" for one in names]
            return together((topic, row) for topic, row in self._client.ask("whole_rows", tables))

        return self._together(some, read)

    def stream(self, kinds: Iterable[Kind]) -> Outcomes:
        """Run one batch of halves and some others, and the same batch again in a later state."""
        some = [kind for kind in kinds if kind.halves or kind.name in SOME]
        checkpoint = self._folder / "checkpoint"
        shutil.rmtree(checkpoint / "commits", ignore_errors=True)  # as if the batch had failed

        def read(topics: Sequence[str]) -> Rows:
            [batch] = streamed(self._lake, topics, checkpoint)
            return batch

        return self._together(some, read)

    def _together(self, kinds: Iterable[Kind], read: Callable[[Sequence[str]], Rows]) -> Outcomes:
        topics = {self._world.topic(kind): kind for kind in kinds if kind.config == "plain"}
        try:
            rows = read(list(topics))
        except Exception as error:  # noqa: BLE001 - of each kind
            return {kind.name: error for kind in topics.values()}
        return {
            kind.name: [json.loads(row, parse_float=str) for row in rows.get(topic, [])]
            for topic, kind in topics.items()
        }


def _connect_url(lake: PulsarLake) -> str:
    """Return where the JVM of the lake's session listens for Connect clients."""
    jvm: Any = lake.spark._jvm
    services = getattr(jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(services, 'MODULE$').localPort()}"
