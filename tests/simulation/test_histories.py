"""Random histories: every message once, whatever happens; and what a failing one looks like."""

from __future__ import annotations

import pytest

from tests.simulation.run import Report, run_many, shortest
from tests.simulation.shrinking import as_test, shrink
from tests.simulation.steps import History, Step, draw
from tests.simulation.world import Settings

_SEED = 1_000_000


def test_a_failing_history_is_made_shorter_and_told_as_a_test() -> None:
    def fails(one: History) -> bool:
        kinds = [step.kind for step in one.steps]
        return "seal" in kinds and "turn" in kinds[kinds.index("seal") :]

    long = History(Settings(partitions=2), tuple(map(Step, ("query", "seal", "trim", "turn"))) * 4)
    short = shrink(long, fails)
    assert [step.kind for step in short.steps] == ["seal", "turn"]
    told = as_test(short, 7, "what was found")
    assert 'check(\n        Settings(partitions=2),\n        Step("seal", 0, 0),' in told
    compile(told, "told", "exec")


def test_a_seed_has_one_history() -> None:
    assert draw(5) == draw(5) != draw(6)
    assert {step.kind for step in draw(5, frozenset(["query"])).steps} >= {"settle"}


def _run(histories: int) -> Report:
    report = run_many(range(_SEED, _SEED + histories), most_failures=3)
    print(report.text())
    short = [shortest(seed) for seed in sorted(report.failed)[:1]]
    assert not report.failed, "\n".join([str(report.failed), *short])
    return report


def test_some_histories() -> None:
    assert _run(150).steps.total() > 2000


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_many_histories() -> None:
    _run(1_500)
