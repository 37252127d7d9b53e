"""The server's jars: fetched once by Maven, then found in a cache (offline from then on)."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class _Bundle:
    """What one pom pins. `name`: of its folder; `about`: for who waits; `one`: a jar of it."""

    pom: Path
    hashes: Path
    name: str
    about: str
    one: str


_SERVER = _Bundle(
    _HERE / "pom.xml",
    _HERE / "jars.sha256",
    "server",
    "the Pulsar server's jars (about 240 MB, once)",
    "pulsar-broker-*.jar",
)
_OFFLOADERS = _Bundle(
    _HERE / "offloaders.xml",
    _HERE / "offloaders.sha256",
    "offloaders",
    "Pulsar's offloaders (about 62 MB, once)",
    "tiered-storage-jcloud-*.jar",
)


class JarsError(RuntimeError):
    """The jars could not be fetched; the message says what to do."""


def server_jars() -> Path:
    """Folder with the jars of the server that `pom.xml` pins; fetches them on first use.

    The folder appears by one rename, so a half-fetched one is never used, and a lock keeps
    two processes from fetching at once. Raises `JarsError`.
    """
    return _folder(_SERVER)


def offloader_archives() -> list[Path]:
    """The NARs of Pulsar's tiered storage that `offloaders.xml` pins, as `server_jars`."""
    return sorted(_folder(_OFFLOADERS).glob("*.jar"))


def _folder(bundle: _Bundle) -> Path:
    asked = os.environ.get("PULSAR_LAKE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(asked or f"{base}/pulsar-lake").expanduser()
    pom = bundle.pom.read_bytes()
    target = root / f"{bundle.name}-{hashlib.sha256(pom).hexdigest()[:12]}"
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():  # another process may have fetched while we waited
            _fetch(bundle, pom, root, target)
    return target


def _fetch(bundle: _Bundle, pom: bytes, root: Path, target: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsError(f"Maven (`mvn`) is not on the PATH: it fetches {bundle.about}")
    print(f"fetching {bundle.about} into {target}", file=sys.stderr)
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
        if done.returncode != 0 or not any((work / "lib").glob(bundle.one)):
            raise JarsError(f"Maven could not fetch {bundle.about}:\n{done.stdout[-3000:]}")
        found = {one.name: hashlib.sha256(one.read_bytes()) for one in (work / "lib").iterdir()}
        lines = {f"{digest.hexdigest()}  {name}" for name, digest in found.items()}
        if lines != set(bundle.hashes.read_text().splitlines()):
            raise JarsError(f"Maven gave other jars than those of {bundle.hashes}")
        (work / "lib").rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
