"""How benchmarks compare and keep what they measured."""

import json
import operator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cases import CASES
from benchmarks.chart import chart, share
from benchmarks.measure import (
    BrokenCaseError,
    Contender,
    Result,
    at_least,
    at_most,
    clocked_turns,
    paired,
    take_turns,
)
from benchmarks.results import MACHINE, RESULTS, as_json, context, merged, row, save


def test_runs_take_turns_after_a_warm_up() -> None:
    order: list[str] = []

    def contender(name: str) -> Contender:
        return Contender(lambda: order.append(name), None, lambda: order.append("-"))

    taken = take_turns({"a": contender("a"), "b": contender("b")}, 2)
    assert order == ["-", "a", "-", "b"] * 3
    assert {name: len(times) for name, times in taken.items()} == {"a": 2, "b": 2}


def test_preparing_is_not_measured() -> None:
    now = 0.0

    def pass_time() -> None:
        nonlocal now
        now += 1

    taken = take_turns({"a": Contender(pass_time, None, pass_time)}, 3, clock=lambda: now)
    assert taken == {"a": [1, 1, 1]}


def test_several_clocks_measure_the_same_work() -> None:
    now = [0.0, 0.0]

    def pass_time() -> None:
        now[0] += 1
        now[1] += 10

    clocks = [lambda: now[0], lambda: now[1]]
    taken = clocked_turns({"a": Contender(pass_time, None, pass_time)}, 2, clocks)
    assert taken == [{"a": [1, 1]}, {"a": [10, 10]}]


def test_a_wrong_answer_breaks_the_case_even_in_the_warm_up() -> None:
    with pytest.raises(BrokenCaseError, match="b says 2 instead of 1"):
        take_turns({"a": Contender(lambda: 1, 1), "b": Contender(lambda: 2, 1)}, 1)


def test_ratios_are_of_the_same_turn() -> None:
    assert paired([1, 2], [4, 4], operator.truediv) == (0.25, 0.5)
    with pytest.raises(ValueError):
        paired([1], [1, 2], operator.truediv)


@pytest.mark.parametrize(
    ("target", "value", "met"),
    [
        (at_least(6), 6, True),
        (at_least(6), 5.99, False),
        (at_most(0.5), 0.5, True),
        (at_most(0.5), 0.51, False),
        (None, 1, None),
    ],
)
def test_a_target_has_a_side(target: Any, value: float, met: bool | None) -> None:
    assert Result("case", "measure", "x", (value,), target).met is met


def test_the_value_is_the_median_and_the_spread_is_told() -> None:
    found = as_json(Result("case", "measure", "x", (3, 1, 2), at_least(2)), "now")
    assert (found["value"], found["spread"], found["runs"]) == (2, [1, 3], [3, 1, 2])
    assert (found["target"], found["side"], found["met"]) == (2, ">=", True)


def of(case: str, measure: str, value: float = 1) -> dict[str, Any]:
    return as_json(Result(case, measure, "x", (value,)), "now")


def test_a_run_of_one_case_replaces_only_that() -> None:
    before = [of("a", "old"), of("b", "kept"), of("gone", "x")]
    found = merged(before, [of("c", "new"), of("a", "new")], ["a", "b", "c"])
    assert [(one["case"], one["measure"]) for one in found] == [
        ("a", "new"),
        ("b", "kept"),
        ("c", "new"),
    ]


def test_files_of_one_run_and_the_next(tmp_path: Path) -> None:
    cases = ["a", "b"]
    new = [Result("a", "m", "s", (1, 2, 3)), Result("b", "m", "s", (1,))]
    save(tmp_path, new, context({}) | {"at": "first"}, cases)
    machine = json.loads((tmp_path / MACHINE).read_text())
    assert machine["first"]["machine"]["cores"] >= 1
    assert machine["first"]["versions"]["pyspark"]
    save(tmp_path, [Result("b", "m", "s", (5,))], {"at": "second"}, cases)
    found = json.loads((tmp_path / RESULTS).read_text())
    assert isinstance(found, list)
    assert [(one["case"], one["value"]) for one in found] == [("a", 2), ("b", 5)]
    runs = json.loads((tmp_path / MACHINE).read_text())
    assert [one["run"] for one in found] == list(runs) == ["first", "second"]


def test_a_broken_file_of_an_earlier_run_is_replaced(tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_text("[{")
    assert len(save(tmp_path, [Result("a", "m", "s", (1,))], {"at": "now"}, ["a"])) == 1


def test_a_line_of_the_table() -> None:
    missed = as_json(Result("c", "m", "s", (1200.0,), at_most(2)), "")
    assert row(missed) == ["m", "1,200 s", "1,200 to 1,200", "<= 2.00", "NO"]
    assert row(of("c", "m", 0.5)) == ["m", "0.500", "0.500 to 0.500", "", ""]


def test_how_much_of_a_target_is_reached() -> None:
    assert share(12, 6, ">=") == share(3, 6, "<=") == 2
    assert share(-1, 0.5, "<=") == 20  # as good as the chart shows
    assert share(0.001, 50, ">=") == 0.05
    assert share(0, 0, "<=") == 1
    assert share(4, 0, "<=") == 0.05


def test_the_chart_is_svg(tmp_path: Path) -> None:
    chart(tmp_path / "a.svg", [as_json(Result("c", "m", "x", (1,), at_least(2)), "")])
    assert "<svg" in (tmp_path / "a.svg").read_text()
    chart(tmp_path / "b.svg", [of("c", "m")])
    assert not (tmp_path / "b.svg").exists()


def test_every_case_is_named_once() -> None:
    assert all(name == case.name and case.about for name, case in CASES.items())
