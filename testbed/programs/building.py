"""Fetch and build programs once, by version or sources; then nothing needs the network."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class ProgramError(RuntimeError):
    """A program could not be fetched or built; the message has the tool's output."""


class ToolMissingError(ProgramError):
    """The tool that builds the program is not installed on this machine."""


def go_program(module: str, version: str, package: str = "") -> Path:
    """Return a Go program: `module` at `version`, its `package` (default: the module's own)."""
    source = f"{module}/{package}" if package else module

    def build(folder: Path) -> None:
        command = [_tool("go", "Go"), "install", f"{source}@{version}"]
        _run(command, folder, {"GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"})

    name = source.rpartition("/")[2]
    return made_once(f"{name}-{version}", build) / name


def go_build(sources: Path) -> Path:
    """Return the Go program of a folder that has its own `go.mod` and `go.sum`."""
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in sorted(sources.iterdir())))

    def build(folder: Path) -> None:
        copied = shutil.copytree(sources, folder / "sources")
        command = [_tool("go", "Go"), "build", "-mod=readonly", "-o", str(folder / sources.name)]
        _run([*command, "."], copied, {"GOFLAGS": "-buildvcs=false"})

    return made_once(f"{sources.name}-{digest.hexdigest()[:12]}", build) / sources.name


def cpp_build(sources: Path, library: Path) -> Path:
    """Return the C++ program of a folder's `*.cc` files, linked with a shared library."""
    files = sorted(sources.iterdir())
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files) + bytes(library))

    def build(folder: Path) -> None:
        command = [_tool("g++", "A C++ compiler"), "-std=c++17", "-O1"]
        command += [str(file) for file in files if file.suffix == ".cc"]
        command += [str(library), f"-Wl,-rpath,{library.parent}"]
        _run([*command, "-o", str(folder / sources.name)], folder)

    return made_once(f"{sources.name}-{digest.hexdigest()[:12]}", build) / sources.name


def npm_program(package: str, version: str, program: str) -> Path:
    """Return a Node program of an npm package."""

    def build(folder: Path) -> None:
        command = [_tool("npm", "Node.js"), "install", "--no-audit", "--no-fund", "--prefix", "."]
        _run([*command, f"{package}@{version}"], folder)

    return made_once(f"{package}-{version}", build) / "node_modules" / ".bin" / program


def maven_jars(coordinates: str) -> list[Path]:
    """Return one jar, `group:artifact:version`, without its dependencies."""
    _, artifact, version = coordinates.split(":")

    def build(folder: Path) -> None:
        goal = ["org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"]
        goal += [f"-Dartifact={coordinates}", "-DoutputDirectory=."]
        _run([_tool("mvn", "Maven"), "-q", "-B", "--strict-checksums", *goal], folder)

    return sorted(made_once(f"{artifact}-{version}", build).glob("*.jar"))


def made_once(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder `name` of the cache, filled by `build` the first time.

    The folder appears by one rename, so a half-made folder is never used. A lock keeps two
    processes from building at once. Raises ProgramError if a tool fails.
    """
    asked = os.environ.get("PULSAR_LAKE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    root = Path(asked or f"{base}/pulsar-lake").expanduser() / "test-programs"
    target = root / name
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():  # another process may have made it while we waited
            print(f"making the test program {name} (once) in {root}", file=sys.stderr)
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
        raise ToolMissingError(f"{what} (`{name}`) is not on the PATH: it builds a test program")
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
