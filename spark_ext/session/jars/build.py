"""Fill the cache with jars: one Maven run, then one atomic rename."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from reader.errors import ConfigurationError, UnavailableError
from reader.private_directory import check_private, make_private
from spark_ext.session.jars.hashes import check_jars, write_hashes

__all__ = [
    "HASHES",
    "SHIM_SOURCES",
    "build_shim",
    "cache_home",
    "class_path",
    "jars_directory",
    "lock_jars",
    "prewarm",
    "shim_name",
    "warehouse",
    "write_class_path_jar",
]

_HERE = Path(__file__).parent
_POM = _HERE / "pom.xml"
HASHES = _HERE / "jars.sha256"
SHIM_SOURCES = _HERE.parents[1] / "jvm"
_PLUGINS = "org.apache.maven.plugins:maven-"
_COPY = f"{_PLUGINS}dependency-plugin:3.6.1:copy-dependencies"
_COMPILE = (f"{_PLUGINS}compiler-plugin:3.13.0:compile", f"{_PLUGINS}jar-plugin:3.4.1:jar")
# pyspark ships jcl-over-slf4j for the first; the second belongs to an older RoaringBitmap.
_UNWANTED = {"commons-logging", "shims"}
_SHIM = "pulsar-lake-spark.jar"


def cache_home() -> Path:
    """``$PULSAR_LAKE_CACHE``, else ``pulsar-lake`` in the user's cache folder."""
    given = os.environ.get("PULSAR_LAKE_CACHE")
    return Path(given).expanduser().absolute() if given else _user_cache()


def warehouse() -> Path:
    """Where tables go that are given no place, in the cache: Spark has it in the working directory.

    In the user's own cache folder where ``cache_home`` cannot be written, as in an image.
    """
    for home in (cache_home(), _user_cache()):
        folder = home / "warehouse"
        with suppress(OSError):
            make_private(folder, 0o755)
        if os.access(folder, os.W_OK):
            return folder
    return cache_home() / "warehouse"


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "pulsar-lake"


def class_path(directory: Path) -> str:
    """The folder as an entry of a JVM's class path."""
    return str(directory / "*")


def jars_directory(
    progress: Callable[[str], None] | None = None,
    *,
    sources: Path = SHIM_SOURCES,
    hashes: Path = HASHES,
) -> Path:
    """The folder with the jars, filled on first use.

    ``progress`` gets one line before a long step (default: a line on stderr). Processes that
    need it at the same time wait for the first. ``sources`` is the shim's folder, ``hashes``
    lists the jars. Raises ConfigurationError without Maven or a JDK, UnavailableError if Maven
    fails or gives other jars.
    """
    target = cache_home() / f"jars-{_digest(_POM, hashes, *_java_files(sources))}"
    if target.is_dir():
        return _checked(target)
    tell = progress or (lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201
    _create(target.parent)
    with _locked(target.with_suffix(".lock")):
        if target.is_dir():
            return _checked(target)
        tell("pulsar-lake: fetching the jars for Spark (once, about 30 MB) ...")
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="building-") as temporary:
            filled = Path(temporary) / "jars"
            filled.mkdir(mode=0o755)
            prebuilt = _prebuilt(sources)
            _maven(Path(temporary), filled, sources, compile_shim=prebuilt is None, copy=True)
            _drop_shipped(filled)
            check_jars(filled, hashes, own=_SHIM)
            if prebuilt is not None:
                shutil.copy(prebuilt, filled)
            filled.rename(target)
    return target


def lock_jars() -> None:
    """Write ``jars.sha256`` anew, of what Maven gives now: after the pom or pyspark has changed."""
    with tempfile.TemporaryDirectory(prefix="pulsar-lake-") as temporary:
        filled = Path(temporary) / "jars"
        filled.mkdir()
        _maven(Path(temporary), filled, SHIM_SOURCES, compile_shim=False, copy=True)
        _drop_shipped(filled)
        write_hashes(filled, HASHES)


def build_shim(directory: Path) -> Path:
    """Compile the shim alone into ``directory``, under the name that a wheel has it by."""
    with tempfile.TemporaryDirectory(prefix="pulsar-lake-") as temporary:
        built = Path(temporary) / "jars"
        built.mkdir()
        _maven(Path(temporary), built, SHIM_SOURCES, compile_shim=True, copy=False)
        directory.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(built / _SHIM, directory / shim_name()))


def shim_name(sources: Path = SHIM_SOURCES) -> str:
    """A compiled shim's file name, with its sources' hash: a stale jar is never used."""
    return f"pulsar-lake-spark-{_digest(*_java_files(sources))}.jar"


def prewarm() -> None:
    """Compile the decoders' kernels into numba's cache, so that no query waits for it."""
    from reader.bookkeeper import prewarm as prewarm_reads
    from reader.decode import prewarm as prewarm_entries
    from reader.payload import prewarm as prewarm_payloads
    from reader.pulsar.binary import prewarm as prewarm_frames

    prewarm_reads()
    prewarm_entries()
    prewarm_payloads()
    prewarm_frames()


def _maven(work: Path, output: Path, sources: Path, *, compile_shim: bool, copy: bool) -> None:
    mvn = _tool("mvn", "Maven", "install Maven and put mvn on the PATH")
    if compile_shim:
        _tool("javac", "A JDK (17 or newer)", "install one and put javac on the PATH")
    # A copy, because Maven writes beside its pom and a package's folder may be read-only.
    shutil.copy(_POM, work / "pom.xml")
    write_class_path_jar(work / "spark-classpath.jar")
    command = [
        mvn,
        "--batch-mode",
        "--quiet",
        "--strict-checksums",
        "--file",  # in two words: only so does Maven's script look for .mvn there
        str(work / "pom.xml"),
        f"-Dspark.classpath={work / 'spark-classpath.jar'}",
        f"-Dshim.sources={sources}",
        "-DincludeScope=runtime",
        f"-DoutputDirectory={output}",
        *((_COPY,) if copy else ()),
        *(_COMPILE if compile_shim else ()),
    ]
    # Whoever left a .mvn in a folder above would choose what Maven's JVM is started with.
    (work / ".mvn").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "MAVEN_BASEDIR"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=work, env=environment, umask=0o022
    )
    if done.returncode:
        raise UnavailableError(
            f"Maven could not prepare the jars for Spark: {_reason(done.stdout + done.stderr)}",
            hint="the first run needs the network, or a Maven repository that has the jars",
        )
    if compile_shim:
        shutil.copy(work / "target" / _SHIM, output)


def write_class_path_jar(path: Path) -> None:
    """A jar without classes, whose manifest names every jar of pyspark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("pyspark is not installed", hint="pip install pulsar-lake")
    jars = sorted((Path(spec.origin).parent / "jars").glob("*.jar"))
    line = "Class-Path: " + " ".join(jar.as_uri() for jar in jars)
    # The format wraps lines at 72 bytes; a continuation starts with a blank.
    wrapped = [line[:70], *(f" {line[i : i + 69]}" for i in range(70, len(line), 69))]
    with zipfile.ZipFile(path, "w") as jar:
        manifest = "\n".join(["Manifest-Version: 1.0", *wrapped])
        jar.writestr("META-INF/MANIFEST.MF", f"{manifest}\n\n")


def _drop_shipped(directory: Path) -> None:
    """Remove what pyspark ships itself: an older copy in front of it breaks Spark."""
    import pyspark

    shipped = {_artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    for jar in directory.glob("*.jar"):
        if _artifact(jar) in shipped | _UNWANTED:
            jar.unlink()


def _artifact(jar: Path) -> str:
    return re.sub(r"-\d.*$", "", jar.stem)


def _prebuilt(sources: Path) -> Path | None:
    shim = sources / shim_name(sources)
    return shim if shim.is_file() else None


def _java_files(sources: Path) -> list[Path]:
    return sorted(sources.rglob("*.java"))


def _digest(*files: Path) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _tool(name: str, what: str, hint: str) -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(name) or (home and shutil.which(name, path=f"{home}/bin"))
    if not found:
        raise ConfigurationError(f"{what} is missing: it prepares the jars for Spark", hint=hint)
    return found


def _reason(output: str) -> str:
    """The line of Maven's output with the cause."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", output)
    lines = [line.removeprefix("[ERROR]").strip() for line in plain.splitlines()]
    return next((line for line in lines if line and line[-1] != ":"), "no output")


def _checked(target: Path) -> Path:
    for directory in (target.parent, target):
        try:
            check_private(directory)
        except OSError as error:
            raise ConfigurationError(
                f"the jars for Spark in {directory}: {error.strerror}",
                hint="remove the folder, or set PULSAR_LAKE_CACHE to one that only you can write",
            ) from error
    return target


def _create(directory: Path) -> None:
    try:
        make_private(directory, 0o755)
    except OSError as error:
        raise ConfigurationError(
            f"cannot create the cache {directory}: {error.strerror}",
            hint="set PULSAR_LAKE_CACHE to another folder",
        ) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
