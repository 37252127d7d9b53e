"""Slots and starts of turns: random topics that come, run and fail, and none starves."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from offloader.schedule.lanes import Lane

RARELY = 4  # each fourth start is for the topic that waits longest


@dataclass(eq=False)
class Waiting:
    """A topic: ready since a tick, or not; ``before``: topics that were ready before it."""

    rank: int
    since: int | None = None
    before: int = 0
    starts: int = 0


def order(lane: Lane[Waiting], topics: list[Waiting]) -> None:
    lane.order(
        [one for one in topics if one.since is not None],
        rank=lambda one: one.rank,
        ready_since=lambda one: float(one.since or 0),
    )


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
    st.integers(1, 4),
)
def test_each_ready_topic_starts_within_four_times_those_before_it(
    ranks: list[int], random: object, slots: int
) -> None:
    """However high the others' rank is, and however often the order is made anew."""
    lane: Lane[Waiting] = Lane(slots, slots)
    topics = [Waiting(rank) for rank in ranks]
    running: list[Waiting] = []
    choose = random.random  # type: ignore[attr-defined]
    for tick in range(200):
        for topic in topics:
            if topic.since is None and topic not in running and choose() < 0.7:
                topic.before = sum(one.since is not None for one in topics)
                topic.since, topic.starts = tick, lane.starts
        if tick % 3 == 0:
            order(lane, topics)
        while (started := lane.start(lambda one: one.since is not None)) is not None:
            # Those that became ready within the same three ticks may come first.
            allowed = RARELY * (started.before + len(topics)) + RARELY
            assert lane.starts - started.starts <= allowed
            started.since = None
            running.append(started)
        for ended in [one for one in running if choose() < 0.5]:
            running.remove(ended)
            lane.end(succeeded=True)
    late = [one for one in topics if one.since is not None]
    assert all(
        lane.starts - one.starts <= RARELY * (one.before + len(topics)) + RARELY for one in late
    )
    assert lane.running == len(running) <= slots


def test_the_longest_wait_counts_starts_and_not_places_in_an_order() -> None:
    """The order is made anew each second, and slots may come free one at a time."""
    lane: Lane[Waiting] = Lane(1, 1)
    poor, rich = Waiting(0, since=1), [Waiting(9, since=2) for _ in range(5)]
    started = []
    for _ in range(8):
        order(lane, [poor, *rich])
        topic = lane.start(lambda one: True)
        assert topic is not None
        started.append(topic)
        lane.end(succeeded=True)
    assert started[3] is started[7] is poor
    assert started.count(poor) == 2


def test_a_lane_for_retries_grows_with_successes_and_shrinks_with_a_failure() -> None:
    lane: Lane[Waiting] = Lane(2, 32)
    topics = [Waiting(0, since=0) for _ in range(200)]
    order(lane, topics)
    generations = []
    while (lane.start(lambda one: True)) is not None:
        while lane.start(lambda one: True) is not None:
            pass
        generations.append(lane.running)
        for _ in range(lane.running):
            lane.end(succeeded=True)
    assert generations[:5] == [2, 4, 8, 16, 32]
    assert max(generations) == 32
    order(lane, topics)
    lane.start(lambda one: True)
    lane.start(lambda one: True)
    lane.end(succeeded=False)
    assert (lane.slots, lane.running) == (2, 1)
