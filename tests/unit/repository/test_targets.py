"""Each test is run by one of the Makefile's targets, which fail if a test process crashes."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from tests.conftest import pytest_sessionfinish, pytest_testnodedown
from tests.durations import table

_ROOT = Path(__file__).parents[3]


def _recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (_ROOT / "Makefile").read_text(), re.M)
    assert found is not None
    return found[1]


def _marked(target: str) -> str:
    """Return what a target of the Makefile gives to `pytest -m`."""
    found: list[str] = re.findall(r'-m "([^"]+)"', _recipe(target))
    assert len(found) == 1
    return found[0]


def _runs(target: str, markers: set[str]) -> bool:
    def has(name: str, /, **_: str | int | bool | None) -> bool:
        return name in markers

    return Expression.compile(_marked(target)).evaluate(has)


@pytest.mark.parametrize("servers", [False, True])
@pytest.mark.parametrize("nightly", [False, True])
def test_each_test_is_run_by_one_target(servers: bool, nightly: bool) -> None:
    markers = {name for name, put in (("servers", servers), ("nightly", nightly)) if put}
    names = ("test-alone", "test-servers", "test-nightly")
    targets = [name for name in names if _runs(name, markers)]
    assert targets == ["test-nightly" if nightly else "test-servers" if servers else "test-alone"]


@pytest.mark.parametrize(
    ("target", "options", "behind"),
    [
        ("test-alone", " $(FEW) --one-spark", ""),
        ("test-servers", " $(FEW)", ""),
        ("test-nightly", "", " --ignore=tests/storages"),  # test-storages runs these
    ],
)
def test_no_target_leaves_out_a_folder(target: str, options: str, behind: str) -> None:
    assert f'\t$(PYTEST){options} -m "{_marked(target)}"{behind}\n' in _recipe(target)


def test_ci_runs_all_but_what_is_nightly() -> None:
    commands = re.findall(r"^make (\S+)", (_ROOT / ".ci/run").read_text(), re.M)
    assert commands == ["test", "test-servers", "faults", "demo"]


def test_a_check_runs_what_a_test_runs_of_units() -> None:
    assert '-m "not servers and not nightly" tests/unit\n' in _recipe("check-alone")


@pytest.mark.parametrize("target", ["check", "test"])
def test_lint_runs_beside_the_tests(target: str) -> None:
    made_of = re.findall(rf"^{target}: (.*?)  ##", (_ROOT / "Makefile").read_text(), re.M)
    assert made_of == [f"lint {target}-alone"]


@pytest.mark.parametrize(
    ("goals", "at_once"), [(["test"], True), (["check"], True), (["clean", "test"], False)]
)
def test_goals_that_are_given_together_follow_each_other(goals: list[str], at_once: bool) -> None:
    ours = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    database = subprocess.run(
        ["make", "-npq", *goals],
        cwd=_ROOT,
        env=ours,  # without the options of the `make` that runs the tests
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    ).stdout
    [flags] = re.findall(r"^MAKEFLAGS = (.*)$", database, re.M)
    assert ("-j2" in flags) == at_once


@pytest.mark.parametrize(
    ("error", "before", "after"),
    [
        (None, pytest.ExitCode.OK, pytest.ExitCode.OK),
        ("gone", pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED),
        ("gone", pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERRUPTED),
    ],
)
def test_a_run_with_a_crashed_process_fails(
    error: object, before: pytest.ExitCode, after: pytest.ExitCode
) -> None:
    config = SimpleNamespace(stash=pytest.Stash())
    session: Any = SimpleNamespace(config=config, exitstatus=before)
    pytest_testnodedown(SimpleNamespace(config=config), error)
    pytest_testnodedown(SimpleNamespace(config=config), None)  # another one ends as it should
    pytest_sessionfinish(session)
    assert session.exitstatus == after


def test_the_table_of_durations(tmp_path: Path) -> None:
    report = tmp_path / "test.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.unit.plan.test_a" name="one" time="0.6"/>'
        '<testcase classname="tests.unit.plan.test_b.TestOf" name="two" time="0.6"/>'
        '<testcase classname="tests.spark.test_c" name="three" time="7"/>'
        "</testsuite></testsuites>"
    )
    assert table([report]).splitlines()[2:] == [
        "| `spark` | test | 1 | 7 |",
        "| `unit/plan` | test | 2 | 1 |",
        "| all | test | 3 | 8 |",
    ]
