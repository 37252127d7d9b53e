"""Writes by the executors of a Spark cluster, that are tried again: each row once."""

import sys
from collections.abc import Callable
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

ROWS = 40_000


@pytest.mark.timeout(900)
def test_attempts_of_tasks(
    cluster: Cluster,
    admin: Admin,
    s3: S3,
    lake_config: Config,
    make: Callable[..., Target],
    tmp_path: Path,
) -> None:
    """Three writes by the executors of one driver: tasks fail behind their last row; a task hangs,
    and its second attempt is what counts; an executor is lost between two sends."""
    failing, hanging, lost = (make(name, partitions=2) for name in ("failing", "hanging", "lost"))
    admin.set_publish_rate(lost.topic, messages=400)  # 50 s for all of it
    with StandaloneSpark(workers=2) as spark:
        conf = {
            **spark.conf,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.quantile": "0.5",
            "spark.speculation.minTaskRuntime": "1s",
        }
        where: dict[str, Any] = {"master": spark.master, "conf": conf}
        settings = Settings(
            tmp_path, cluster, lake_config.storage.uri, s3.storage_options, spark=where
        )
        writes = (f"fail={failing.table}", f"hang={hanging.table}", f"run={lost.table}")
        module = "tests.spark.sink.retried_write"
        command = [sys.executable, "-m", module, str(settings.path), str(ROWS), *writes]
        program = Process("writing program", command, tmp_path / "write.log")
        program.spawn()
        try:
            wait_until(
                "some of the last write is sent",
                lambda: admin.messages(lost.topic) > 0 or not program.alive,
                timeout=400,
            )
            assert program.alive, program.log.read_text()
            spark.workers[0].kill()
            assert admin.messages(lost.topic) < ROWS
            admin.set_publish_rate(lost.topic, messages=-1)
            assert program.wait(240) == 0, program.log.read_text()
        finally:
            program.kill()
    assert [one.ids() for one in (failing, hanging, lost)] == [list(range(ROWS))] * 3
