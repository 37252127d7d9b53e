"""The pipeline in `examples/pipeline`, as its README says: streaming table, view, and a topic."""

import shutil
from pathlib import Path

import pytest

from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.spark.conftest import ORDER, order
from tests.spark.connect.client import Client
from tests.spark.spark_servers import HOME, shell_environment
from tests.support.running import run_program

EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"


@pytest.fixture
def specification(tmp_path: Path, namespace: str) -> Path:
    """The example with topics and checkpoints of this test's own."""
    copy = tmp_path / "pipeline"
    shutil.copytree(EXAMPLE, copy)
    for file in (one for one in copy.rglob("*") if one.suffix in (".yml", ".sql", ".py")):
        text = file.read_text().replace("public/default", namespace)
        file.write_text(text.replace("/var/tmp/orders-pipeline", str(tmp_path / "state")))
    return copy / "spark-pipeline.yml"


def run(server: str, specification: Path) -> str:
    """What it printed."""
    command = [str(HOME / "bin" / "spark-pipelines"), "--remote", server]
    done = run_program(
        [*command, "run", "--spec", str(specification)], env=shell_environment(), timeout=300
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def check(client: Client, topic: str, total: int) -> None:
    """All three have the orders 0 … total - 1, each once."""
    for table in ("bronze", "totals"):  # files that another session has written
        client.ask("sql", f"REFRESH TABLE {table}")
    bronze = client.ask("sql", "SELECT id, customer, amount FROM bronze ORDER BY id")
    assert bronze == [list(order(one).values()) for one in range(total)]
    expected = {
        f"c{one}": [len(range(one, total, 7)), sum(number * 0.5 for number in range(one, total, 7))]
        for one in range(7)
    }
    totals = client.ask("sql", "SELECT customer, orders, total FROM totals")
    assert {one[0]: one[1:] for one in totals} == expected
    assert len(totals) == len(expected)
    sent = client.ask("sql", f"SELECT id, customer, amount, __key FROM {topic} ORDER BY id")
    large = [list(order(one).values()) for one in range(total) if one * 0.5 > 100]
    assert sent == [[*one, one[1]] for one in large]


@pytest.mark.timeout(800)  # two runs, each a process with a JVM of its own
def test_each_run_takes_what_has_come(
    client: Client, server: str, cluster: Cluster, admin: Admin, namespace: str, specification: Path
) -> None:
    topic = admin.create_topic(f"{namespace}/orders", partitions=2)

    def send(first: int, stop: int) -> None:
        numbers = range(first, stop)
        publish(
            cluster.service_url, topic, map(order, numbers), schema=json_schema(ORDER), batch=10
        )

    target = f"pulsar.`{namespace}`.`large-orders`"
    client.ask("sql", f"CREATE TABLE {target} (id BIGINT, customer STRING, amount DOUBLE)")
    send(0, 250)
    assert "Run is COMPLETED" in run(server, specification)
    check(client, target, 250)
    admin.seal(topic)
    send(250, 300)
    assert "Run is COMPLETED" in run(server, specification)
    check(client, target, 300)
