"""An archive of Spark's classes, parsed and checked, which a JVM maps instead of loading jars.

With it (class data sharing, ``-XX:ArchiveClassesAtExit``) a session starts and answers its first
query with a fifth to a third less CPU. ``pulsar-lake setup`` makes it, with a JVM of its own that
runs a few small queries. Decision 40 says why Java does not make it by itself.

The archive is a file of some 130 MB in the cache. Its name has a hash of what it was made for (the
Java, and every jar of the class path by name, size and time) and its own checksum. A JVM ignores an
archive that was made for something else, but a damaged archive crashes it. So the checksum is
compared at each start, which takes a tenth of a second. The few newest archives are kept.

An archive is code: nobody else may write to its folder.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from reader.errors import UnavailableError
from reader.private_directory import check_private, make_private
from spark_ext.session.jars import cache_home

_CLASS_PATH = "spark.driver.extraClassPath"
_SETTINGS = (
    _CLASS_PATH,
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.catalog.pulsar",
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.ui.enabled",
)
"""The settings of a session that the archiving session has as well; none is a secret."""
_KEPT = 4
_SECONDS = 600
# The JVM would print to standard output why it does not take an archive.
_QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"


def find_archive(class_path: str) -> Path | None:
    """Return the archive for a JVM, or None if no whole and private one exists.

    ``class_path``: ``spark.driver.extraClassPath``, which may have ``*`` for a folder's jars.
    """
    place = archive_place(class_path)
    for file in place.parent.glob(f"{place.name}-*.jsa") if place else ():
        with suppress(OSError):
            check_private(file.parent)
            check_private(file)
            if file.stem.rpartition("-")[2] == _checksum(file):
                return file
    return None


def archive_place(class_path: str) -> Path | None:
    """Return an archive's path up to its checksum, or None without a Java."""
    java = _java_home()
    if java is None:
        return None
    from pyspark.find_spark_home import _find_spark_home

    digest = hashlib.sha256(str(java).encode())
    with suppress(OSError):
        digest.update((java / "release").read_bytes())
    for entry in (*class_path.split(os.pathsep), f"{_find_spark_home()}/jars/*"):
        jars = sorted(Path(entry[:-1]).glob("*.jar")) if entry.endswith("*") else [Path(entry)]
        for jar in jars:
            with suppress(OSError):
                found = jar.stat()
                digest.update(f"{jar}\0{found.st_size}\0{int(found.st_mtime)}\0".encode())
    return cache_home() / f"classes-{digest.hexdigest()[:16]}"


def archive_options(class_path: str) -> str:
    """Return the options that make a JVM use its archive, or "" without an archive."""
    file = find_archive(class_path)
    if file is None or any(one.isspace() for one in str(file)):
        return ""
    with suppress(OSError):
        os.utime(file)  # the longest unused one goes first
    return f"-XX:SharedArchiveFile={file} {_QUIET}"


def make_archive(conf: Mapping[str, str]) -> Path:
    """Return the archive for sessions of these settings. Make it if it is missing.

    That takes tens of seconds. Only one process at a time makes an archive. Raises UnavailableError
    without a Java, or if the archive cannot be made; OSError if the cache cannot be written.
    """
    class_path = conf.get(_CLASS_PATH, "")
    place = archive_place(class_path)
    if place is None:
        raise UnavailableError(
            "there is no Java", hint="install Java 17 or newer; put it on the PATH or in JAVA_HOME"
        )
    make_private(place.parent, 0o755)
    with (place.parent / "classes.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        file = find_archive(class_path) or _make(conf, place)
        _drop_old(file)
    return file


def needed(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that an archive depends on. They are visible on a command line."""
    return {name: conf[name] for name in _SETTINGS if name in conf}


def _make(conf: Mapping[str, str], place: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="archiving-") as work:
        made = Path(work) / "classes.jsa"
        command = [sys.executable, "-P", "-m", __name__, work, str(made), json.dumps(needed(conf))]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            reason = done.stderr.strip().split("\n")[-1]
        except subprocess.TimeoutExpired:
            reason = f"it took more than {_SECONDS} s"
        if not made.is_file():
            raise UnavailableError(f"the archive of Spark's classes was not made: {reason}")
        made.chmod(0o444)
        return made.rename(f"{place}-{_checksum(made)}.jsa")


def _run(work: Path, file: Path, conf: Mapping[str, str]) -> None:
    """Start a JVM that loads the classes of queries, and archives them in ``file`` at its end.

    ``work``: an empty folder. The process is used for nothing else.
    """
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    settings = SparkConf().setAll(
        [
            *conf.items(),
            ("spark.master", "local[2]"),
            ("spark.sql.warehouse.dir", work.as_uri()),
            ("spark.sql.shuffle.partitions", "2"),
            ("spark.driver.memory", "1g"),
            ("spark.driver.defaultJavaOptions", f"-XX:ArchiveClassesAtExit={file}"),
        ]
    )
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = SparkSession.Builder().config(conf=settings).getOrCreate()
    try:
        _load_classes(spark, work)
    finally:
        process = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
        spark.stop()
        process.stdin.close()  # as when this process ends
        process.wait(_SECONDS)


def _load_classes(spark: Any, work: Path) -> None:
    """Run small queries of the kinds that users ask. A query that fails has loaded its classes."""
    from pyspark.errors import PySparkException

    files = str(work / "rows")
    rows = spark.range(1000).selectExpr(
        "id",
        "CAST(id % 7 AS STRING) kind",
        "CAST(id AS DOUBLE) value",
        "timestamp_millis(id) at",
        "map('a', CAST(id AS BINARY)) properties",
    )
    rows.repartition(2).write.parquet(files)
    spark.read.parquet(files).createOrReplaceTempView("t")
    spark.range(10).mapInArrow(lambda batches: batches, "id bigint").createOrReplaceTempView("p")
    queries = (
        "SELECT kind, count(*), sum(value), max(at) FROM t WHERE at > '1970-01-01' GROUP BY kind",
        "SELECT * FROM t ORDER BY id DESC LIMIT 5",
        "SELECT * FROM t WHERE id = 17",
        "SELECT count(*) FROM t",
        "SELECT t.id, kind FROM t JOIN p USING (id)",
        "SELECT id FROM p UNION ALL SELECT id FROM t WHERE kind = '1'",
        "SELECT count(*) FROM pulsar.`public/default`.`a topic`",
    )
    for query in queries:
        with suppress(PySparkException):
            frame = spark.sql(query)
            frame.toArrow()
            frame.collect()


def _java_home() -> Path | None:
    """Return the home of the Java that Spark's scripts start: ``JAVA_HOME``, else the PATH's."""
    given = os.environ.get("JAVA_HOME")
    found = f"{given}/bin/java" if given else shutil.which("java")
    return Path(found).resolve().parents[1] if found and Path(found).is_file() else None


def _checksum(file: Path) -> str:
    found = 0
    with file.open("rb", buffering=0) as opened:
        while block := opened.read(1 << 20):
            found = crc32(block, found)
    return f"{found:08x}"


def _drop_old(file: Path) -> None:
    files = sorted(file.parent.glob("classes-*.jsa"), key=lambda one: one.stat().st_mtime)
    for old in files[:-_KEPT]:
        if old != file:
            old.unlink(missing_ok=True)  # a JVM that has it mapped keeps it


if __name__ == "__main__":
    _run(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
