"""Spark beyond one machine, on one: a standalone master and its workers, processes on loopback.

They ask for a secret and encrypt, as in ``deploy/kubernetes/spark.yaml``.
"""

import shutil
import tempfile
from pathlib import Path

import pyspark

from testbed.process import Process, Server, free_ports, port_answers, wait_for

_SPARK = Path(pyspark.__file__).parent
_SECRET = "the-spark-clusters-secret"
_ENVIRONMENT = {
    "SPARK_HOME": str(_SPARK),
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-Dspark.authenticate=true -Dspark.network.crypto.enabled=true",
    "_SPARK_AUTH_SECRET": _SECRET,
}


class Worker(Process):
    """A worker of one core, at a loopback address of its own: of a task's attempts, no two run on
    one host at once. `home`: a folder for each application's executors."""

    def __init__(self, number: int, master: str, directory: Path) -> None:
        self.home = directory / f"worker-{number}"
        self.home.mkdir()
        address = f"127.0.0.{number + 1}"
        command = [*_class("worker.Worker"), "--host", address, "--webui-port", "0"]
        command += ["--cores", "1", "--memory", "1g", "--work-dir", str(self.home), master]
        super().__init__(
            f"worker-{number}", command, directory / f"worker-{number}.log", _ENVIRONMENT
        )

    @property
    def registered(self) -> bool:
        return self.log.exists() and "Successfully registered with master" in self.log.read_text()

    def executors(self) -> list[str]:
        """What its executors have written to their logs, one text each."""
        return [log.read_text(errors="replace") for log in sorted(self.home.glob("*/*/stderr"))]

    def has_run_tasks(self) -> bool:
        return any("Running task" in text for text in self.executors())


class StandaloneSpark(Server):
    """`master` is its URL. Workers start Python by the driver's PYSPARK_PYTHON, as Spark does.

    `conf`: what a driver needs to be let in.
    """

    def __init__(self, workers: int = 2) -> None:
        self._count = workers
        self.conf = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": _SECRET,
            "spark.network.crypto.enabled": "true",
        }
        self.workers: list[Worker] = []

    def start(self) -> None:
        """Start all, and wait until the workers have registered."""
        self._directory = Path(tempfile.mkdtemp(prefix="pulsar-lake-spark-"))
        [port] = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        command = [*_class("master.Master"), "--host", "127.0.0.1", "--port", str(port)]
        self._master = Process(
            "master", [*command, "--webui-port", "0"], self._directory / "master.log", _ENVIRONMENT
        )
        self._master.spawn()
        try:
            wait_for("Spark's master", lambda: port_answers(port), [self._master])
            self.workers = [
                Worker(number, self.master, self._directory) for number in range(self._count)
            ]
            for worker in self.workers:
                worker.spawn()
            wait_for("Spark's workers", self._complete, [self._master, *self.workers])
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for process in (*self.workers, self._master):
            process.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _complete(self) -> bool:
        return all(worker.registered for worker in self.workers)


def _class(name: str) -> list[str]:
    return [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
