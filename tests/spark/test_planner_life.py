"""The planner process: one a JVM, started again when it dies, and a DataFrame outlives it.

And what goes wrong in it or in a task comes out of Spark as our own error.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from spark_ext import PulsarLake, error_of
from tests.spark.conftest import TOTAL, Orders

Values = Callable[[str], list[tuple[object, ...]]]


def planners(lake: PulsarLake) -> list[int]:
    """Process ids of the planners that this session's JVM has started."""
    jvm = lake.spark._jvm
    assert jvm is not None
    parent = int(jvm.java.lang.ProcessHandle.current().pid())
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes().split(b"\0")
            status = (entry / "status").read_text()
        except (OSError, ValueError):
            continue
        if b"spark_ext.catalog.server" in command and f"\nPPid:\t{parent}\n" in status:
            found.append(int(entry.name))
    return found


def test_one_however_many_sessions(orders: Orders, lake: PulsarLake) -> None:
    for _ in range(3):
        assert lake.spark.newSession().table(orders.table).count() == TOTAL
    assert len(planners(lake)) == 1


def test_a_killed_planner_is_started_again(
    orders: Orders, lake: PulsarLake, values: Values
) -> None:
    frame = lake.table(orders.topic)
    [old] = planners(lake)
    os.kill(old, signal.SIGKILL)
    # The snapshot is in the plan, not in the process.
    assert frame.where("id > 9").count() == TOTAL - 10
    assert values(f"SELECT count(*) FROM {orders.table}") == [(TOTAL,)]
    [new] = planners(lake)
    assert new != old


def test_a_planner_that_dies_while_it_works(
    orders: Orders, lake: PulsarLake, values: Values
) -> None:
    [old] = planners(lake)
    os.kill(old, signal.SIGSTOP)
    try:
        frames = []

        def ask() -> None:
            frames.append(values(f"SELECT count(*) FROM {orders.table}"))

        import threading

        thread = threading.Thread(target=ask)
        thread.start()
        time.sleep(0.5)
        assert frames == []
    finally:
        os.kill(old, signal.SIGKILL)
    thread.join(120)
    assert frames == [[(TOTAL,)]]


def test_an_interpreter_that_is_not_there(lake: PulsarLake) -> None:
    other = lake.spark.newSession()
    other.conf.set("spark.sql.catalog.wrong", "io.pulsarlake.spark.PulsarCatalog")
    other.conf.set("spark.sql.catalog.wrong.python", "/no/such/python")
    with pytest.raises(AnalysisException, match="the planner cannot be started"):
        other.sql("SHOW NAMESPACES IN wrong")


def test_an_interpreter_without_the_package(lake: PulsarLake, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'No module named spark_ext' >&2\nexit 1\n")
    python.chmod(0o755)
    other = lake.spark.newSession()
    other.conf.set("spark.sql.catalog.wrong", "io.pulsarlake.spark.PulsarCatalog")
    other.conf.set("spark.sql.catalog.wrong.python", str(python))
    with pytest.raises(AnalysisException, match="has ended: No module named spark_ext"):
        other.sql("SHOW NAMESPACES IN wrong")


def test_a_pulsar_that_is_not_there(lake: PulsarLake, tmp_path: Path) -> None:
    config = tmp_path / "lake.toml"
    config.write_text('[pulsar]\nadmin_url = "http://127.0.0.1:9"\n')
    other = lake.spark.newSession()
    other.conf.set("spark.sql.catalog.far", "io.pulsarlake.spark.PulsarCatalog")
    other.conf.set("spark.sql.catalog.far.config", str(config))
    with pytest.raises(AnalysisException) as error:
        other.sql("SELECT * FROM far.`public/default`.orders")
    assert "no answer from the Pulsar admin at http://127.0.0.1:9" in str(error.value)
    assert "check pulsar.admin_url" in str(error.value)
    assert "\n" not in str(error.value)


# -- errors: class, message, hint and context come out of Spark whole ------------------------------

Attempt = Callable[[], object]


def failure(attempt: Attempt) -> PulsarLakeError:
    with pytest.raises(Exception) as caught:
        attempt()
    found = error_of(caught.value)
    assert found is not None, caught.value
    return found


@pytest.fixture
def elsewhere(lake: PulsarLake, tmp_path: Path) -> Callable[[str], SparkSession]:
    """A session whose catalog ``far`` has these settings."""

    def make(text: str) -> SparkSession:
        config = tmp_path / "lake.toml"
        config.write_text(text)
        other = lake.spark.newSession()
        other.conf.set("spark.sql.catalog.far", "io.pulsarlake.spark.PulsarCatalog")
        other.conf.set("spark.sql.catalog.far.config", str(config))
        return other

    return make


def test_of_the_planner(elsewhere: Callable[[str], SparkSession]) -> None:
    other = elsewhere('[pulsar]\nadmin_url = "http://127.0.0.1:9"\n')
    error = failure(lambda: other.sql("SELECT * FROM far.`public/default`.orders"))
    assert type(error) is UnavailableError
    assert error.message.startswith("no answer from the Pulsar admin at http://127.0.0.1:9")
    assert error.hint == "check pulsar.admin_url and that the broker runs"


def test_of_a_task(
    orders: Orders, lake: PulsarLake, elsewhere: Callable[[str], SparkSession]
) -> None:
    """A task that only has the broker, which is not there."""
    admin_url = lake.config.pulsar.admin_url
    other = elsewhere(
        f'[pulsar]\nadmin_url = "{admin_url}"\nservice_url = "pulsar://127.0.0.1:9"\n'
        f'[storage]\nuri = "{lake.config.storage.uri}"\n[storage.options]\n'
        + "".join(f'{key} = "{value}"\n' for key, value in lake.config.storage.options.items())
    )
    name = f"far.`{orders.namespace}`.`orders$tiers=broker`"
    error = failure(lambda: other.sql(f"SELECT max(id) FROM {name}").collect())
    assert type(error) is UnavailableError
    assert "127.0.0.1:9" in str(error)
    assert error.hint
    assert str(error.context["partition"]).startswith(orders.topic)


def test_of_the_data_source(orders: Orders, lake: PulsarLake) -> None:
    read = lake.spark.read.format("pulsar")
    assert failure(lambda: read.load()).hint == '.option("topic", "tenant/namespace/topic")'
    error = failure(lambda: read.option("topic", orders.topic).option("tiers", "tape").load())
    assert type(error) is ConfigurationError
    assert (error.message, error.hint) == (
        "unknown tier 'tape'",
        "one of parquet, bookkeeper, broker, or none",
    )


def test_of_the_catalog(orders: Orders, lake: PulsarLake) -> None:
    error = failure(lambda: lake.table(orders.topic, tiers="tape"))
    assert (error.message, error.hint) == (
        "unknown tier 'tape'",
        "one of parquet, bookkeeper, broker, or none",
    )
    name = orders.table.removesuffix("orders") + "nothing"
    error = failure(lambda: lake.spark.sql(f"SELECT * FROM {name} VERSION AS OF 1"))
    assert type(error) is NotFoundError
