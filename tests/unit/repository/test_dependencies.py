"""What a package imports, pyproject.toml declares: for users, or for who works on the project."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.unit.repository.tree import ROOT, contents_of, python_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = ("reader", "spark_ext", "offloader")
DEVELOPMENT = ("testbed", "tests", "benchmarks", "demo")
MODULES = PROJECT["tool"]["setuptools"]["py-modules"]


def names(requirements: list[str]) -> set[str]:
    """The distributions' names, as they are compared."""
    return {normal(re.split(r"[\[<>=~! ]", one)[0]) for one in requirements}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


DECLARED = names(PROJECT["project"]["dependencies"])
FOR_DEVELOPMENT = names(PROJECT["dependency-groups"]["dev"])
EXTRAS = {
    one for some in PROJECT["project"]["optional-dependencies"].values() for one in names(some)
}


def imported(folder: str) -> Iterator[tuple[str, str]]:
    """(top-level module, who imports it) of all that is neither ours nor Python's."""
    known = {*sys.stdlib_module_names, *RUNTIME, *DEVELOPMENT, *MODULES}
    for file in python_files(folder):
        contents = contents_of(file)
        for module in (*contents.imports, *(module for module, _ in contents.imports_from)):
            if (top := module.split(".")[0]) not in known:
                yield top, str(file.relative_to(ROOT))


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def undeclared(folder: str, declared: set[str]) -> dict[str, str]:
    of = _distributions()
    return {
        module: by
        for module, by in imported(folder)
        if not {normal(one) for one in of.get(module, ())} & declared
    }


@pytest.mark.parametrize("folder", RUNTIME)
def test_users_get_what_the_packages_import(folder: str) -> None:
    """Some of it as an extra, which a setting takes."""
    assert undeclared(folder, DECLARED | EXTRAS) == {}


def test_extras_are_there_for_who_works_on_the_project() -> None:
    assert EXTRAS <= FOR_DEVELOPMENT


@pytest.mark.parametrize("folder", DEVELOPMENT)
def test_developers_get_what_the_rest_imports(folder: str) -> None:
    assert undeclared(folder, DECLARED | FOR_DEVELOPMENT) == {}


def test_what_an_extra_has_is_imported_in_one_place() -> None:
    """Where it is needed, and the rooms in there: everything else works without the extra."""
    rooms = {"hdfs_native": "reader/storage/stores", "pyiceberg": "offloader/iceberg"}
    for module, room in rooms.items():
        found = [by for folder in RUNTIME for name, by in imported(folder) if name == module]
        assert found
        assert {by for by in found if room not in map(str, Path(by).parents)} == set()


def test_nothing_is_for_both() -> None:
    assert not DECLARED & FOR_DEVELOPMENT
    assert DECLARED.isdisjoint({"boto3", "fastavro"})


def test_the_lock_has_them_all_and_says_for_whom() -> None:
    text = (ROOT / "requirements.lock").read_text()
    blocks = re.findall(r"^([\w.-]+)==.*?((?:\n    .*)+)", text, re.MULTILINE)
    found = {
        normal(name): match[1]
        for name, rest in blocks
        if (match := re.search(r"pulsar-lake \(([^)]+)\)", rest))
    }
    assert found == {
        **dict.fromkeys(DECLARED, "pyproject.toml"),
        **dict.fromkeys(FOR_DEVELOPMENT, "pyproject.toml:dev"),
    }


def test_what_installs_the_rest_is_pinned_by_hash() -> None:
    makefile, lock = (ROOT / "Makefile").read_text(), (ROOT / "bootstrap.lock").read_text()
    version = re.search(r"^UV_VERSION := (\S+)$", makefile, re.M)
    assert version is not None
    assert [one for one in lock.splitlines() if "==" in one] == [f"uv=={version[1]} \\"]
    assert lock.count("--hash=sha256:") > 10
    installed = [one for one in makefile.splitlines() if "-m pip install" in one]
    assert len(installed) == 1
    assert "--require-hashes" in installed[0]
    assert "-r bootstrap.lock" in installed[0]
