"""Starts Spark's JVM and filters its standard error.

A JVM writes warnings before Spark has read any setting, so no logging setting reaches them. They
are dropped; everything else is passed on, and the last line tells why a JVM did not start.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import IO, TYPE_CHECKING

from reader.errors import ConfigurationError
from reader.printable import printable
from spark_ext.session.jars import java_lines

if TYPE_CHECKING:
    from pyspark import SparkConf

_NOISE = ("WARNING: Using incubator modules",)
_NO_COMMAND = "CMD: bad array subscript"
"""What bash says of Spark's script, once the JVM that makes its command has failed."""


def launch_jvm(conf: SparkConf, environment: Mapping[str, str], *, quiet: bool) -> None:
    """Start this process's JVM unless it runs. Raises ConfigurationError if it does not start.

    ``conf`` becomes its command line, which every user of the machine can read. ``environment``
    is what it has beside this process's; one that runs already, or that spark-submit has started,
    keeps its own.
    """
    from pyspark import SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    if not quiet:
        with _environment(environment):
            gateway = launch_gateway(conf)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway, conf=conf)
        return
    last: deque[str] = deque(maxlen=1)
    read_end, write_end = _pipe()
    reader = Thread(target=_pass_on, args=(read_end, last), name="spark-stderr", daemon=True)
    reader.start()
    try:
        with write_end, _environment(environment):
            gateway = launch_gateway(conf, {"stderr": write_end})  # type: ignore[no-untyped-call]
    except (PySparkRuntimeError, OSError) as error:
        reader.join(5)
        raise ConfigurationError(
            f"Spark's JVM does not start: {last[0] if last else error}",
            hint="it needs Java 17 or newer on the PATH or in JAVA_HOME",
        ) from error
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def forget_ended_jvm() -> bool:
    """Whether this process's JVM has ended by itself; then nothing is left of it here.

    So the next session begins with another one. A JVM that spark-submit has started ends with it.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None or process.poll() is None:
        return False
    active = SparkContext._active_spark_context
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "unable to cleanly shutdown", as is said already
        # The first one fails at the JVM; the second ends what is left in this process.
        for stop in (active.stop, active.stop, gateway.shutdown) if active else ():
            with suppress(Exception):
                stop()
    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None  # noqa: SLF001 - no other way
    return True


@contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """``launch_gateway`` gives the JVM this process's environment: for a moment it is another."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def safe_path(path: Sequence[str]) -> dict[str, str]:
    """What lets Spark's Python workers find modules in the current folder only if we do.

    ``path``: this process's ``sys.path``. Python puts that folder first for them: whoever may
    write there would choose what they run.
    """
    here = {"", str(Path.cwd())}
    return {} if here & set(path) else {"PYTHONSAFEPATH": "1"}


def _pipe() -> tuple[IO[bytes], IO[bytes]]:
    read_end, write_end = os.pipe()
    return os.fdopen(read_end, "rb", buffering=0), os.fdopen(write_end, "wb", buffering=0)


def _pass_on(source: IO[bytes], last: deque[str]) -> None:
    with source:
        for raw in source:
            line = raw.decode(errors="replace").rstrip("\n")
            if not line.startswith(_NOISE):
                if not line.endswith(_NO_COMMAND):
                    last += java_lines(line)
                sys.stderr.write(printable(line) + "\n")
