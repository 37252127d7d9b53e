"""What a filter leaves of segments and files."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reader.model import Position
from reader.model.reasons import Pruned
from reader.plan.cold_files import ColdFile, plan_files
from reader.plan.filters import Predicate
from reader.plan.pruning import prune_reason, publish_range
from reader.plan.publish_times import LearnedTimes
from tests.unit.plan.values import segment, time


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ([], (None, None)),
        ([time(">", 5)], (6, None)),
        ([time(">=", 5), time("<", 9)], (5, 8)),
        ([time("=", 5)], (5, 5)),
        ([time("in", 5, 9, 7)], (5, 9)),
        ([time(">", 5), time(">", 7), time("<=", 3)], (8, 3)),
        ([Predicate("other", ">", (5,))], (None, None)),
        ([Predicate("__publishTime", ">", (None,))], (None, None)),
    ],
)
def test_publish_range(
    predicates: list[Predicate], expected: tuple[int | None, int | None]
) -> None:
    assert publish_range(predicates) == expected


def test_learned_ranges_prune_only_when_they_cover_the_segment() -> None:
    learned = LearnedTimes(0, 7, 0, 99, 500, 1000, 2000)
    assert prune_reason(segment(), [time(">", 2000)], learned)
    assert prune_reason(segment(), [time("<", 1000)], learned)
    assert prune_reason(segment(), [time(">=", 2000)], learned) is None
    partly = replace(learned, last=98)
    assert prune_reason(segment(), [time(">", 2000)], partly) is None
    assert prune_reason(segment(), [time(">", 0)], LearnedTimes(0, 7, 0, 99, 0, None, None))
    assert prune_reason(segment(), [time(">", 2000)], None) is None


def test_clock_skew_is_opt_in_and_says_that_it_is_not_exact() -> None:
    closed = replace(segment(), closed_at=1_000_000)  # ms
    late = [time(">", 1_000_000_000 + 3_600_000_000)]
    assert prune_reason(closed, late) is None
    assert "not exact" in str(prune_reason(closed, late, None, timedelta(minutes=10)))
    assert prune_reason(closed, late, None, timedelta(hours=2)) is None
    early = [time("<", 1)]
    assert prune_reason(closed, early, None, timedelta(minutes=1), closed_before=900_000)
    assert prune_reason(closed, early, None, timedelta(minutes=1), closed_before=None) is None


def test_partition_and_ledger_prune() -> None:
    assert prune_reason(segment(partition=1), [Predicate("__partition", "=", (0,))])
    assert prune_reason(segment(partition=1), [Predicate("__partition", "in", (0, 1))]) is None
    assert prune_reason(segment(7), [Predicate("__ledgerId", ">", (7,))])
    assert prune_reason(segment(7), [Predicate("__ledgerId", ">=", (7,))]) is None


def test_why_is_a_value() -> None:
    found = prune_reason(segment(7), [Predicate("__ledgerId", ">", (7,))])
    assert found is not None and (found.kind, found.detail) == (Pruned.LEDGER, 7)
    found = prune_reason(segment(7), [time(">", 5), time("<", 3)])
    assert found is not None and found.kind is Pruned.EMPTY_RANGE


FILES = (
    ColdFile("a", 10, 5, {"__partition": (0, 0), "__ledgerId": (1, 4), "__publishTime": (10, 19)}),
    ColdFile("b", 20, 5, {"__partition": (0, 0), "__ledgerId": (5, 5), "__publishTime": (20, 29)}),
    ColdFile("c", 30, 5, {"__partition": (1, 1), "__ledgerId": (2, 2), "__publishTime": (25, 90)}),
    ColdFile("d", 40),
)


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ([], "abcd"),
        ([time(">=", 20)], "bcd"),
        ([time("<", 20)], "ad"),
        ([time(">", 29)], "cd"),
        ([time(">", 30), time("<", 20)], "d"),
        ([Predicate("__partition", "=", (0,))], "abd"),
        ([Predicate("__ledgerId", "in", (2, 3))], "acd"),
        ([Predicate("__ledgerId", "<", (2,))], "ad"),
        ([Predicate("__ledgerId", "<=", (2,))], "acd"),
        ([Predicate("__ledgerId", ">", (4,))], "bd"),
        ([Predicate("__ledgerId", ">=", (4,))], "abd"),
        ([Predicate("id", "=", (0,))], "abcd"),
    ],
)
def test_files_that_may_match(predicates: list[Predicate], expected: str) -> None:
    found = plan_files(FILES, predicates, {})
    assert "".join(one.file.path for one in found if one.read) == expected


def test_files_of_a_range_of_positions() -> None:
    found = plan_files(FILES, [], {0: (Position(5, 0), None), 1: (None, Position(1, 9))})
    assert "".join(one.file.path for one in found if one.read) == "bd"
