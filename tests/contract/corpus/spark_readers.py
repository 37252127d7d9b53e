"""Readers of Spark's: one query, and one streaming query, over all topics."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from spark_ext import PulsarLake
from tests.contract.corpus import Kind
from tests.contract.corpus.world import Outcomes, World
from tests.contract.stream.unions import Rows, queried, streamed

__all__ = ["SparkReaders"]

# Schemas of every kind some: each streaming source takes Spark its time.
_STREAMED = (
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


class SparkReaders:
    """Readers of the kinds that the lake's own settings read. Rows are JSON.

    lake: a session of the readers' own, which does not compile plans: to compile those of so many
        tables takes longer than to run them.
    """

    def __init__(self, world: World, folder: Path, lake: PulsarLake) -> None:
        self._world, self._folder, self._lake = world, folder, lake
        lake.spark.conf.set("spark.sql.codegen.wholeStage", "false")
        lake.spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")

    def query(self, kinds: Iterable[Kind], tiers: str | None = None) -> Outcomes:
        return self._together(kinds, lambda topics: queried(self._lake, topics, tiers))

    def stream(self, kinds: Iterable[Kind]) -> Outcomes:
        """Run one batch of halves and some others, and the same batch again in a later state."""
        some = [kind for kind in kinds if kind.halves or kind.name in _STREAMED]
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
