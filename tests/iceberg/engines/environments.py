"""Other engines in environments of their own, and their jars: fetched once into the cache.

They need other versions than the project has: of DuckDB one whose extensions are on PyPI, of Spark
one that Iceberg has a runtime for (4.2 has none yet).
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from testbed.closing import Closing
from tests.support.running import run_program
from tests.support.tables import filled

DUCKDB = ("duckdb==1.5.5", "duckdb-extension-iceberg==1.5.5", "duckdb-extension-avro==1.5.5")
_SPARK = ("pyspark==4.1.4",)
ICEBERG_JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
H2_JAR = "com.h2database:h2:2.3.232"
_HASHES = {
    ICEBERG_JAR: "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
    H2_JAR: "8dae62d22db8982c3dcb3826edb9c727c5d302063a67eef7d63d82de401f07d3",
}
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def rows_by(packages: tuple[str, ...], program: str, given: Mapping[str, object]) -> list[str]:
    """All rows of a table as text, sorted, as ``program`` of this folder reads them.

    In an environment with ``packages``; it writes a Parquet file to the path ``out``.
    """
    run_by(packages, program, given)
    return _rows(given)


def _rows(given: Mapping[str, object]) -> list[str]:
    out = Path(str(given["out"]))
    files = sorted(out.glob("*.parquet")) if out.is_dir() else [out]
    rows = [row for one in files for row in pq.read_table(one).to_pylist()]
    return sorted(repr(filled(row)) for row in rows)


class SparkEngine(Closing):
    """Spark 4.1 with Iceberg's runtime: one JVM, and a session of its own for each request."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("w+")
        script = Path(__file__).with_name("spark_rows.py")
        self._process = subprocess.Popen(
            [str(_python(_SPARK)), str(script), str(fetched_jar(ICEBERG_JAR))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=_environment(),
        )

    def rows(self, given: Mapping[str, object]) -> list[str]:
        """Return all rows of a table as text, sorted. ``given`` is a request of spark_rows."""
        self.run(given)
        return _rows(given)

    def run(self, given: Mapping[str, object]) -> None:
        """Let it answer a request of spark_rows into a file."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        answers = (one for one in self._process.stdout if one.startswith("answer "))
        assert next(answers, "it has ended\n") == "answer null\n", self._said()

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read()[-4000:]

    def close(self) -> None:
        self._process.communicate("", 240)
        self._log.close()


def run_by(packages: tuple[str, ...], program: str, given: Mapping[str, object]) -> None:
    """Run ``program`` of this folder in an environment with ``packages``."""
    script = Path(__file__).with_name(f"{program}.py")
    done = run_program(
        [str(_python(packages)), str(script), json.dumps(given)], timeout=600, env=_environment()
    )
    assert done.returncode == 0, done.stderr[-4000:]


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SPARK"))}


def fetched_jar(artifact: str) -> Path:
    """A jar by its Maven coordinates; its hash is compared."""
    _, name, version = artifact.split(":")
    file = f"{name}-{version}.jar"

    def fetch(folder: Path) -> None:
        maven = shutil.which("mvn")
        assert maven is not None, "Maven fetches it"
        command = [maven, "-q", "-B", _COPY, f"-Dartifact={artifact}"]
        subprocess.run([*command, f"-DoutputDirectory={folder}"], cwd=folder, check=True)
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == _HASHES[artifact]

    return _made(file, fetch) / file


def _python(packages: tuple[str, ...]) -> Path:
    def fetch(folder: Path) -> None:
        python = folder / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        uv = str(Path(sys.executable).with_name("uv"))
        command = [uv, "pip", "install", "-q", "--python", str(python), *packages]
        subprocess.run(command, check=True)

    return _made("-".join(packages), fetch) / "bin" / "python"


def _made(name: str, fetch: Callable[[Path], None]) -> Path:
    """A folder of the cache, made by ``fetch`` if it is not whole yet."""
    asked = os.environ.get("PULSAR_LAKE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(asked or f"{base}/pulsar-lake").expanduser() / "iceberg-engines"
    folder = root / hashlib.sha256(name.encode()).hexdigest()[:12]
    root.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            fetch(folder)
            (folder / "whole").touch()
    return folder
