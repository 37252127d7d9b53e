"""The offloader's Spark: started with the first job, one for all jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from offloader.config import Config

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOCAL = re.compile(r"local\[([^,\]]+)\]")


class SparkStarter:
    """Starts Spark when it is first called. Each call returns the same context.

    Not thread-safe. Call it in the threads of jobs: in the main one, a new context takes Ctrl-C for
    itself.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._started: SparkContext | None = None

    def __call__(self) -> SparkContext:
        if self._started is None:
            self._started = _start(self._config)
        return self._started

    def cancel(self) -> None:
        """Cancel all jobs that run."""
        if self._started is not None:
            self._started.cancelAllJobs()


def _start(config: Config) -> SparkContext:
    from spark_ext.session.builder import build_session  # Java starts only if something is due
    from spark_ext.session.cores import usable_cores

    match = _LOCAL.fullmatch(config.spark.master)
    # Without a number of retries, a local master gives up at a task's first failure. Healthy
    # topics, retries and slow topics wait for their servers side by side (``Workers``).
    cores = match[1].replace("*", str(max(3, usable_cores()))) if match else ""
    master = f"local[{cores},4]" if match else config.spark.master
    # Pools share the cores between jobs that run side by side (jobs.py).
    conf = {
        "spark.scheduler.mode": "FAIR",
        "spark.python.daemon.module": "offloader.convert.worker_daemon",
        # No data goes through this JVM: a better compiler costs more than it saves.
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1",
        **config.spark.conf,
    }
    spark = config.spark.model_copy(update={"master": master, "conf": conf})
    return build_session(
        config.model_copy(update={"spark": spark}), app_name="pulsar-lake offload"
    ).sparkContext
