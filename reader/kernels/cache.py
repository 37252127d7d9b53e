"""Where compiled kernels are kept on disk: one directory for one state of their sources.

numba checks a cached function against the function's own file only: after a change of a constant in
an imported module it would still run the old machine code. So the directory's name has a hash of
all kernel sources (``kernel_sources``) and of the versions of what compiles them; other sources
have another directory. The directory lies in ``NUMBA_CACHE_DIR``, beside the sources, or in the
user's cache directory: the first of these that can be written, by this user and root alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
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

from reader.private_directory import NotPrivateError, make_private, warn_once

__all__ = [
    "KernelCache",
    "KernelLocator",
    "cache_directory",
    "kernel_cache",
    "kernel_sources",
    "source_hash",
]

_PREFIX = "pulsar-lake-kernels-"
# Of directories, those used last and those used within so many seconds are kept. A process that
# compiles a kernel later than that makes its directory again.
_KEPT = 4
_KEPT_SECONDS = 3600.0

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.M
)


def kernel_sources(package: Traversable, name: str) -> dict[str, bytes]:
    """Source by module name: each module that defines a kernel, and all that it imports in turn.

    ``package`` holds the sources of the package ``name``. What imports numba, llvmlite or
    ``compiling`` defines kernels. Modules outside of the package count by their versions only.
    """
    sources = dict(_modules(package, name))
    compilers = {"numba", "llvmlite", f"{name}.kernels.compiling"}
    left = [
        module
        for module, text in sources.items()
        if any(one.encode() in text for one in compilers)
        and any(one in compilers or one.partition(".")[0] in compilers for one in _imports(text))
    ]
    needed: set[str] = set()
    while left:
        module = left.pop()
        if module not in needed:
            needed.add(module)
            left += _imports(sources[module]) & sources.keys()
    return {module: sources[module] for module in sorted(needed)}


def _modules(package: Traversable, name: str) -> Iterable[tuple[str, bytes]]:
    for entry in package.iterdir():
        if entry.name == "__init__.py":
            yield name, entry.read_bytes()
        elif entry.name.endswith(".py"):
            yield f"{name}.{entry.name.removesuffix('.py')}", entry.read_bytes()
        elif entry.name != "__pycache__" and entry.is_dir():
            yield from _modules(entry, f"{name}.{entry.name}")


def _imports(source: bytes) -> set[str]:
    """Names of modules, and of what is taken from them, which may be modules as well."""
    found: set[str] = set()
    for module, names, plain in _IMPORT.findall(source.decode()):
        for name in re.findall(r"[\w.]+", re.sub(r"#.*| as \w+", "", names or plain)):
            found.add(f"{module}.{name}" if module else name)
        if module:
            found.add(module)
    return found


def source_hash(sources: Mapping[str, bytes], versions: Iterable[str]) -> str:
    """16 hexadecimal digits that differ wherever sources or versions do."""
    digest = hashlib.sha256()
    for part in versions:
        digest.update(part.encode() + b"\0")
    for module, text in sorted(sources.items()):
        digest.update(f"{module}\0{len(text)}\0".encode() + text)
    return digest.hexdigest()[:16]


def cache_directory(bases: Iterable[Path], key: str, *, now: float) -> Path | None:
    """The directory for ``key`` in the first of ``bases`` that can be written; None without any.

    Marks it as used at ``now`` (s since the epoch). When it is new, directories of other keys
    beside it are removed, except those used last. One warning where kernels are compiled anew
    because others may write to the directory that had them.
    """
    refused: list[str] = []
    for base in bases:
        directory = base / f"{_PREFIX}{key}"
        try:
            is_new = not directory.is_dir()
            make_private(directory, 0o755)
            tempfile.TemporaryFile(dir=directory).close()
            os.utime(directory, (now, now))
        except NotPrivateError as error:
            refused.append(f"{directory} ({error.strerror})")
            continue
        except OSError:
            continue
        if is_new:
            _remove_unused(base, now)
            _tell(refused)
        return directory
    _tell(refused)
    return None


def _tell(refused: list[str]) -> None:
    if refused:
        warn_once(
            f"pulsar-lake: compiled kernels are not used: {', '.join(refused)}; compiling anew "
            "(remove it, or set NUMBA_CACHE_DIR to a folder that only you can write)"
        )


def _remove_unused(base: Path, now: float) -> None:
    used: list[tuple[float, Path]] = []
    for directory in base.glob(f"{_PREFIX}*"):
        try:
            used.append((directory.stat().st_mtime, directory))
        except FileNotFoundError:  # another process removed it
            continue
    for at, directory in sorted(used, reverse=True)[_KEPT:]:
        if at < now - _KEPT_SECONDS:
            shutil.rmtree(directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class KernelCache:
    """``key``: hash of the sources of ``modules``, which may be cached in ``directory``."""

    key: str
    modules: frozenset[str]
    directory: Path | None


@cache
def kernel_cache() -> KernelCache:
    """That of this package's kernels, in this process."""
    name = __name__.partition(".")[0]
    sources = kernel_sources(resources.files(name), name)
    python = f"{sys.implementation.cache_tag} {sys.version}"
    key = source_hash(sources, (python, numba.__version__, llvmlite.__version__, np.__version__))
    user = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    bases = [Path(__file__).parent / "__pycache__", user / "pulsar-lake" / "kernels"]
    config: Any = numba.config
    if config.CACHE_DIR:  # NUMBA_CACHE_DIR
        bases.insert(0, Path(config.CACHE_DIR))
    return KernelCache(key, frozenset(sources), cache_directory(bases, key, now=time.time()))


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
        known = kernel_cache()
        if known.directory is None:
            raise RuntimeError("no directory for compiled kernels can be written")
        if module not in known.modules:
            raise RuntimeError(f"the sources of {module} cannot be read")
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
