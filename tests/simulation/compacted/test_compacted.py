"""Histories of a compacted view: the latest message of each key, or an error with a reason."""

from __future__ import annotations

import pytest

from tests.simulation.compacted.view_histories import draw_view
from tests.simulation.run import failure_of, run_many, shortest

_SEED = 5_000_000


def test_some_histories() -> None:
    found = {seed: failure_of(draw_view(seed)) for seed in range(_SEED, _SEED + 20)}
    assert not any(found.values()), found


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_many_histories() -> None:
    report = run_many(range(_SEED, _SEED + 1_500), drawn=draw_view, most_failures=3)
    print(report.text())
    short = [shortest(seed, drawn=draw_view) for seed in sorted(report.failed)[:1]]
    assert not report.failed, "\n".join([str(report.failed), *short])
