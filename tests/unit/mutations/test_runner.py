"""What is found is found by a test, what survives says so, and nothing is concluded from errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutations.mutation import Mutation, MutationError
from tests.mutations.report import line, summary, table
from tests.mutations.runner import Outcome, Result, Stage, run_all, run_one
from tests.mutations.tree import MutatedTree, TestRun, finding_test

_TEST = "tests/unit/plan/test_pruning.py"
_MUTATION = Mutation("some", "a.py", "1", "2", "some rows", (f"{_TEST}::test_one",))
_ON_SERVERS = Mutation("other", "a.py", "1", "2", "all rows", (), ("tests/scan/test_rows.py",))


class _Runs:
    """Tests of which those in ``failing`` fail; remembers what was run."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.ran: list[tuple[str, ...]] = []

    def run(self, tests: Sequence[str], seconds: float, *, processes: int = 1) -> TestRun:
        self.ran.append(tuple(tests))
        found = self.failing if self.failing and self.failing.startswith(tuple(tests)) else None
        return TestRun(found, 2.0)


class _Tree(_Runs):
    """The same in a tree; they fail ``always``, or with the mutation ``some`` alone."""

    def __init__(self, failing: str, *, always: bool = False) -> None:
        super().__init__(failing)
        self.always = always
        self.mutated = ""

    @contextmanager
    def with_mutation(self, mutation: Mutation) -> Iterator[None]:
        self.mutated = mutation.id
        yield
        self.mutated = ""

    def run(self, tests: Sequence[str], seconds: float, *, processes: int = 1) -> TestRun:
        if self.mutated != "some" and not self.always:
            return TestRun(None, 1.0)
        return super().run(tests, seconds, processes=processes)


@pytest.mark.parametrize(
    ("failing", "stage", "runs"),
    [
        (f"{_TEST}::test_one[a]", Stage.NAMED, 1),
        ("tests/unit/plan/test_plan.py::test_x", Stage.ROOM, 2),
        ("tests/simulation/test_histories.py::test_x", Stage.UNIT, 3),
        ("tests/spark/test_lake.py::test_x", Stage.TEST, 4),
    ],
)
def test_the_first_stage_that_finds_it_is_the_last_one(
    failing: str, stage: Stage, runs: int
) -> None:
    tests = _Runs(failing)
    found = run_one(tests, _MUTATION, Stage.TEST)
    assert (found.outcome, found.stage, found.found_by) == (Outcome.FOUND, stage, failing)
    assert (len(tests.ran), found.seconds) == (runs, 2.0 * runs)
    assert f"`{failing}`" in line(found)


@pytest.mark.parametrize("upto", Stage)
def test_what_no_test_finds_has_survived(upto: Stage) -> None:
    tests = _Runs()
    found = run_one(tests, _MUTATION, upto)
    assert (found.outcome, found.stage, found.found_by) == (Outcome.SURVIVED, upto, None)
    assert len(tests.ran) == upto + 1
    assert "**SURVIVED**" in line(found)


def test_what_needs_a_server_is_not_run_without_one() -> None:
    found = run_one(_Runs(), _ON_SERVERS, Stage.NAMED)
    assert found.outcome is Outcome.NOT_RUN
    assert "needs a server (`tests/scan/test_rows.py`)" in line(found)
    failing = "tests/scan/test_rows.py::test_x"
    assert run_one(_Runs(failing), _ON_SERVERS, Stage.TEST).found_by == failing


def test_the_table_sums_up() -> None:
    results = [
        Result(_MUTATION, Outcome.FOUND, Stage.NAMED, f"{_TEST}::test_one[a|b]", 3.4),
        Result(_ON_SERVERS, Outcome.SURVIVED, Stage.TEST, None, 60.0),
    ]
    assert summary(results) == "2 mutations: 1 found (1 in stage named); 1 survived: other"
    rows = table(results).splitlines()
    assert len(rows) == 6
    assert rows[4] == (rf"| `some` (a.py) | some rows | `{_TEST}::test_one[a\|b]` | named | 3 |")


def test_the_first_failure_is_what_pytest_printed() -> None:
    printed = "F\nFAILED tests/a/test_b.py::test_c[x y] - AssertionError: no\n1 failed in 0.1s\n"
    assert finding_test(1, printed) == "tests/a/test_b.py::test_c[x y]"
    assert finding_test(2, "ERROR tests/a/test_b.py - NameError: x\n") == "tests/a/test_b.py"
    assert finding_test(0, "") is None
    assert finding_test(-11, "") == "pytest died of signal 11"


@pytest.mark.parametrize("exit_code", [1, 2, 3, 4, 5])
def test_a_run_without_tests_says_nothing(exit_code: int) -> None:
    with pytest.raises(MutationError, match=f"exit code {exit_code}: no such test"):
        finding_test(exit_code, "no such test")


def test_a_test_that_fails_without_the_mutation_has_found_nothing() -> None:
    results: list[Result] = []
    tree = _Tree(f"{_TEST}::test_one[a]", always=True)
    with pytest.raises(MutationError, match=r"test_one\[a\] fails without any mutation, too"):
        run_all(tree, [_MUTATION, replace(_MUTATION, id="other")], Stage.NAMED, results.append)
    assert len(results) == 2
    assert tree.ran[2:] == [(f"{_TEST}::test_one",)]


def test_each_mutation_is_taken_out_before_the_next() -> None:
    results: list[Result] = []
    tree = _Tree(f"{_TEST}::test_one")
    others = replace(_MUTATION, id="third")
    run_all(tree, [_MUTATION, others, _ON_SERVERS], Stage.NAMED, results.append)
    assert [one.outcome for one in results] == [Outcome.FOUND, Outcome.SURVIVED, Outcome.NOT_RUN]
    assert tree.mutated == ""


def test_a_mutation_is_in_the_copy_alone(tmp_path: Path) -> None:
    """By pytest itself."""
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "double.py").write_text("def double(number):\n    return number * 2\n")
    (root / "tests" / "conftest.py").write_text(
        "from hypothesis import settings\nsettings.register_profile('check')\n"
        "def pytest_configure(config):\n    config.addinivalue_line('markers', 'long: is long')\n"
    )
    (root / "tests" / "test_double.py").write_text(
        "from double import double\n\ndef test_double():\n    assert double(2) == 4\n"
    )
    mutation = Mutation("some", "double.py", "number * 2", "number * 3", "", ("tests",))
    tree, before = MutatedTree(root, tmp_path), (root / "double.py").read_text()
    copy = tmp_path / "tree" / "double.py"
    with tree.with_mutation(mutation):
        assert "number * 3" in copy.read_text()
        found = tree.run(mutation.tests, 240)
    assert found.found_by == "tests/test_double.py::test_double"
    assert (root / "double.py").read_text() == copy.read_text() == before
