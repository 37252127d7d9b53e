"""Where compiled kernels lie: one directory for each state of a module's sources."""

import ast
import importlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path
from types import FunctionType

import numba
import pytest
from numba.core.dispatcher import Dispatcher

import reader
from reader.kernels.begun import folder_id
from reader.kernels.cache import (
    KernelLocator,
    cache_directory,
    have_changed,
    kernel_cache,
    kernel_sources,
    module_sources,
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
    found = kernel_sources(module_sources(package, "p"), "p")
    assert {module: set(needed) for module, needed in found.items()} == {
        "p.kernels.compiling": {"p.kernels.compiling"},
        "p.loop": {"p.loop", "p.kernels.compiling", "p.tables", "p.sizes"},
        "p.vector": {"p.vector", "p.lane.width", "p.lane.names"},
    }


def _modules() -> dict[str, Path]:
    found = {}
    for path in _PACKAGE.rglob("*.py"):
        parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def _imports(path: Path, modules: Collection[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: relative imports are not read"
            wholes = (f"{node.module}.{one.name}" for one in node.names)
            found |= {one if one in modules else node.module for one in wholes}
    return found


@cache
def _expected() -> dict[str, set[str]]:
    """Return what each module that defines kernels imports in turn, by Python's parser."""
    modules = _modules()
    imports = {name: _imports(path, modules) for name, path in modules.items()}
    expected: dict[str, set[str]] = {}
    for name, found in imports.items():
        if "reader.kernels.compiling" in found or any(
            other.partition(".")[0] in ("numba", "llvmlite") for other in found
        ):
            expected[name] = set()
            pending = [name]
            while pending:
                other = pending.pop()
                if other not in expected[name]:
                    expected[name].add(other)
                    pending += imports[other] & modules.keys()
    return expected


def test_sources_of_this_project_are_those_that_python_sees() -> None:
    modules, expected = _modules(), _expected()
    found = kernel_sources(module_sources(_PACKAGE, "reader"), "reader")
    assert {module: set(sources) for module, sources in found.items()} == expected
    assert "reader.decode.tables" in expected["reader.decode.passes.entry_headers"]
    for sources in found.values():
        assert all(text == modules[name].read_bytes() for name, text in sources.items())


def test_a_change_compiles_the_kernels_that_use_it_and_no_others() -> None:
    expected = _expected()
    sources = module_sources(_PACKAGE, "reader")

    def keys() -> dict[str, str]:
        found = kernel_sources(sources, "reader")
        return {module: source_hash(needed, ()) for module, needed in found.items()}

    before = keys()
    for changed in sorted(set().union(*expected.values())):
        unchanged = sources[changed]
        sources[changed] += b"\n# changed\n"
        after = keys()
        sources[changed] = unchanged
        assert {module for module in before if before[module] != after[module]} == {
            module for module, needed in expected.items() if changed in needed
        }, changed


def test_most_changes_of_this_project_compile_little() -> None:
    """A module that most kernels depend on has few reasons to change."""
    expected = _expected()
    users = Counter(module for needed in expected.values() for module in needed)
    assert {module for module, number in users.items() if number > len(expected) / 2} == {
        "reader.kernels.begun",
        "reader.kernels.cache",
        "reader.kernels.compiling",
        "reader.kernels.unaligned",
        "reader.private_directory",
    }


def _kernels() -> dict[str, Dispatcher]:
    return {
        f"{module}.{attribute}": value
        for module in _expected()
        for attribute, value in vars(importlib.import_module(module)).items()
        if isinstance(value, Dispatcher) and value.py_func.__module__ == module
    }


def test_a_kernel_depends_on_the_modules_of_all_that_it_calls() -> None:
    expected = _expected()
    calls = 0
    for name, kernel in _kernels().items():
        function = kernel.py_func
        for used in function.__code__.co_names:
            other = function.__globals__.get(used)
            defined = getattr(getattr(other, "py_func", other), "__module__", None)
            if isinstance(defined, str) and defined.partition(".")[0] == "reader":
                calls += 1
                assert defined in expected[function.__module__], f"{name} calls {used}"
    assert calls > 200


def test_every_kernel_is_cached_in_the_directory_of_its_sources() -> None:
    kernels = _kernels()
    assert len(kernels) > 50
    for name, kernel in kernels.items():
        module = kernel.py_func.__module__
        known = kernel_cache(module)
        assert known is not None and known.directory is not None, name
        assert known.directory.name.endswith(f"{module}-{known.key}")
        assert kernel.stats.cache_path == str(known.directory), name


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


def test_a_source_that_was_put_there_since_is_seen(tmp_path: Path) -> None:
    package = _write(tmp_path / "p", {"__init__.py": "", "a/__init__.py": "", "a/b.py": "A = 1\n"})
    modules = ("p", "p.a", "p.a.b")
    changes = [path.stat().st_ctime_ns for path in package.rglob("*.py")]
    assert not have_changed(package, modules, max(changes))
    assert have_changed(package, modules, min(changes) - 1)
    other = tmp_path / "new.py"
    other.write_text("A = 2\n")
    os.utime(other, (0, 0))  # as installers set it
    since = other.stat().st_ctime_ns
    installed = package / "a" / "b.py"
    while installed.stat().st_ctime_ns <= since:
        other.replace(installed)
        other.write_text("A = 2\n")
    assert have_changed(package, modules, since)
    assert not have_changed(package, modules[:2], since)
    assert have_changed(package, ["p.gone"], since)
    assert not have_changed(tmp_path / "p.zip" / "p", modules, 0)


def test_the_process_begins_before_any_module_is_imported() -> None:
    """What is imported before the time is noted may be replaced without being noticed."""
    code = "import sys, reader; print(sorted(one for one in sys.modules if one[:6] == 'reader'))"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout == "['reader', 'reader.kernels', 'reader.kernels.begun']\n"


def test_another_folder_at_the_same_place(tmp_path: Path) -> None:
    """As a link to the installed release is switched to the next one, which is older."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to("one")
    known = folder_id(link)
    assert folder_id(link) == known == folder_id(tmp_path / "one")
    link.unlink()
    link.symlink_to("two")
    assert folder_id(link) != known
    link.unlink()
    assert folder_id(link) is None


def test_the_kernels_of_another_folder_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("reader.kernels.cache.FOLDER_ID", (0, 0))
    place = kernel_cache.__wrapped__("reader.kernels.utf8")
    assert place is not None
    assert place.directory is None
    assert "installed anew while this process ran" in caplog.text


def test_directory_is_the_first_that_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    user, other = tmp_path / "user", tmp_path / "other"

    def directory(*bases: Path) -> Path | None:
        return cache_directory(bases, "p.m", "k", now=1_000.0)

    found = directory(blocked, user, other)
    assert found == user / "pulsar-lake-kernels-p.m-k"
    assert found.is_dir() and not other.exists()
    assert directory(blocked) is None
    assert directory(other, user) == found, "the kernels are there already"
    found.chmod(0o777)  # then what is run there would be anybody's
    assert not caplog.messages
    for _ in range(2):
        second = directory(user, other)
        assert second is not None and second.parent == other
    cache_directory([user], "p.n", "k", now=1_000.0)
    [said] = caplog.messages
    assert str(user) in said, "they are compiled anew, once"
    caplog.clear()
    (tmp_path / "again").mkdir()
    found.rename(tmp_path / "again" / found.name)
    assert directory(tmp_path / "again") is None
    assert len(caplog.messages) == 1


def test_a_base_that_cannot_be_looked_at_is_passed_over(tmp_path: Path) -> None:
    """As below a home directory that is closed to this user: `Path.is_dir` raises there."""
    closed, other = tmp_path / ("x" * 300), tmp_path / "other"
    with pytest.raises(OSError):
        closed.is_dir()
    found = cache_directory([closed, other], "p.m", "k", now=1_000.0)
    assert found is not None and found.parent == other
    assert cache_directory([closed, other], "p.m", "k", now=1_000.0) == found


def test_a_user_without_a_home_directory_has_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    known = kernel_cache.__wrapped__("reader.kernels.utf8")
    assert known is not None and known.directory is not None
    assert known.directory.parent == tmp_path


def test_unused_directories_of_other_sources_are_removed(tmp_path: Path) -> None:
    (tmp_path / "of-another-program").mkdir()
    cache_directory([tmp_path], "p.n", "0", now=0.0)

    def use(number: int, now: float) -> None:
        assert cache_directory([tmp_path], "p.m", f"{number}", now=now) is not None

    def keys() -> set[str]:
        return {path.name.rpartition("-")[2] for path in tmp_path.glob("*-p.m-*")}

    for number in range(8):
        use(number, 1_000.0 * number)
        next(tmp_path.glob(f"*-p.m-{number}")).joinpath("kernel.nbc").write_text("")
        use(number, 1_000.0 * number)
    # Within an hour of 7,000 s: 4 to 7, which are the last four as well.
    assert keys() == {"4", "5", "6", "7"}

    for number in range(8, 14):
        use(number, 7_000.0 + number)
    assert len(keys()) == 10, "directories that were used within an hour are kept"

    use(13, 100_000.0)
    assert len(keys()) == 10, "nothing is removed where nothing is added"
    use(14, 100_001.0)
    assert keys() == {"11", "12", "13", "14"}
    assert (tmp_path / "of-another-program").is_dir()
    assert (tmp_path / "pulsar-lake-kernels-p.n-0").is_dir(), "of another module"


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
    place = kernel_cache("reader.decode.passes.entry_headers")
    assert place is not None
    assert known.get_cache_path() == str(place.directory)
    assert known.get_source_stamp() == place.key
    assert known.get_disambiguator().startswith("reader.decode.passes.entry_headers-")
