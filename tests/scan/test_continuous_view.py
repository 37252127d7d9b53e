"""`examples/continuous_view.py`: an aggregate kept up to date in a topic, as its compacted view."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import Message, json_schema, publish
from tests.spark.conftest import ORDER, order
from tests.support.running import run_program

_ROOT = Path(__file__).parents[2]


class Example:
    """The program, in a folder of its own, and the topics that it reads and writes."""

    def __init__(self, lake: PulsarLake, namespace: str, folder: Path) -> None:
        self._lake = lake
        self._folder = folder
        self.source, self.view = f"{namespace}/clicks", f"{namespace}/click-keys"
        self.table = f"pulsar.`{namespace}`.`click-keys`"
        config = lake.config
        self._environment = {
            **os.environ,
            "PULSAR_LAKE__PULSAR__SERVICE_URL": config.pulsar.service_url,
            "PULSAR_LAKE__PULSAR__ADMIN_URL": config.pulsar.admin_url,
            "PULSAR_LAKE__STORAGE__URI": config.storage.uri,
            "PULSAR_LAKE__STORAGE__OPTIONS": json.dumps(dict(config.storage.options)),
            "PULSAR_LAKE__SPARK__CONF": json.dumps({"spark.sql.shuffle.partitions": "2"}),
            "PYTHONPATH": str(_ROOT),
        }
        (folder / "lake.toml").write_text('[spark]\nmaster = "local[2]"\n')

    def run(self) -> str:
        program = [sys.executable, str(_ROOT / "examples" / "continuous_view.py"), "lake.toml"]
        done = run_program(
            [*program, self.source, self.view], cwd=self._folder, env=self._environment, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kept(self) -> list[tuple[object, ...]]:
        """The view, by key."""
        view = self.table[:-1] + "$compacted`"
        text = f"SELECT __key, messages, last FROM {view} ORDER BY __key"
        return [tuple(row) for row in self._lake.spark.sql(text).collect()]

    def computed(self) -> list[tuple[object, ...]]:
        """The same by one query over all messages."""
        text = (
            "SELECT __key, count(*), max(__publishTime) FROM "
            f"pulsar.`{self.source.rpartition('/')[0]}`.clicks "
            "WHERE __key IS NOT NULL GROUP BY __key ORDER BY __key"
        )
        return [tuple(row) for row in self._lake.spark.sql(text).collect()]

    def written(self) -> list[str]:
        """The keys of all messages of the view's topic, sorted."""
        rows = self._lake.spark.sql(f"SELECT __key FROM {self.table}").collect()
        return sorted(row[0] for row in rows)


@pytest.fixture
def example(lake: PulsarLake, namespace: str, tmp_path: Path) -> Example:
    return Example(lake, namespace, tmp_path)


@pytest.mark.long
@pytest.mark.nightly  # the demo has it, too
@pytest.mark.timeout(800)  # two runs, each with a session of its own
def test_the_view_is_what_a_query_gives(example: Example, cluster: Cluster, admin: Admin) -> None:
    topic = admin.create_topic(example.source, partitions=2)

    def send(numbers: Iterable[int], keys: int) -> None:
        """One of eleven has no key."""
        messages = (
            Message(order(one), key=None if one % 11 == 0 else f"k{one % keys}") for one in numbers
        )
        publish(cluster.service_url, topic, messages, schema=json_schema(ORDER), batch=10)

    send(range(200), 5)
    printed = example.run()
    assert example.kept() == example.computed()
    assert example.written() == [f"k{one}" for one in range(5)]
    assert all(f"k{one}" in printed for one in range(5))

    admin.seal(topic)
    send(range(200, 260), 2)  # of these keys alone there is something new, and of another one
    publish(cluster.service_url, topic, [Message(order(1), key="k9")], schema=json_schema(ORDER))
    example.run()
    assert example.kept() == example.computed()
    assert example.written() == ["k0", "k0", "k1", "k1", "k2", "k3", "k4", "k9"]
