"""Whatever is healthy has a turn and its hold within a bound, beside any outage."""

from __future__ import annotations

import pytest

from tests.simulation.liveness.run import late_topics
from tests.simulation.liveness.world import ScheduleWorld

_SEED = 2_000_000


@pytest.mark.parametrize("seed", range(_SEED, _SEED + 2))
def test_no_healthy_topic_starves(seed: int) -> None:
    world = ScheduleWorld(seed, hours=0.4)
    world.run()
    assert world.turns > 10
    assert world.waits


@pytest.mark.long
@pytest.mark.by_hand
@pytest.mark.timeout(900)
def test_no_healthy_topic_starves_in_many_histories() -> None:
    assert late_topics(range(_SEED, _SEED + 150), log=print) == {}
