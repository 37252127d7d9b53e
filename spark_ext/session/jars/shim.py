"""The catalog shim's jar: in a wheel; beside sources alone it is compiled, once for each text.

``setup.py`` compiles it for a wheel with the same function, where nothing but pyspark is
installed: this module and those that it imports need the standard library alone.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from reader.errors import ConfigurationError
from spark_ext.session.jars.folders import cache_home, open_folder

SHIM_SOURCES = Path(__file__).parents[2] / "jvm"
_RELEASE = "17"
_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_OPTIONS_ECHOED = re.compile(r"(NOTE: )?Picked up \w+:")
_LINTS = "-Xlint:all,-processing,-classfile,-path,-serial"


def shim_jar(sources: Path = SHIM_SOURCES) -> Path:
    """The jar of exactly these sources: the one beside them (a wheel's), else one in the cache.

    Raises ConfigurationError where it has to be compiled and cannot be.
    """
    shipped = sources / shim_name(sources)
    if shipped.is_file():
        return shipped
    folder = cache_home() / "shim"
    made = folder / shim_name(sources)
    open_folder(folder, create=not made.is_file())
    return made if made.is_file() else compile_shim(folder, sources)


def shim_name(sources: Path = SHIM_SOURCES) -> str:
    """Its file name, with its sources' hash: a stale jar is never used."""
    digest = hashlib.sha256()
    for file in sorted(sources.rglob("*.java")):
        digest.update(f"{file.name}\0".encode())
        digest.update(file.read_bytes())
    return f"pulsar-lake-spark-{digest.hexdigest()[:16]}.jar"


def compile_shim(folder: Path, sources: Path = SHIM_SOURCES) -> Path:
    """Compile it against pyspark's jars into ``folder``, whole or not at all.

    Raises ConfigurationError without a compiler or pyspark, or for sources that it refuses.
    """
    files = sorted(str(file) for file in sources.rglob("*.java"))
    hint = "install a JDK (17 or newer), or pulsar-lake from a wheel, which has it compiled"
    javac = java_tool("javac", hint)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".compiling-") as temporary:
        classes = Path(temporary, "classes")
        # It runs for seconds: Java's second compiler would take longer than it saves.
        command = [javac, "-J-XX:TieredStopAtLevel=1", "-proc:none", "--release", _RELEASE]
        command += ["-encoding", "UTF-8"]
        command += [_LINTS, "-Werror", "-cp", str(pyspark_jars() / "*"), "-d", str(classes)]
        done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
        if done.returncode:
            first = next(iter(java_lines(done.stderr)), "no output")
            raise ConfigurationError(f"the catalog shim cannot be compiled: {first}", hint=hint)
        made = Path(temporary, "made.jar")
        _pack(classes, made)
        return made.rename(folder / shim_name(sources))


def pyspark_jars() -> Path:
    """The folder with the jars that pyspark ships. Raises ConfigurationError without pyspark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ConfigurationError("pyspark is not installed", hint="pip install pulsar-lake")
    return Path(spec.origin).parent / "jars"


def java_tool(name: str, hint: str) -> str:
    """Where a program of Java's is: in ``JAVA_HOME`` as for Spark, else on the PATH.

    Raises ConfigurationError, with this hint, where it is not.
    """
    home = os.environ.get("JAVA_HOME")
    found = (home and shutil.which(name, path=f"{home}/bin")) or shutil.which(name)
    if not found:
        raise ConfigurationError(f"{name} is missing", hint=hint)
    return found


def java_lines(output: str, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Return the lines that a Java program printed, without its options, which may be secret.

    Java prints those of its ``environment``, on as many lines as they have there.
    """
    given = {line.strip() for one in _OPTIONS for line in environment.get(one, "").splitlines()}
    found = (line.strip() for line in output.splitlines())
    return [
        line for line in found if line and line not in given and not _OPTIONS_ECHOED.match(line)
    ]


def _pack(classes: Path, jar: Path) -> None:
    """The same classes give the same jar, byte by byte."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as made:
        entries = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n\n"}
        for file in sorted(classes.rglob("*.class")):
            entries[file.relative_to(classes).as_posix()] = file.read_bytes()
        for name, content in entries.items():
            entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            made.writestr(entry, content)
