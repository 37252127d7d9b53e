"""A REST catalog on loopback: Apache's own handlers behind the JDK's HTTP server.

Apache's server for tests is on no registry; what it routes to, ``CatalogHandlers``, is in each
release. So the checks of requirements, the commits and the JSON are those of Iceberg 1.12.
"""

import os
import subprocess
from pathlib import Path
from typing import Self

import pyspark

from testbed.process import Server
from tests.iceberg.engines import H2_JAR, ICEBERG_JAR, fetched_jar


class RestServer(Server):
    """Which metadata is a table's newest, it has in memory; the files are where the table is."""

    def __init__(self, warehouse: Path) -> None:
        self._warehouse = warehouse
        self._log = warehouse / "rest-server.log"

    def start(self) -> None:
        self._warehouse.mkdir(parents=True, exist_ok=True)
        hadoop = Path(pyspark.__file__).with_name("jars")
        jars = [str(fetched_jar(one)) for one in (ICEBERG_JAR, H2_JAR)]
        path = os.pathsep.join([*jars, f"{hadoop}/*"])
        source = Path(__file__).with_name("RestServer.java")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx256m", "-cp", path, str(source), f"file://{self._warehouse}"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.strip().isdigit(), self._log.read_text()
        self.url = f"http://127.0.0.1:{line.strip()}"

    @property
    def spark_conf(self) -> dict[str, str]:
        """Settings of a Spark that finds it as the catalog ``lake``."""
        name = "spark.sql.catalog.lake"
        kind = {name: "org.apache.iceberg.spark.SparkCatalog", f"{name}.type": "rest"}
        return {**kind, f"{name}.uri": self.url}

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(120)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        self.start()
        return self
