"""Histories with writes: each row once and in order, or an error with a reason."""

from __future__ import annotations

import pytest

from tests.simulation.run import check, failure_of, run_many, shortest
from tests.simulation.sinks.sink_histories import draw_sink
from tests.simulation.steps import Step
from tests.simulation.world import Settings

_SEED = 7_000_000


def test_some_histories() -> None:
    """In this process: others take longer to start than so few histories."""
    found = {seed: failure_of(draw_sink(seed)) for seed in range(_SEED, _SEED + 20)}
    assert not any(found.values()), found


@pytest.mark.long
@pytest.mark.by_hand
@pytest.mark.timeout(900)
def test_many_histories() -> None:
    report = run_many(range(_SEED, _SEED + 1_500), drawn=draw_sink, most_failures=3)
    print(report.text())
    short = [shortest(seed, drawn=draw_sink) for seed in sorted(report.failed)[:1]]
    assert not report.failed, "\n".join([str(report.failed), *short])


def test_a_refused_entry_is_not_believed_once_those_behind_it_were_consumed() -> None:
    """Seed 80042: the broker's word counted for what the target had deleted."""
    check(
        Settings(wildcard=False, broker_times=False),
        Step("sink_incident", 241, 615),
        Step("sink", 0, 274),
        Step("sink_meet", 0, 837),
        Step("seal"),
        Step("sink_trim"),
        Step("sink", 0, 125),
    )
