"""The server's jars: fetched once by Maven, then found in a cache (offline from then on)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["JarsError", "server_jars"]

_POM = Path(__file__).with_name("pom.xml")
_HASHES = _POM.with_name("jars.sha256")


class JarsError(RuntimeError):
    """The jars could not be fetched; the message says what to do."""


def server_jars() -> Path:
    """Folder with the jars of the server that `pom.xml` pins; fetches them on first use.

    The folder appears by one rename, so a half-fetched one is never used, and a lock keeps
    two processes from fetching at once. Raises `JarsError`.
    """
    asked = os.environ.get("PULSAR_LAKE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(asked or f"{base}/pulsar-lake").expanduser()
    pom = _POM.read_bytes()
    target = root / f"server-{hashlib.sha256(pom).hexdigest()[:12]}"
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():  # another process may have fetched while we waited
            _fetch(pom, root, target)
    return target


def _fetch(pom: bytes, root: Path, target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsError("Maven (`mvn`) is not on the PATH: it fetches the Pulsar server's jars")
    print(f"fetching the Pulsar server's jars (about 240 MB, once) into {target}", file=sys.stderr)
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=root))
    try:
        (work / "pom.xml").write_bytes(pom)  # Maven may write beside the pom: keep the repo clean
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [maven, "-q", "-B", "--strict-checksums", *goal, f"-DoutputDirectory={work / 'lib'}"],
            cwd=work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode != 0 or not any((work / "lib").glob("pulsar-broker-*.jar")):
            raise JarsError(f"Maven could not fetch the server's jars:\n{done.stdout[-3000:]}")
        found = {one.name: hashlib.sha256(one.read_bytes()) for one in (work / "lib").iterdir()}
        lines = {f"{digest.hexdigest()}  {name}" for name, digest in found.items()}
        if lines != set(_HASHES.read_text().splitlines()):
            raise JarsError(f"Maven gave other jars than those of {_HASHES}")
        (work / "lib").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
