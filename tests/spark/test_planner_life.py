"""The planner process: one a JVM, started again when it dies, and a DataFrame outlives it.

And what goes wrong in it or in a task comes out of Spark as our own error.
"""

import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
from array import array
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from spark_ext import PulsarLake, build_session, error_of
from testbed.process import wait_for
from testbed.proxy import TcpProxy
from tests.spark.conftest import TOTAL, Orders

T = TypeVar("T")

Values = Callable[[str], list[tuple[object, ...]]]
Elsewhere = Callable[[dict[str, Any]], SparkSession]


@pytest.fixture
def elsewhere(lake: PulsarLake) -> Elsewhere:
    """A session whose catalog has other settings of Pulsar."""

    def make(pulsar: dict[str, Any]) -> SparkSession:
        other = lake.config.pulsar.model_copy(update=pulsar)
        return build_session(lake.config.model_copy(update={"pulsar": other}))

    return make


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
        if b"spark_ext.planner.process" in command and f"\nPPid:\t{parent}\n" in status:
            found.append(int(entry.name))
    return found


def unread(planner: int) -> int:
    """Bytes of requests that it has not read."""
    with Path(f"/proc/{planner}/fd/0").open("rb", buffering=0) as requests:
        return int(array("i", fcntl.ioctl(requests, termios.FIONREAD, bytes(4)))[0])


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
    question = f"SELECT count(*) FROM {orders.table}"
    assert values(question) == [(TOTAL,)]
    [old] = planners(lake)
    with asked_while_stopped(old, lambda: values(question)) as answer:
        os.kill(old, signal.SIGKILL)
    assert answer.result(120) == [(TOTAL,)]


def test_two_planners_that_die_of_one_request(
    orders: Orders, lake: PulsarLake, values: Values, elsewhere: Elsewhere
) -> None:
    """Not a third: it may be the request that ends them. What it says is an error of ours."""
    question = f"SELECT count(*) FROM {orders.table}"
    assert values(question) == [(TOTAL,)]
    [old] = planners(lake)
    with TcpProxy(lake.config.pulsar.admin_url.removeprefix("http://")) as admin:
        other = elsewhere({"admin_url": f"http://{admin.address}"})
        admin.stall()  # or the second one may have answered before it is killed
        with asked_while_stopped(old, lambda: other.sql(question)) as answer:
            os.kill(old, signal.SIGKILL)
            wait_for("another planner", lambda: bool(set(planners(lake)) - {old}))
            [new] = set(planners(lake)) - {old}
            os.kill(new, signal.SIGKILL)
        error = failure(lambda: answer.result(120))
    assert type(error) is UnavailableError
    assert error.message == "the planner process has ended: signal 9"
    assert error.hint is not None
    assert error.hint.endswith("try again")
    assert values(question) == [(TOTAL,)]


@contextmanager
def asked_while_stopped(planner: int, ask: Callable[[], T]) -> Iterator[Future[T]]:
    """What is asked waits for the planner, which the block has to kill."""
    os.kill(planner, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        try:
            answer = pool.submit(ask)
            wait_for("the request", lambda: answer.done() or unread(planner) > 0)
            assert not answer.done()
            yield answer
        finally:
            with suppress(ProcessLookupError):
                os.kill(planner, signal.SIGKILL)


def test_a_pulsar_that_is_not_there(elsewhere: Elsewhere) -> None:
    other = elsewhere({"admin_url": "http://127.0.0.1:9"})
    with pytest.raises(AnalysisException) as error:
        other.sql("SELECT * FROM pulsar.`public/default`.orders")
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


def test_of_the_planner(elsewhere: Elsewhere) -> None:
    other = elsewhere({"admin_url": "http://127.0.0.1:9"})
    error = failure(lambda: other.sql("SELECT * FROM pulsar.`public/default`.orders"))
    assert type(error) is UnavailableError
    assert error.message.startswith("no answer from the Pulsar admin at http://127.0.0.1:9")
    assert error.hint == "check pulsar.admin_url and that the broker runs"


def test_of_a_task(orders: Orders, elsewhere: Elsewhere) -> None:
    """A task that only has the broker, which is not there."""
    other = elsewhere({"service_url": "pulsar://127.0.0.1:9", "timeout": timedelta(seconds=10)})
    name = f"pulsar.`{orders.namespace}`.`orders$tiers=broker`"
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
        "one of parquet, bookkeeper, tiered, broker, or none",
    )


def test_of_the_catalog(orders: Orders, lake: PulsarLake) -> None:
    error = failure(lambda: lake.table(orders.topic, tiers="tape"))
    assert (error.message, error.hint) == (
        "unknown tier 'tape'",
        "one of parquet, bookkeeper, tiered, broker, or none",
    )
    with pytest.raises(AnalysisException) as caught:
        lake.spark.sql(f"SELECT * FROM pulsar.`{orders.namespace}`.`orders$tiers=tape`")
    assert str(caught.value) == f"{error.message} ({error.hint})", "one line"
    name = orders.table.removesuffix("orders") + "nothing"
    error = failure(lambda: lake.spark.sql(f"SELECT * FROM {name} VERSION AS OF 1"))
    assert type(error) is NotFoundError


TWO_SESSIONS = """
import sys
from reader.errors import ConfigurationError
from spark_ext.session.builder import build_session

pulsar = {"service_url": "pulsar://127.0.0.1:1", "admin_url": "http://127.0.0.1:1"}
settings = {"pulsar": pulsar, "storage": {"uri": sys.argv[1]}}
build_session(settings).stop()
for more in ({"spark": {"delta": True}}, {"storage": {"uri": "gs://bucket/tables"}}):
    try:
        build_session(settings | more)
    except ConfigurationError as error:
        print(error)
build_session(settings).stop()
"""


def test_a_jvm_keeps_the_jars_of_its_first_session(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", TWO_SESSIONS, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    without = "this process's Spark has been started without the jars for"
    named = re.findall(rf"{without} ([\w ]+\w)", found.stdout)
    assert named == ["Delta", "Google Cloud Storage"]
