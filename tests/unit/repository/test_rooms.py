"""The house keeps its rooms: contents pages, sizes, what imports say, no way into private names."""

import configparser
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from grimp import ImportGraph
from importlinter import fields

from tests.unit.repository.room_doors import Room
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
MOST = 13
"""Python files of a folder, its ``__init__`` included, above which a warning is given."""
MOST_PARAMETERS = 8
"""Parameters of a function that is no kernel, without ``self`` and ``cls``."""
LONGEST_FUNCTION = 80
"""Lines of a function that is no kernel."""

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


def _listed_rooms() -> list[Room]:
    """Return the rooms of the tables in ``.importlinter``."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    contracts = [parser[name] for name in parser.sections() if parser[name].get("type") == "rooms"]
    return [Room.parse(line) for one in contracts for line in one["rooms"].strip().split("\n")]


def test_each_room_has_a_line_in_the_table_of_doors() -> None:
    names = map(package_name, packages())
    rooms = {name for name in names if name.count(".") == 1 and name.split(".")[0] in _ROOMS_OF}
    assert len(rooms) > 20
    # `testbed.server` has a contract of its own: the package itself is not for everybody.
    assert {room.name for room in _listed_rooms()} == rooms - {"testbed.server"}


@pytest.mark.parametrize(
    ("line", "importer", "imported", "fault"),
    [
        ("a.room: door", "a.other", "a.room", None),
        ("a.room: door", "a.room.inner", "a.room.inner.deep", None),
        ("a.room: door", "tests.x", "a.room.inner", None),
        ("a.room: door", "a.other", "a.room.inner", "a.other imports a.room.inner"),
        ("a.room: door", "a.roomy", "a.room.inner", "a.roomy imports a.room.inner"),
        ("a.room: door", "a.other", "a.room.inner.deep", "a.other imports a.room.inner.deep"),
        ("a.room: inner", "a.other", "a.room.inner.deep", "a.other imports a.room.inner.deep"),
        ("a.room (a.other): door", "a.other.x", "a.room.inner", None),
        ("a.room: door, inner (a)", "a", "a.room.inner", None),
        ("a.room: door, inner (a)", "a.other", "a.room.inner", "a.other imports a.room.inner"),
        ("a.room: door, inner", "tests", "a.room.inner", "a.room.inner needs no door"),
        ("a.room: door, gone", "tests", "a.room.inner", "a.room.gone needs no door"),
    ],
)
def test_a_room_is_imported_through_its_doors(
    line: str, importer: str, imported: str, fault: str | None
) -> None:
    graph = ImportGraph()
    for module in ("a.room.door", "a.room.inner.deep", imported):
        for end in range(1, module.count(".") + 2):
            graph.add_module(".".join(module.split(".")[:end]))
    graph.add_import(importer="a.else", imported="a.room.door")
    graph.add_import(importer=importer, imported=imported)
    faults = list(Room.parse(line).faults(graph, ("tests",)))
    assert any(fault in one for one in faults) if fault else faults == []


def test_a_line_of_another_form_is_refused() -> None:
    for line in ("a.room:", "a.room: not a door", "a.room ()"):
        with pytest.raises(fields.ValidationError, match="is not of the form"):
            Room.parse(line)


def test_no_file_is_too_long() -> None:
    lines = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in sources()}
    assert len(lines) > 300
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


@pytest.mark.filterwarnings("default")
def test_a_full_folder_is_a_warning() -> None:
    """Rooms are cut by meaning, so a count of files is only a reason to look."""
    count = Counter(str(file.parent.relative_to(ROOT)) for file in python_files())
    for name, number in count.items():
        if number > MOST:
            warnings.warn(f"{name} has {number} Python files, more than {MOST}", stacklevel=1)


def test_no_function_is_too_long_or_has_too_many_parameters() -> None:
    """Kernels are left out: numba knows arrays and numbers, and a call costs."""
    functions = {
        f"{file.relative_to(ROOT)}:{function.name}": function
        for file in python_files(*PRODUCT)
        for function in contents_of(file).functions
        if not function.is_kernel
    }
    assert len(functions) > 3000
    many = {name for name, one in functions.items() if one.parameters > MOST_PARAMETERS}
    long = {name for name, one in functions.items() if one.lines > LONGEST_FUNCTION}
    # A name that is missing here has become shorter: it leaves its list, and does not come back.
    assert many == _MANY_PARAMETERS
    assert long == _LONG


_MANY_PARAMETERS = {
    "offloader/cli/init.py:init"  # the options of a command are its parameters
}
"""Functions that still have more parameters than MOST_PARAMETERS."""
_LONG: set[str] = set()
"""Functions that still have more lines than LONGEST_FUNCTION."""


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
    "reads": "what is read, as values: by a plan, of bookies",
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
