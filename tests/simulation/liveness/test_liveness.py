"""Whatever is healthy has a turn and its hold within a bound, beside any outage."""

import math

import pytest

from reader.model import Topic
from tests.simulation.liveness.run import late_topics
from tests.simulation.liveness.servers import Outage, Server, State
from tests.simulation.liveness.world import SMALL, LiveTopic, ScheduleWorld

_SEED = 2_000_000

_BROKER = Server("broker")


def _server(state: State, ends: float = math.inf) -> Server:
    """A bookie that is in a state from the beginning."""
    return Server(f"{state} until {ends}", [Outage(0.0, ends, state)], latency=1.0)


def _topics(rack: Server, count: int, packs: tuple[int, ...] = SMALL) -> list[LiveTopic]:
    return [
        LiveTopic(Topic("public", rack.name, f"t{n}"), _BROKER, rack, packs, 0.0, 0.0)
        for n in range(count)
    ]


@pytest.mark.parametrize("seed", (_SEED + 2, _SEED + 4))
def test_no_healthy_topic_starves(seed: int) -> None:
    world = ScheduleWorld(seed, hours=0.4)
    world.run()
    assert world.turns > 10
    assert world.waits


@pytest.mark.parametrize(("slow", "longest"), [(2, 240), (40, 700)])
def test_slow_topics_delay_the_others_once(slow: int, longest: int) -> None:
    """2 GiB each at 1 MB/s: without workers of their own, all others have 7 % of their commits."""
    healthy = _topics(Server("up"), 50)
    large = _topics(_server("slow"), slow, (128 << 20,) * 16)
    world = ScheduleWorld(1, 2.0, [*healthy, *large])
    world.run()
    waits = sorted(wait for one in healthy for _, wait in world.commits[one.topic])
    assert waits[-1] <= longest
    assert len(waits) > 13 * len(healthy), "one in each seven minutes or so"
    assert waits[len(waits) * 9 // 10] < 70
    assert sum(bool(world.commits[one.topic]) for one in large) >= 2, "they end one by one"


@pytest.mark.parametrize("each", [50, pytest.param(500, marks=pytest.mark.long)])
def test_retries_do_not_wait_behind_a_silent_rack(each: int) -> None:
    """Two racks fail together, and one of them comes back after a minute."""
    back = _topics(_server("silent", ends=60.0), each)
    world = ScheduleWorld(1, 1.5, [*back, *_topics(_server("silent"), each)])
    world.run()
    first = [commits[0][0] for one in back if (commits := world.commits[one.topic])]
    print(f"{each}: {len(first)} of {len(back)}; last {max(first, default=math.inf):.0f} s")
    assert len(first) == len(back)


@pytest.mark.long
@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_no_healthy_topic_starves_in_many_histories() -> None:
    assert late_topics(range(_SEED, _SEED + 150), log=print) == {}
