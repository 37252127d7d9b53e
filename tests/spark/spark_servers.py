"""Spark's own servers, as users start them: spark-submit, a properties file and nothing else."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from testbed.process import free_ports, port_answers

HOME = Path(pyspark.__file__).parent


def shell_environment() -> dict[str, str]:
    """Of a user's shell in which only Spark is set up; the product is the one under test."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYSPARK", "SPARK", "PYTHONPATH"))
    }
    source = str(Path(__file__).parents[2])
    return kept | {"SPARK_HOME": str(HOME), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": source}


def free_port() -> int:
    """One that nobody listens at now, and no outgoing connection takes before the server does."""
    [free] = free_ports(1)
    return free


@contextmanager
def serving(
    main_class: str,
    port: int,
    folder: Path,
    environment: Mapping[str, str],
    conf: Mapping[str, object],
) -> Iterator[None]:
    """A server that listens at ``port``, run in ``folder`` with the settings of ``lake.conf``.

    ``conf``: more settings of Spark.
    """
    command = [str(HOME / "bin" / "spark-submit"), "--properties-file", "lake.conf"]
    quick = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}  # lives for minutes
    for name, value in (quick | dict(conf)).items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", main_class, "spark-internal"]
    log = folder / "server.log"
    with (
        log.open("w") as out,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out) as server,
    ):
        try:
            _wait_for(port, server, log)
            yield
        finally:
            server.terminate()
            server.wait(240)


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 400
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        if port_answers(port):
            return
        time.sleep(0.5)
    raise AssertionError(f"no server: {log.read_text()}")
