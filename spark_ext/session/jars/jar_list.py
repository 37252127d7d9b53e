"""``jars.lock``: each jar's coordinates, its hash, and what it is for."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LIST = Path(__file__).parent / "jars.lock"


@dataclass(frozen=True, slots=True)
class Connector:
    """Hadoop's client of a kind of storage that pyspark has no jars for."""

    name: str
    """For people."""
    schemes: tuple[str, ...]
    """Of URIs that it serves, ours among them."""
    settings: str
    """How its settings begin."""
    implementation: str
    """A class of it."""


CONNECTORS = {
    "s3": Connector(
        "S3", ("s3", "s3a"), "spark.hadoop.fs.s3a.", "org.apache.hadoop.fs.s3a.S3AFileSystem"
    ),
    "gcs": Connector(
        "Google Cloud Storage",
        ("gs",),
        "spark.hadoop.fs.gs.",
        "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
    ),
    "azure": Connector(
        "Azure",
        ("abfs", "abfss"),
        "spark.hadoop.fs.azure.",
        "org.apache.hadoop.fs.azurebfs.AzureBlobFileSystem",
    ),
}
"""By their group of jars."""
GROUPS = ("delta", *CONNECTORS)
"""``delta``: Delta's own reader in the JVM. The others: a storage's connector."""

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
    classifier: str = ""
    """Which of several jars of this version; "" for the usual one."""

    @property
    def file(self) -> str:
        """Its name in any repository."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{classifier}.jar"

    @property
    def coordinates(self) -> str:
        """As Gradle has them, and without a classifier Maven and Spark."""
        classifier = f":{self.classifier}" if self.classifier else ""
        return f"{self.organisation}:{self.artifact}:{self.version}{classifier}"

    @property
    def repository_path(self) -> str:
        """Its place below the root of a Maven repository."""
        folder = self.organisation.replace(".", "/")
        return f"{folder}/{self.artifact}/{self.version}/{self.file}"


def groups_for(
    storage_uri: str, conf: Mapping[str, str], *, delta: bool = False, any_storage: bool = False
) -> tuple[str, ...]:
    """The groups that a session needs: connectors that the storage or Spark's settings name.

    ``delta``: whether it has Delta's reader. ``any_storage``: where the storage is not known yet,
    what most of them need; another's connector is fetched once its URI is there.
    """
    scheme = storage_uri.partition("://")[0].lower() if "://" in storage_uri else ""
    connectors = (
        group
        for group, one in CONNECTORS.items()
        if scheme in one.schemes
        or any(key.startswith(one.settings) for key in conf)
        or (any_storage and group == "s3")
    )
    return (*(("delta",) if delta else ()), *connectors)


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
