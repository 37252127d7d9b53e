"""One server and one client for the folder."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.s3 import S3
from tests.spark.connect.client import Client
from tests.spark.spark_servers import free_port, serving, shell_environment
from tests.support.running import Settings

_ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="package")
def server(cluster: Cluster, s3: S3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Connect server, started with what ``spark_ext.session.conf`` prints."""
    folder = tmp_path_factory.mktemp("connect")
    spark = {"master": "local[2]"}
    settings = Settings(folder, cluster, s3.uri, s3.storage_options, spark=spark)
    environment = shell_environment()
    program = [sys.executable, "-m", "spark_ext.session.conf", "--config", str(settings.path)]
    printed = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    (folder / "lake.conf").write_text(printed.stdout)
    port = free_port()
    more = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.driver.memory": "1500m",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": 2,  # a stream has so many state stores
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
    }
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with serving(name, port, folder, environment, more):
        yield f"sc://127.0.0.1:{port}"


@pytest.fixture(scope="package")
def client(server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client on a machine without Java."""
    environment = {
        "PATH": str(tmp_path_factory.mktemp("empty")),
        "HOME": os.environ.get("HOME", ""),
        "PYTHONPATH": str(_ROOT),
    }
    with Client(server, environment) as started:
        yield started
