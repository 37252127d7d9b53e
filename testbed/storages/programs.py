"""Programs of the test servers, fetched and built once into the cache, by version; then offline."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = [
    "ProgramError",
    "ToolMissingError",
    "go_program",
    "made_once",
    "maven_jars",
    "npm_program",
]


class ProgramError(RuntimeError):
    """It could not be fetched or built; the message says what to do."""


class ToolMissingError(ProgramError):
    """This machine has not what builds it."""


def go_program(module: str, version: str, package: str = "") -> Path:
    """A Go program: `module` at `version`, its `package` (default: the module's own)."""
    source = f"{module}/{package}" if package else module

    def build(folder: Path) -> None:
        command = [_tool("go", "Go"), "install", f"{source}@{version}"]
        _run(command, folder, {"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"})

    name = source.rpartition("/")[2]
    return made_once(f"{name}-{version}", build) / name


def npm_program(package: str, version: str, program: str) -> Path:
    """A Node program of an npm package."""

    def build(folder: Path) -> None:
        command = [_tool("npm", "Node.js"), "install", "--no-audit", "--no-fund", "--prefix", "."]
        _run([*command, f"{package}@{version}"], folder)

    return made_once(f"{package}-{version}", build) / "node_modules" / ".bin" / program


def maven_jars(coordinates: str) -> list[Path]:
    """One jar, `group:artifact:version`, without what it depends on."""
    _, artifact, version = coordinates.split(":")

    def build(folder: Path) -> None:
        goal = ["org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"]
        goal += [f"-Dartifact={coordinates}", "-DoutputDirectory=."]
        _run([_tool("mvn", "Maven"), "-q", "-B", "--strict-checksums", *goal], folder)

    return sorted(made_once(f"{artifact}-{version}", build).glob("*.jar"))


def made_once(name: str, build: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache, filled by `build` the first time.

    It appears by one rename, so a half-made one is never used, and a lock keeps two processes from
    making it at once. Raises `ProgramError`.
    """
    asked = os.environ.get("PULSAR_LAKE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(asked or f"{base}/pulsar-lake").expanduser() / "storage-servers"
    target = root / name
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():  # another process may have made it while we waited
            print(f"making the test server {name} (once) in {root}", file=sys.stderr)
            work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=root))
            try:
                build(work)
                work.rename(target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return target


def _tool(name: str, what: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise ToolMissingError(f"{what} (`{name}`) is not on the PATH: it makes a test server")
    return found


def _run(command: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(more or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise ProgramError(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")
