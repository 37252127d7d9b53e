"""Where compiled kernels are kept on disk: a directory for each module and state of its sources.

numba checks a cached function against the function's own file only: after a change of a constant in
an imported module it would still run the old machine code. So each module that defines kernels has
a key: a hash of its source, of the sources of all modules that it imports in turn, and of the
versions of what compiles them. Its kernels lie in a directory with that key in its name, so that a
change compiles only the kernels that depend on it. numba itself adds the kind of CPU to the key.
A process whose sources change under it, by an upgrade, keeps no kernels from then on: the hash
would be that of other sources than it has imported.

The directories lie in ``NUMBA_CACHE_DIR``, in the user's cache directory, which all clones share,
or beside the sources: the first of these that has the directory already, or else can be written, by
this user and root alone.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import FunctionType
from typing import Any, Self

import llvmlite
import numba
import numpy as np

from reader.kernels.begun import BEGUN_NS, FOLDER, FOLDER_ID, folder_id
from reader.private_directory import NotPrivateError, make_private, warn_once

_PREFIX = "pulsar-lake-kernels-"
# Of a module's directories, those used last and those used within so many seconds are kept. A
# process that compiles a kernel later than that makes its directory again.
_KEPT = 4
_KEPT_SECONDS = 3600.0

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.M
)


def module_sources(package: Traversable, name: str) -> dict[str, bytes]:
    """Return the source of each module of the package ``name``, which lies in ``package``."""
    sources: dict[str, bytes] = {}
    for entry in package.iterdir():
        if entry.name == "__init__.py":
            sources[name] = entry.read_bytes()
        elif entry.name.endswith(".py"):
            sources[f"{name}.{entry.name.removesuffix('.py')}"] = entry.read_bytes()
        elif entry.name != "__pycache__" and entry.is_dir():
            sources |= module_sources(entry, f"{name}.{entry.name}")
    return sources


def kernel_sources(sources: Mapping[str, bytes], name: str) -> dict[str, dict[str, bytes]]:
    """Return, for each module that defines kernels, the sources that its kernels depend on.

    These are the module's own, and those of all modules of the package ``name`` that it imports in
    turn. What imports numba, llvmlite or ``compiling`` defines kernels. Modules outside of the
    package count by their versions only.
    """
    compilers = {"numba", "llvmlite", f"{name}.kernels.compiling"}
    imports: dict[str, set[str]] = {}

    def imported(module: str) -> set[str]:
        if module not in imports:
            imports[module] = _imports(sources[module], sources.keys())
        return imports[module]

    found: dict[str, dict[str, bytes]] = {}
    for module, text in sources.items():
        if any(compiler.encode() in text for compiler in compilers) and any(
            other in compilers or other.partition(".")[0] in compilers for other in imported(module)
        ):
            needed: set[str] = set()
            pending = [module]
            while pending:
                other = pending.pop()
                if other not in needed:
                    needed.add(other)
                    pending += imported(other) & sources.keys()
            found[module] = {other: sources[other] for other in sorted(needed)}
    return found


def _imports(source: bytes, modules: Collection[str]) -> set[str]:
    """Names of imported modules; of a package only where something else than modules is taken."""
    found: set[str] = set()
    for module, names, plain in _IMPORT.findall(source.decode()):
        for name in re.findall(r"[\w.]+", re.sub(r"#.*| as \w+", "", names or plain)):
            whole = f"{module}.{name}" if module else name
            found.add(whole if whole in modules or not module else module)
    return found


def have_changed(package: Path, modules: Iterable[str], since_ns: int) -> bool:
    """Return whether the source of any of these modules, below ``package``, was put there later.

    since_ns: ns since the epoch.
    """

    def changed_ns(module: str) -> int:
        place = package.joinpath(*module.split(".")[1:])
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        return source.stat().st_ctime_ns  # installers may set the other times

    if not package.is_dir():  # an archive, which is not changed but replaced
        return False
    try:
        return any(changed_ns(module) > since_ns for module in modules)
    except FileNotFoundError:  # of another version
        return True


def source_hash(sources: Mapping[str, bytes], versions: Iterable[str]) -> str:
    """16 hexadecimal digits that differ wherever sources or versions do."""
    digest = hashlib.sha256()
    for part in versions:
        digest.update(part.encode() + b"\0")
    for module, text in sorted(sources.items()):
        digest.update(f"{module}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()[:16]


def cache_directory(bases: Sequence[Path], module: str, key: str, *, now: float) -> Path | None:
    """Return the directory for a module's kernels, or None if no base can be written.

    It is in the first of ``bases`` that has it already, or else in the first that can be written.
    Marks it as used at ``now`` (s since the epoch). When it is new, the module's directories of
    other keys beside it are removed, except those used last. Logs one warning if kernels are
    compiled anew because others may write to the directory that had them.
    """
    name = f"{_PREFIX}{module}-{key}"
    refused: list[str] = []
    for base in sorted(bases, key=lambda base: not _has(base, name)):
        directory = base / name
        try:
            is_new = not directory.is_dir()
            make_private(directory, 0o755)
            tempfile.TemporaryFile(dir=directory).close()
            os.utime(directory, (now, now))
        except NotPrivateError as error:
            refused.append(f"{base} ({error.strerror})")
            continue
        except OSError:
            continue
        if is_new:
            _remove_unused(base, module, now)
            _tell(refused)
        return directory
    _tell(refused)
    return None


def _has(base: Path, name: str) -> bool:
    """Return whether a base has a directory of this name that this user can reach."""
    try:
        return (base / name).is_dir()
    except OSError:  # e.g. below the home directory of another user
        return False


def _tell(refused: list[str]) -> None:
    if refused:
        warn_once(
            f"pulsar-lake: compiled kernels in {', '.join(refused)} are not used; compiling anew "
            "(empty that folder, or set NUMBA_CACHE_DIR to a folder that only you can write)"
        )


def _remove_unused(base: Path, module: str, now: float) -> None:
    used: list[tuple[float, Path]] = []
    for directory in base.glob(f"{_PREFIX}{module}-*"):
        try:
            used.append((directory.stat().st_mtime, directory))
        except FileNotFoundError:  # another process removed it
            continue
    for at, directory in sorted(used, reverse=True)[_KEPT:]:
        if at < now - _KEPT_SECONDS:
            shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class KernelCache:
    """The place of a module's kernels: the ``directory`` for sources with the hash ``key``."""

    key: str
    directory: Path | None


@cache
def kernel_cache(module: str) -> KernelCache | None:
    """Return the place of a module's kernels, in this process; None if its source is not known."""
    sources = _sources().get(module)
    if sources is None:
        return None
    python = f"{sys.implementation.cache_tag} {sys.version}"
    key = source_hash(sources, (python, numba.__version__, llvmlite.__version__, np.__version__))
    if folder_id() != FOLDER_ID or have_changed(FOLDER, sources, BEGUN_NS):
        warn_once(
            "pulsar-lake was installed anew while this process ran, which compiles kernels for "
            "itself alone (start it again)"
        )
        return KernelCache(key, None)
    bases = [Path(__file__).parent / "__pycache__"]
    with suppress(RuntimeError):  # a user without a home directory
        user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        bases.insert(0, user / "pulsar-lake" / "kernels")
    config: Any = numba.config
    if config.CACHE_DIR:  # NUMBA_CACHE_DIR
        bases.insert(0, Path(config.CACHE_DIR))
    return KernelCache(key, cache_directory(bases, module, key, now=time.time()))


@cache
def _sources() -> dict[str, dict[str, bytes]]:
    name = __name__.partition(".")[0]
    return kernel_sources(module_sources(resources.files(name), name), name)


class KernelLocator:
    """Tells numba where it keeps a kernel: a cache locator, see numba's "Notes on Caching".

    Functions of other packages are left to numba's own locators.
    """

    def __init__(self, module: str, line: int, key: str, directory: Path) -> None:
        self._disambiguator = f"{module}-{line}"
        self._key = key
        self._directory = directory

    @classmethod
    def from_function(cls, function: FunctionType, _file: str) -> Self | None:
        """Raises RuntimeError for a function of this package that cannot be cached."""
        module = function.__module__
        if module.partition(".")[0] != __name__.partition(".")[0]:
            return None
        known = kernel_cache(module)
        if known is None:
            raise RuntimeError(f"the sources of {module} cannot be read")
        if known.directory is None:
            raise RuntimeError("no directory for compiled kernels can be written")
        return cls(module, function.__code__.co_firstlineno, known.key, known.directory)

    def ensure_cache_path(self) -> None:
        """Make the directory, which another process may have removed since."""
        make_private(self._directory, 0o755)

    def get_cache_path(self) -> str:
        return str(self._directory)

    def get_source_stamp(self) -> str:
        return self._key

    def get_disambiguator(self) -> str:
        """What differs between kernels of one file name and one function name."""
        return self._disambiguator
