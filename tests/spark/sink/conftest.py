"""Topics that the tests of this folder write to through Spark."""

from collections.abc import Callable
from typing import Any

import pytest

from offloader.config import Config
from reader import open_topic
from testbed.admin import Admin

RECORD = "id BIGINT, name STRING, amount DOUBLE"


class Target:
    """A topic of one test, and what is in it."""

    def __init__(self, config: Config, namespace: str, name: str) -> None:
        self.topic = f"{namespace}/{name}"
        self.table = f"pulsar.`{namespace}`.`{name}`"
        self.compacted = f"pulsar.`{namespace}`.`{name}$compacted`"
        self._config = config

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """In the order of the log, partition by partition; read without Spark."""
        places = ["__partition", "__ledgerId", "__entryId", "__batchIndex"]
        with open_topic(self._config, self.topic) as opened:
            table = opened.scan(columns=list(dict.fromkeys([*columns, *places]))).read_all()
        table = table.sort_by([(one, "ascending") for one in places])
        return [tuple(row[name] for name in columns) for row in table.to_pylist()]

    def ids(self) -> list[int]:
        return sorted(number for (number,) in self.rows("id"))


@pytest.fixture
def make(admin: Admin, lake: Any, lake_config: Config, namespace: str) -> Callable[..., Target]:
    """Makes a topic: by CREATE TABLE."""

    def made(
        name: str = "target", columns: str = RECORD, partitions: int = 2, **properties: str
    ) -> Target:
        target = Target(lake_config, namespace, name)
        pairs = {"partitions": str(partitions), **properties}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in pairs.items())
        lake.spark.sql(f"CREATE TABLE {target.table} ({columns}) TBLPROPERTIES ({listed})")
        return target

    return made
