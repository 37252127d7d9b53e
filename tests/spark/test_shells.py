"""Spark's own clients, with nothing but a properties file: spark-sql, and JDBC through beeline."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_ext import PulsarLake
from spark_ext.session.conf import main, properties
from spark_ext.session.handoff import settings_file
from tests.spark.conftest import TOTAL, Orders
from tests.spark.spark_servers import HOME, free_port, serving, shell_environment
from tests.support.running import run_program

pytestmark = pytest.mark.timeout(600)  # the first may start all servers and two sessions of Spark


@pytest.fixture(scope="module")
def shell(
    lake: PulsarLake, orders: Orders, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, str]]:
    """A folder with a properties file, and the environment of a user's shell."""
    folder = tmp_path_factory.mktemp("shell")
    text = properties(settings_file(lake.config))
    text += "spark.sql.catalogImplementation in-memory\nspark.driver.memory 1g\n"
    (folder / "lake.conf").write_text(text)
    return folder, shell_environment()


def run(
    tool: str, *arguments: str, shell: tuple[Path, dict[str, str]], timeout: float = 280
) -> subprocess.CompletedProcess[str]:
    folder, environment = shell
    command = [str(HOME / "bin" / tool), *arguments]
    return run_program(command, cwd=folder, env=environment, timeout=timeout)


def test_the_settings_as_a_program_prints_them(
    lake: PulsarLake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", settings_file(lake.config) or ""]) == 0
    out = capsys.readouterr().out
    assert "spark.sql.catalog.pulsar io.pulsarlake.spark.catalog.PulsarCatalog\n" in out
    assert f"export PYSPARK_PYTHON={sys.executable}\n" in out
    assert main(["--config", "no-such.toml"]) == 1
    assert "cannot read the configuration" in capsys.readouterr().err


def test_spark_sql(shell: tuple[Path, dict[str, str]], orders: Orders) -> None:
    text = (
        f"SHOW TABLES IN pulsar.`{orders.namespace}`;"
        f"SELECT count(*), sum(id), max(customer) FROM {orders.table} WHERE id >= 10;"
        f"SELECT * FROM pulsar.`{orders.namespace}`.nope;"
    )
    done = run("spark-sql", "--properties-file", "lake.conf", "-e", text, shell=shell)
    assert done.returncode != 0, "of the last statement, which names no topic"
    assert "TABLE_OR_VIEW_NOT_FOUND" in done.stderr + done.stdout
    lines = done.stdout.splitlines()
    assert any("orders" in line.split("\t") for line in lines), lines
    assert f"{TOTAL - 10}\t{sum(range(10, TOTAL))}\tc6" in lines
    assert " WARN " not in done.stderr


@pytest.fixture(scope="module")
def jdbc(shell: tuple[Path, dict[str, str]]) -> Iterator[str]:
    """The URL of a Thrift server."""
    port = free_port()
    more = {
        "spark.hadoop.hive.server2.thrift.port": port,
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
    }
    with serving("org.apache.spark.sql.hive.thriftserver.HiveThriftServer2", port, *shell, more):
        yield f"jdbc:hive2://127.0.0.1:{port}/default"


def test_jdbc(jdbc: str, shell: tuple[Path, dict[str, str]], orders: Orders) -> None:
    arguments = ["-u", jdbc, "-n", "u", "--outputformat=csv2", "--silent=true"]
    t = orders.table
    statements = [
        f"SELECT count(*) AS n, sum(id) AS s FROM {t}",
        f"SELECT a.id, b.customer FROM {t} a JOIN {t} b ON a.id = b.id WHERE a.id IN (299, 449) "
        "ORDER BY 1",
    ]
    for statement in statements:
        arguments += ["-e", statement]
    done = run("beeline", *arguments, shell=shell)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split()
    assert f"{TOTAL},{sum(range(TOTAL))}" in lines
    assert lines.index("299,c5") < lines.index("449,c1")
