"""Writes by the executors of a Spark cluster, that are tried again: each row once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.process import Process
from testbed.s3 import S3
from testbed.standalone import StandaloneSpark
from tests.spark.sink.conftest import Target
from tests.support.running import Settings

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROWS = 40_000
Write = Callable[..., Process]


@pytest.fixture(scope="module")
def spark() -> Iterator[StandaloneSpark]:
    with StandaloneSpark(workers=2) as started:
        yield started


@pytest.fixture
def target(make: Callable[..., Target]) -> Target:
    return make(partitions=2)


@pytest.fixture
def write(
    cluster: Cluster,
    s3: S3,
    spark: StandaloneSpark,
    lake_config: Config,
    target: Target,
    tmp_path: Path,
) -> Iterator[Write]:
    started = []

    def begin(mode: str, more: Mapping[str, str] | None = None) -> Process:
        conf = {
            **spark.conf,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            **(more or {}),
        }
        where: dict[str, Any] = {"master": spark.master, "conf": conf}
        uri = lake_config.storage.uri
        settings = Settings(tmp_path, cluster, uri, s3.storage_options, spark=where)
        module = "tests.spark.sink.retried_write"
        command = [sys.executable, "-m", module, str(settings.path), target.table, str(ROWS), mode]
        process = Process("writing program", command, tmp_path / "write.log")
        process.spawn()
        started.append(process)
        return process

    yield begin
    for one in started:
        one.kill()


def ended(process: Process, seconds: float = 240) -> None:
    assert process.wait(seconds) == 0, process.log.read_text()


def test_tasks_that_fail_behind_their_last_row(write: Write, target: Target) -> None:
    ended(write("fail"))
    assert target.ids() == list(range(ROWS))


def test_speculation(write: Write, target: Target) -> None:
    """The first attempt of one task hangs: its second one is what counts."""
    speculation = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "1s",
    }
    ended(write("hang", speculation))
    assert target.ids() == list(range(ROWS))


def test_an_executor_that_is_lost_between_two_sends(
    write: Write, target: Target, spark: StandaloneSpark, admin: Admin
) -> None:
    admin.set_publish_rate(target.topic, messages=400)  # 50 s for all of it
    program = write("run")
    wait_until("some of it is sent", lambda: admin.messages(target.topic) > 0, timeout=240)
    spark.workers[0].kill()
    try:
        assert admin.messages(target.topic) < ROWS
        admin.set_publish_rate(target.topic, messages=-1)
        ended(program)
    finally:
        spark.workers[0].spawn()
    assert target.ids() == list(range(ROWS))
