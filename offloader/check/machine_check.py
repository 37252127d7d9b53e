"""This machine: Java, Spark's jars, space for files and in memory."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from offloader.check.outcome import Finding, Waiting
from offloader.model import size_text
from spark_ext.session.jars import java_lines

_LEAST_JAVA = 17
_JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_INSTALL_JAVA = (
    f"install a Java runtime, {_LEAST_JAVA} or newer (Debian: apt install openjdk-21-jre-headless),"
    " and put java on the PATH or set JAVA_HOME"
)

_FAILED_BYTES = 256 << 20
_WARNED_BYTES = 2 << 30
"""Jars and compiled kernels are 90 MB; Spark spills and writes some more where a query sorts."""
_MEMORY_BYTES = 2 << 30
"""What Spark's JVM and one Python worker take (docs/operations.md, Sizing)."""


def check_java(environment: Mapping[str, str], waiting: Waiting, *, seconds: float) -> Finding:
    """The Java that Spark starts: that of JAVA_HOME, or else the PATH's."""
    home = environment.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java", path=_path(environment))
    if java is None:
        return Finding.failed(
            "there is no java on the PATH, and JAVA_HOME is not set", _INSTALL_JAVA
        )
    waiting(java)
    try:
        done = subprocess.run(
            [java, "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            env=dict(environment),
        )
    except OSError as error:
        whence = "JAVA_HOME" if home else "the PATH"
        return Finding.failed(f"{java}, of {whence}, does not run: {error.strerror}", _INSTALL_JAVA)
    except subprocess.TimeoutExpired:
        return Finding.failed(f"{java} -version does not end within {seconds:g} s", _INSTALL_JAVA)
    said = (done.stderr + done.stdout).strip()
    found = _JAVA_VERSION.search(said)
    if done.returncode or found is None:
        first = next(iter(java_lines(said, environment)), f"exit code {done.returncode}")
        return Finding.failed(f"{java} -version: {first}", _INSTALL_JAVA)
    if int(found[1]) < _LEAST_JAVA:
        return Finding.failed(
            f"{java} is Java {found[1]}: Spark needs {_LEAST_JAVA} or newer", _INSTALL_JAVA
        )
    return Finding.ok(f"Java {found[1]} ({java})")


def _path(environment: Mapping[str, str]) -> str:
    return environment.get("PATH", "")


def check_jars(folder: Path, wanted: Sequence[str], missing: Sequence[str]) -> Finding:
    """``wanted``: a session's jars beside pyspark's own, by their names in ``folder``.

    ``missing``: those of them that are not there, or are not what their hashes say.
    """
    if not wanted:
        return Finding.ok("these settings need none beside pyspark's own")
    damaged = [name for name in missing if (folder / name).exists()]
    if damaged:
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        return Finding.failed(
            f"{folder / damaged[0]}{more} is not what its hash says",
            "pulsar-lake setup fetches it anew; see who else may write there",
        )
    if missing:
        return Finding.warning(
            f"{len(missing)} of Spark's {len(wanted)} jars are not in {folder} yet",
            "the first query fetches them; pulsar-lake setup does it now, and without a network "
            "pulsar-lake setup --list says which files to put there",
        )
    return Finding.ok(f"{len(wanted)} jars for Spark in {folder}, each with its hash")


def free_bytes(directory: Path) -> int:
    """Return how many bytes are free for other users than root on the directory's disk.

    A directory that is not there yet will be on the disk of the nearest one above it. Raises
    OSError.
    """
    there = next(one for one in (directory, *directory.parents) if one.exists())
    return shutil.disk_usage(there).free


def check_space(
    directories: Mapping[str, Path], *, free: Callable[[Path], int] = free_bytes
) -> Finding:
    """``directories`` by what they are for. Each has to be one that can be written to, or made."""
    found = {what: free(path) for what, path in directories.items()}
    for what, path in directories.items():
        there = next(one for one in (path, *path.parents) if one.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            return Finding.failed(f"{what} {path} cannot be written to", _OTHER_FOLDERS)
    least = min(found, key=lambda what: found[what])
    if found[least] < _WARNED_BYTES:
        text = f"{size_text(found[least])} left for {least}: {directories[least]}"
        few = found[least] < _FAILED_BYTES
        return (Finding.failed if few else Finding.warning)(text, f"free some, or {_OTHER_FOLDERS}")
    return Finding.ok(
        ", ".join(
            f"{size_text(size)} for {what} ({directories[what]})" for what, size in found.items()
        )
    )


_OTHER_FOLDERS = (
    "name other folders: PULSAR_LAKE_CACHE, TMPDIR, spark.local.dir in [spark.conf], storage.uri"
)


def temporary_directory(spark_conf: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """Return the directory that Spark spills to: the one that it is set to, or the system's."""
    named = environment.get("SPARK_LOCAL_DIRS") or spark_conf.get("spark.local.dir")
    return Path(named.split(",")[0]) if named else Path(tempfile.gettempdir())


def available_memory(
    meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int | None:
    """Bytes that a new process may take, of the machine and of its container; None: not known."""
    found = []
    try:
        kib = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)
        found += [int(kib[1]) << 10] if kib else []
    except OSError:
        pass  # not Linux
    try:
        most = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        found += [int(most) - used] if most.isdigit() else []
    except (OSError, ValueError):
        pass  # no container, or of another version
    return min(found, default=None)


def check_memory(available: int | None) -> Finding:
    """``available``: bytes; None: not known."""
    if available is None:
        return Finding.skipped("this system does not say")
    if available < _MEMORY_BYTES:
        return Finding.warning(
            f"{size_text(available)} are available: Spark's JVM and its Python workers want more",
            'stop something, or let Spark take less: spark.master = "local[1]", '
            '"spark.driver.memory" = "1g" in [spark.conf]',
        )
    return Finding.ok(f"{size_text(available)} are available")
