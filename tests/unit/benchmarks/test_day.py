"""A day added up from its costs."""

import pytest

from benchmarks.cases.day import DAYS, Costs, Day


def test_a_day_is_the_sum_of_its_parts() -> None:
    day = Day("short ledgers", 100)
    assert day.commits == 24, "what is sealed for an hour is committed, however many ledgers"
    cores = day.cores(Costs(row=14.4e-6, ledger=0.288, commit=1.2, idle_hour=0.6))
    assert list(cores.values()) == pytest.approx([1.0, 1.0, 1.0, 0.5])
    assert Day("long ledgers", 6).commits == 6


def test_days_are_of_ledgers_from_10_minutes_to_4_hours() -> None:
    assert [24 * 60 / day.ledgers for day in DAYS] == [240, 36, 10]
