"""``jars.lock``: each jar's coordinates, its hash, and what it is for."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["GROUPS", "LIST", "Jar", "groups_for", "listed", "sha256_of", "write_list"]

LIST = Path(__file__).parent / "jars.lock"
GROUPS = ("delta", "s3")
"""``delta``: Delta's own reader in the JVM. ``s3``: Hadoop's S3A, for a storage on S3."""

_HEADER = """\
# The jars that Spark needs beside pyspark's own, made from pom.xml by `make lock`:
# group, SHA-256, coordinates.
"""


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of a Maven repository."""

    group: str
    """What it is needed for, one of ``GROUPS``."""
    sha256: str
    """Of the file, in hexadecimal digits."""
    organisation: str
    artifact: str
    version: str

    @property
    def file(self) -> str:
        """Its name in any repository."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def coordinates(self) -> str:
        """As Maven, Gradle and Spark have them."""
        return f"{self.organisation}:{self.artifact}:{self.version}"

    @property
    def repository_path(self) -> str:
        """Its place below the root of a Maven repository."""
        folder = self.organisation.replace(".", "/")
        return f"{folder}/{self.artifact}/{self.version}/{self.file}"


def groups_for(
    storage_uri: str, conf: Mapping[str, str], *, delta: bool = False, any_storage: bool = False
) -> tuple[str, ...]:
    """The groups that a session needs: S3A where the storage or Spark's settings name it.

    ``delta``: whether it has Delta's reader. ``any_storage``: what any other storage needs, too.
    """
    named = any(key.startswith("spark.hadoop.fs.s3a.") for key in conf)
    s3 = any_storage or named or storage_uri.startswith(("s3://", "s3a://"))
    return (*(("delta",) if delta else ()), *(("s3",) if s3 else ()))


def listed(groups: Collection[str] = GROUPS, file: Path = LIST) -> tuple[Jar, ...]:
    """The jars of some groups, in the file's order."""
    return tuple(jar for jar in _read(file) if jar.group in groups)


def write_list(jars: Collection[Jar], file: Path = LIST) -> None:
    """The file anew."""
    ordered = sorted(jars, key=lambda jar: (jar.group, jar.coordinates))
    lines = (f"{jar.group:5}  {jar.sha256}  {jar.coordinates}\n" for jar in ordered)
    file.write_text(_HEADER + "".join(lines))


def sha256_of(file: Path) -> str:
    """In hexadecimal digits. Raises OSError."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


@cache
def _read(file: Path) -> tuple[Jar, ...]:
    rows = (line.split() for line in file.read_text().splitlines() if not line.startswith("#"))
    return tuple(Jar(group, sha256, *name.split(":")) for group, sha256, name in rows)
