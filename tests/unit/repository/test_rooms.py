"""The house keeps its rooms: contents pages, sizes, what imports say, no way into private names."""

from __future__ import annotations

import configparser
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.repository.tree import (
    PRODUCT,
    ROOT,
    ROOTS,
    contents_of,
    docstring,
    imports_of,
    listed_in,
    modules_of,
    named_imports,
    package_name,
    packages,
    python_files,
    sources,
)

LONGEST = 500
"""Lines of a file."""
MOST = 16
"""Python files of a folder, its ``__init__`` included."""

_ROOMS_OF = (*PRODUCT, "testbed")

_CONTENTS = [one for one in packages() if package_name(one).split(".")[0] != "tests"]
_TESTS = [one for one in packages() if package_name(one).split(".")[0] == "tests"]


@pytest.mark.parametrize("folder", _CONTENTS, ids=package_name)
def test_a_docstring_lists_each_module_of_its_package(folder: Path) -> None:
    assert sorted(listed_in(docstring(folder))) == sorted(modules_of(folder))


@pytest.mark.parametrize("folder", _TESTS, ids=package_name)
def test_a_docstring_of_tests_lists_what_is_no_test(folder: Path) -> None:
    def is_test(name: str) -> bool:
        return name.startswith("test_") or name in ("conftest", "__main__")

    helpers = {
        name
        for name in modules_of(folder)
        if not is_test(name) and not (folder / name / "__init__.py").exists()
    }
    assert set(listed_in(docstring(folder))) - modules_of(folder) == set()
    assert helpers - set(listed_in(docstring(folder))) == set()
    assert docstring(folder)


@pytest.mark.parametrize("folder", _CONTENTS, ids=package_name)
def test_imports_that_a_docstring_names_are_the_real_ones(folder: Path) -> None:
    name = package_name(folder)
    named = named_imports(docstring(folder), name)
    if named is None:
        return

    def below(module: str, package: str) -> bool:
        return module == package or module.startswith(f"{package}.")

    files = [one for one in python_files() if str(one).startswith(f"{folder}/")]
    real = {module for file in files for module in imports_of(file) if not below(module, name)}
    assert {one for one in real if not any(below(one, other) for other in named)} == set()
    assert {one for one in named if not any(below(other, one) for other in real)} == set()


def _contracts() -> dict[str, configparser.SectionProxy]:
    """Of ``.importlinter``: who may import a room's modules, by the room's name."""
    read = configparser.ConfigParser()
    read.read(ROOT / ".importlinter")
    return {
        read[name]["protected_modules"].removesuffix(".*"): read[name]
        for name in read.sections()
        if read[name].get("type") == "protected"
    }


def test_each_room_has_a_contract_of_who_may_import_its_modules() -> None:
    names = map(package_name, packages())
    rooms = {name for name in names if name.count(".") == 1 and name.split(".")[0] in _ROOMS_OF}
    assert len(rooms) > 20
    assert _contracts().keys() == rooms


def test_a_contract_names_its_doors() -> None:
    for room, contract in _contracts().items():
        doors = re.findall(r"-> (\S+)", contract.get("ignore_imports", ""))
        modules = {f"{room}.{name}" for name in modules_of(ROOT.joinpath(*room.split(".")))}
        assert set(doors) <= modules, contract["name"]
        if doors:
            named = contract["name"].partition(" the package or ")[2].split(", ")
            assert [f"{room}.{name}" for name in named] == sorted(doors)


def test_no_file_is_too_long() -> None:
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in sources()}
    assert len(lines) > 300
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_no_folder_is_too_full() -> None:
    count = Counter(str(file.parent.relative_to(ROOT)) for file in python_files())
    assert {name: number for name, number in count.items() if number > MOST} == {}


def test_a_basename_means_one_thing_in_a_package_chain() -> None:
    """Of a module and the packages above it: ``oracle/oracle.py`` would say nothing."""
    # A plan is what `reader.plan` is about, and its class lives in `plan`.
    chains = (file.relative_to(ROOT).with_suffix("").parts for file in python_files(*PRODUCT))
    twice = {chain for chain in chains if len(set(chain)) < len(chain)}
    assert twice <= {("reader", "plan", "plan")}


_SAME_MEANING = {
    "app": "what a command line, and what an HTTP server, is put together in",
    "base": "the interfaces of a room of many kinds",
    "check": "whether all that is needed is as it has to be; the subcommand that prints it",
    "config": "settings",
    "decoder": "bytes to columns: of entries, of payloads, of each payload format",
    "encryption": "its settings; what decrypts",
    "errors": "the tree of errors; how they cross Spark",
    "kernel": "the compiled loop of a payload format",
    "ledgers": "the values; what asks Pulsar for them",
    "model": "the values of a package",
    "payload": "what a message holds: to columns, and from columns",
    "plan": "the room and its value",
    "prewarm": "compiles the kernels of a room",
    "program": "a schema, compiled for the kernel of its format",
    "pulsar": "its settings; its admin REST",
    "server": "answers requests: the shim's, a browser's",
    "status": "the value; the subcommand that prints it",
    "storage": "its settings; the kinds of it",
    "tiered": "its settings; what reads ledgers there",
    "topics": "the values; what asks Pulsar for them",
    "turn": "its value; the room that runs it",
    "values": "single values of a payload format",
}
"""Basenames that occur more than once in the product, each with its one meaning."""


def test_a_basename_means_one_thing_in_the_product() -> None:
    modules = (file.relative_to(ROOT).with_suffix("").parts for file in python_files(*PRODUCT))
    names = (parts[-2] if parts[-1] == "__init__" else parts[-1] for parts in modules)
    count = Counter(name for name in names if name != "__main__")
    assert {name for name, number in count.items() if number > 1} == _SAME_MEANING.keys()


_PATCHED = re.compile(r"^(?:reader|spark_ext|offloader)(?:\.\w+)*\._\w+")


def _private_names(file: Path) -> Iterator[str]:
    """Private names of other modules that a file imports, or patches by a string."""
    contents = contents_of(file)
    for module, name in contents.imports_from:
        if module.split(".")[0] in ROOTS and _is_private(name):
            yield name
    yield from filter(_is_private, contents.patched)
    for text in contents.strings:
        yield from _PATCHED.findall(text)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_nothing_imports_or_patches_private_names() -> None:
    """Attributes are ruff's (SLF001)."""
    found = {str(file.relative_to(ROOT)): sorted(_private_names(file)) for file in python_files()}
    assert {name: names for name, names in found.items() if names} == {}


def test_no_unit_test_sleeps() -> None:
    """What waits takes a clock or an event; time.sleep hides what it waits for."""
    sleepers = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in python_files("tests")
        if file.is_relative_to(ROOT / "tests" / "unit")
        for line in contents_of(file).sleeps
    ]
    assert sleepers == []


_PATH = re.compile(
    r"`((?:reader|spark_ext|offloader|testbed|tests|demo|benchmarks|docs|deploy)/[\w./-]+)`"
)
_DOTTED = re.compile(r"`((?:reader|spark_ext|offloader|testbed|tests|demo|benchmarks)(?:\.\w+)+)`")
_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documents_name_files_and_modules_that_exist(page: Path) -> None:
    text = page.read_text()
    gone = [name for name in _PATH.findall(text) if not (ROOT / name).exists() and not _made(name)]
    gone += [name for name in _DOTTED.findall(text) if not _is_there(name)]
    assert gone == []


def _made(name: str) -> bool:
    """What a run leaves behind."""
    return name.startswith("benchmarks/results")


def _is_there(dotted: str) -> bool:
    """Whether a module of that name is there, perhaps with a name in it."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file.exists():
            names = parts[count:]
            return not names or re.search(rf"\b{names[0]}\b", file.read_text()) is not None
    return False


_CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_COVERED = re.compile(r"\b(test_\w+)\b")


def test_documents_name_tests_that_exist() -> None:
    tests = "\n".join(file.read_text() for file in python_files("tests"))
    there = set(re.findall(r"\bdef (test_\w+)", tests)) | {
        file.stem for file in python_files("tests")
    }
    gone = {
        f"{page.name}: {name}"
        for page in _PAGES
        for name in _COVERED.findall(_CODE.sub("", page.read_text()))
        if name not in there
    }
    assert gone == set()
