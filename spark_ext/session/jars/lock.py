"""``make lock``: ``jars.lock`` anew, of what Maven gives for the pom now."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from reader.errors import UnavailableError
from spark_ext.session.jars.jar_list import GROUPS, LIST, Jar, sha256_of, write_list
from spark_ext.session.jars.shim import java_tool, pyspark_jars

_POM = Path(__file__).parent / "pom.xml"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# pyspark ships jcl-over-slf4j for the first; the second belongs to an older RoaringBitmap.
_UNWANTED = {"commons-logging", "shims"}


def lock_jars(file: Path = LIST) -> None:
    """Write the list: after the pom or pyspark has changed.

    Raises ConfigurationError without Maven, UnavailableError if it fails.
    """
    shipped = {re.sub(r"-\d.*$", "", jar.stem) for jar in pyspark_jars().glob("*.jar")}
    # What pyspark ships is left out: an older copy in front of it breaks Spark.
    unwanted = shipped | _UNWANTED
    write_list(
        [jar for group in GROUPS for jar in _resolved(group) if jar.artifact not in unwanted], file
    )


def _resolved(group: str) -> Iterator[Jar]:
    mvn = java_tool("mvn", "install Maven and put mvn on the PATH")
    with tempfile.TemporaryDirectory(prefix="pulsar-lake-") as temporary:
        command = [mvn, "--batch-mode", "--quiet", "--strict-checksums", "--file", str(_POM)]
        command += ["--activate-profiles", group, "-DincludeScope=runtime"]
        command += ["-Dmdep.useRepositoryLayout=true", f"-DoutputDirectory={temporary}", _COPY]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"Maven failed: {(done.stdout + done.stderr).strip()}")
        for found in sorted(Path(temporary).rglob("*.jar")):
            *organisation, artifact, version, _ = found.relative_to(temporary).parts
            classifier = found.stem.removeprefix(f"{artifact}-{version}").removeprefix("-")
            yield Jar(
                group, sha256_of(found), ".".join(organisation), artifact, version, classifier
            )


def main() -> None:
    """``python -m spark_ext.session.jars.lock``."""
    lock_jars()


if __name__ == "__main__":
    main()
