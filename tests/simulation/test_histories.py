"""Random histories: every message once, whatever happens; and what a failing one looks like."""

from datetime import UTC, datetime

import pytest

from tests.simulation.histories import HISTORIES
from tests.simulation.run import run_many, shortest
from tests.simulation.shrinking import as_test, shrink
from tests.simulation.steps import History, Step, draw
from tests.simulation.world import Settings


def test_a_failing_history_is_made_shorter_and_told_as_a_test() -> None:
    def fails(one: History) -> bool:
        kinds = [step.kind for step in one.steps]
        return "seal" in kinds and "turn" in kinds[kinds.index("seal") :]

    long = History(Settings(partitions=2), tuple(map(Step, ("query", "seal", "trim", "turn"))) * 4)
    short = shrink(long, fails)
    assert [step.kind for step in short.steps] == ["seal", "turn"]
    told = as_test(short, 7, "what was found")
    assert 'check(Settings(partitions=2), "seal, turn")' in told
    compile(told, "told", "exec")


def test_a_seed_has_one_history() -> None:
    assert draw(5) == draw(5) != draw(6)
    assert {step.kind for step in draw(5, frozenset(["query"])).steps} >= {"settle"}


@pytest.mark.parametrize("kind", HISTORIES)
def test_some_histories(kind: str) -> None:
    _run(kind, HISTORIES[kind].seed, HISTORIES[kind].some, processes=1)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", HISTORIES)
def test_many_histories(kind: str) -> None:
    """Others each day. The message of a failure has the seeds, and the shortest one as a test."""
    count = 1_500
    today = datetime.now(UTC).date().toordinal()
    _run(kind, HISTORIES[kind].seed + count * today, count, processes=2)


def _run(kind: str, first: int, count: int, processes: int) -> None:
    drawn = HISTORIES[kind]
    seeds = range(first, first + count)
    report = run_many(seeds, drawn=drawn.draw, processes=processes, most_failures=3)
    print(report.text())
    short = [shortest(seed, drawn=drawn.draw) for seed in sorted(report.failed)[:1]]
    assert not report.failed, "\n".join([str(report.failed), *short])
    assert report.histories == count
    assert report.steps.total() > 5 * count
