"""Where compiled kernels lie: one directory for each state of their sources."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import FunctionType

import pytest
from numba.core.dispatcher import Dispatcher

import reader
from reader.kernels.cache import (
    KernelLocator,
    cache_directory,
    kernel_cache,
    kernel_sources,
    source_hash,
)

_PACKAGE = Path(reader.__file__).parent


def _write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_sources_are_the_kernels_and_what_they_import(tmp_path: Path) -> None:
    package = _write(
        tmp_path,
        {
            "__init__.py": '"""numba is not imported here."""\n',
            "kernels/compiling.py": "from numba import njit\n",
            "loop.py": "from p.kernels.compiling import kernel\nfrom p.tables import (\n  A,\n)\n",
            "tables.py": "from p import sizes  # of a table\nA = sizes.A\n",
            "sizes.py": "A = 1\n",
            "vector.py": "import os, llvmlite as vectors\nimport p.lane.width as width\n",
            "lane/__init__.py": "",
            "lane/width.py": "def late() -> int:\n    from p.lane import names\n    return 1\n",
            "lane/names.py": "",
            "other.py": "from p.loop import run\nfrom p.free import B\n",
            "free.py": "B = 1\n",
        },
    )
    assert set(kernel_sources(package, "p")) == {
        "p.kernels.compiling",
        "p.loop",
        "p.tables",
        "p.sizes",
        "p.vector",
        "p.lane",
        "p.lane.width",
        "p.lane.names",
        "p",
    }


def _modules() -> dict[str, Path]:
    found = {}
    for path in _PACKAGE.rglob("*.py"):
        parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def _imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return found


def test_sources_of_this_project_are_those_that_python_sees() -> None:
    modules = _modules()
    imports = {name: _imports(path) for name, path in modules.items()}
    left = [
        name
        for name, found in imports.items()
        if found & {"numba", "llvmlite", "reader.kernels.compiling"}
        or any(one.startswith(("numba.", "llvmlite.")) for one in found)
    ]
    expected: set[str] = set()
    while left:
        name = left.pop()
        if name not in expected:
            expected.add(name)
            left += imports[name] & modules.keys()
    sources = kernel_sources(_PACKAGE, "reader")
    assert set(sources) == expected
    assert {"reader.decode.tables", "reader.decode.passes.entry_headers"} <= expected
    assert all(text == modules[name].read_bytes() for name, text in sources.items())


def test_every_kernel_is_cached_in_the_directory_of_its_sources() -> None:
    known = kernel_cache()
    assert known.directory is not None and known.directory.name.endswith(known.key)
    paths = {
        f"{name}.{attribute}": value.stats.cache_path
        for name in known.modules
        for attribute, value in vars(importlib.import_module(name)).items()
        if isinstance(value, Dispatcher)
    }
    assert len(paths) > 50
    assert set(paths.values()) == {str(known.directory)}


def test_hash_changes_with_each_source_and_version() -> None:
    sources = {"p.a": b"1", "p.b": b"2"}
    known = source_hash(sources, ["3.11", "0.68"])
    assert known == source_hash(dict(reversed(sources.items())), ["3.11", "0.68"])
    others = [
        source_hash(sources | {"p.b": b"3"}, ["3.11", "0.68"]),
        source_hash(sources | {"p.c": b""}, ["3.11", "0.68"]),
        source_hash({"p.a": b"1", "p.c": b"2"}, ["3.11", "0.68"]),
        source_hash({"p.a": b"12", "p.b": b""}, ["3.11", "0.68"]),
        source_hash(sources, ["3.11", "0.69"]),
        source_hash(sources, ["3.110", ".68"]),
    ]
    assert len({known, *others}) == 1 + len(others)


def test_directory_is_the_first_that_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    found = cache_directory([blocked, tmp_path / "user", tmp_path / "other"], "k", now=1_000.0)
    assert found == tmp_path / "user" / "pulsar-lake-kernels-k"
    assert found.is_dir() and not (tmp_path / "other").exists()
    assert cache_directory([blocked], "k", now=1_000.0) is None
    found.chmod(0o777)  # then what is run there would be anybody's
    assert not caplog.messages
    for _ in range(2):
        other = cache_directory([tmp_path / "user", tmp_path / "other"], "k", now=1_000.0)
        assert other is not None and other.parent == tmp_path / "other"
    [said] = caplog.messages
    assert str(found) in said, "they are compiled anew, once"
    caplog.clear()
    (tmp_path / "again").mkdir()
    found.rename(tmp_path / "again" / found.name)
    assert cache_directory([tmp_path / "again"], "k", now=1_000.0) is None
    assert len(caplog.messages) == 1


def test_unused_directories_of_other_sources_are_removed(tmp_path: Path) -> None:
    (tmp_path / "of-another-program").mkdir()
    for number in range(8):
        directory = cache_directory([tmp_path], f"{number}", now=1_000.0 * number)
        assert directory is not None
        (directory / "kernel.nbc").write_text("")
        cache_directory([tmp_path], f"{number}", now=1_000.0 * number)
    # Within an hour of 7,000 s: 4 to 7, which are the last four as well.
    left = {path.name.removeprefix("pulsar-lake-kernels-") for path in tmp_path.iterdir()}
    assert left == {"of-another-program", "4", "5", "6", "7"}

    for number in range(8, 14):
        cache_directory([tmp_path], f"{number}", now=7_000.0 + number)
    left = {path.name.removeprefix("pulsar-lake-kernels-") for path in tmp_path.iterdir()}
    assert len(left) == 11, "directories that were used within an hour are kept"

    cache_directory([tmp_path], "13", now=100_000.0)
    assert len(list(tmp_path.iterdir())) == 11, "nothing is removed where nothing is added"
    cache_directory([tmp_path], "14", now=100_001.0)
    left = {path.name.removeprefix("pulsar-lake-kernels-") for path in tmp_path.iterdir()}
    assert left == {"of-another-program", "11", "12", "13", "14"}


def _function(module: str) -> FunctionType:
    def run() -> None: ...

    run.__module__ = module
    assert isinstance(run, FunctionType)
    return run


def test_locator_refuses_what_it_cannot_key_and_leaves_other_packages_alone() -> None:
    assert KernelLocator.from_function(_function("someone.else"), "x.py") is None
    with pytest.raises(RuntimeError, match="sources"):
        KernelLocator.from_function(_function("reader.made_at_run_time"), "x.py")
    known = KernelLocator.from_function(_function("reader.decode.passes.entry_headers"), "x.py")
    assert known is not None
    assert known.get_cache_path() == str(kernel_cache().directory)
    assert known.get_source_stamp() == kernel_cache().key
    assert known.get_disambiguator().startswith("reader.decode.passes.entry_headers-")
