"""Hive's metastore on loopback, 2.3 as Spark's own jars have it."""

import subprocess
from pathlib import Path

import pyspark

from testbed.process import Server


class HiveMetastore(Server):
    """Its database and its warehouse are in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._log = directory / "metastore.log"

    def start(self) -> None:
        self._directory.mkdir(parents=True)
        source = Path(__file__).with_name("HiveMetastore.java")
        jars = Path(pyspark.__file__).with_name("jars")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["java", "-Xmx512m", "-cp", f"{jars}/*", str(source), str(self._directory)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self._directory,
            )
        assert self._process.stdout is not None
        lines = (one for one in self._process.stdout if one.startswith("port "))
        line = next(lines, "")
        assert line, self._log.read_text()[-4000:]
        self.uri = f"thrift://127.0.0.1:{line.split()[1]}"

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(120)
        if self._process.stdout is not None:
            self._process.stdout.close()
