"""Which topic is next, and when: ledgers, counts and clocks in, an order out."""

import math
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ByteSize

from offloader.config import OffloadConfig, OffloadOverride
from offloader.model.observation import Observation
from offloader.model.retry_policy import BACK_OFF_MOST, back_off
from offloader.model.turn import Workers
from offloader.schedule.lanes import TurnKind
from offloader.schedule.next_turn import OBSERVE_EVERY, UNKNOWN_EVERY, next_turn, share
from offloader.schedule.queue import TopicQueue
from reader.model import Partition, Topic
from reader.pulsar.topics import LoadedTopic
from tests.support.backlogs import backlog_of

CONFIG = OffloadConfig(
    threshold_bytes=ByteSize(1600), max_age=timedelta(minutes=30), interval=timedelta(seconds=60)
)
A, B, C, D, E = (Topic("public", "default", name) for name in "abcde")
AT = 1_000_000.0
HELD = frozenset({CONFIG.subscription})


def name(topic: Topic) -> str:
    return topic.full_name


def seen(
    topic: Topic = A, sealed: int = 0, at: float = AT, oldest: float | None = None, **more: Any
) -> Observation:
    found = backlog_of({name(topic): sealed}, {name(topic): 0}, oldest, at=at)
    return Observation(at, found, **more)


def queue_of(*topics: Topic, config: OffloadConfig = CONFIG, always: bool = False) -> TopicQueue:
    """Topics without partitions, each observed with nothing to do."""
    made = TopicQueue(config, jitter=lambda: 1.0, always=always)
    made.serve({topic: [Partition(topic, -1)] for topic in topics})
    for topic in topics:
        finish(made, topic, seen(topic))
    return made


def finish(made: TopicQueue, topic: Topic, found: Observation, *, more: bool = False) -> None:
    made.began(made.queued(topic), found.at)
    made.done(made.queued(topic), found, more=more, now=found.at)


def counts(**sizes: int) -> dict[str, LoadedTopic]:
    return {
        f"persistent://public/default/{topic}": LoadedTopic(size, HELD)
        for topic, size in sizes.items()
    }


def order(made: TopicQueue, now: float) -> str:
    ready = sorted(made.ready(now), key=lambda queued: queued.rank(now), reverse=True)
    return "".join(queued.topic.name for queued in ready)


@pytest.mark.parametrize(
    ("found", "written", "expected"),
    [
        (seen(), 0, 0.0),
        (seen(sealed=800), 0, 0.5),
        (seen(sealed=800), 400, 0.75),
        (seen(oldest=AT - 900), 0, 0.5),
        (seen(sealed=400, oldest=AT - 900), 0, 0.5),
        (seen(sealed=1200, oldest=AT - 900), 0, 0.75),
    ],
)
def test_the_share_is_the_larger_of_size_and_age(
    found: Observation, written: int, expected: float
) -> None:
    assert share(found.backlog, {name(A): written}, AT, CONFIG) == expected


def test_the_threshold_is_each_partitions_own() -> None:
    first, second = (Partition(A, index).full_name for index in range(2))
    found = backlog_of({first: 800, second: 400})
    assert share(found, {second: 400}, AT, CONFIG) == 0.5


@pytest.mark.parametrize(
    ("found", "written", "after"),
    [
        (seen(), {}, (900, 1800)),  # spread over half of max_age
        (seen(), {name(A): 1599}, (900, 1800)),
        (seen(), {name(A): 1600}, (60, 60)),
        (seen(sealed=1500), {name(A): 99}, (900, 1800)),  # less than a sixteenth is new
        (seen(sealed=1500), {name(A): 100}, (60, 60)),
        (seen(oldest=AT - 1700), {}, (100, 100)),
        (seen(oldest=AT - 1700, brokers_ahead=-50.0), {}, (150, 150)),  # by the brokers' clock
        (seen(oldest=AT - 5000), {}, (60, 60)),
        (seen(release_at=AT + 600), {}, (600, 600)),
        (seen(rollover_at=AT + 70), {}, (70, 70)),
        (seen(sealed=1600), {}, (60, 60)),
        (seen(), None, (UNKNOWN_EVERY, UNKNOWN_EVERY)),
    ],
)
def test_when_a_topic_is_observed_again(
    found: Observation, written: dict[str, int] | None, after: tuple[float, float]
) -> None:
    at = next_turn(A, found, found.backlog, written, CONFIG)
    assert after[0] <= at <= after[1]


def test_observations_of_many_topics_spread_evenly() -> None:
    config = CONFIG.model_copy(update={"max_age": timedelta(days=1)})
    found = seen()
    times = [
        next_turn(Topic("t", "n", f"topic-{n}"), found, found.backlog, {}, config)
        for n in range(3000)
    ]
    assert min(times) >= OBSERVE_EVERY / 2
    assert max(times) <= OBSERVE_EVERY
    tenths = [int((one / OBSERVE_EVERY - 0.5) * 20) for one in times]
    assert all(200 < tenths.count(part) < 400 for part in range(10))


def test_new_topics_first_then_by_share() -> None:
    made = queue_of(A, B, C)
    for topic, size in ((A, 1600), (B, 3200), (C, 1700)):
        finish(made, topic, seen(topic, size), more=True)
    assert order(made, AT) == "bca"
    made.serve({one: [Partition(one, -1)] for one in (A, B, C, D)})
    assert order(made, AT)[0] == "d"


def test_a_request_comes_before_all_others_and_before_a_back_off() -> None:
    made = queue_of(A, B)
    finish(made, B, seen(B, 99_999), more=True)
    made.began(made.queued(A), AT)
    made.failed(made.queued(A), AT)
    assert order(made, AT) == "b"
    made.queued(A).requested = True
    assert order(made, AT) == "ab"


def test_a_failing_topic_waits_longer_each_time_and_others_do_not() -> None:
    made = queue_of(A, B)
    pauses = []
    now = AT
    for _ in range(8):
        made.began(made.queued(A), AT)
        assert made.ready_at(made.queued(A)) == math.inf, "one turn at a time"
        made.failed(made.queued(A), now)
        pauses.append(made.queued(A).retry_at - now)
        assert made.ready_at(made.queued(B)) < now + 3600
    assert pauses == [60, 120, 240, 480, 900, 900, 900, 900]
    finish(made, A, seen(A))
    assert made.queued(A).failures == 0


def test_topics_that_failed_least_often_come_first() -> None:
    made = queue_of(A, B, C)
    for topic, times in ((A, 3), (B, 1), (C, 2)):
        for _ in range(times):
            made.began(made.queued(topic), AT)
            made.failed(made.queued(topic), AT)
    assert order(made, AT + 900) == "bca"
    assert {made.queued(one).kind.workers is Workers.RETRIES for one in (A, B, C)} == {True}


def test_a_retry_that_succeeds_ends_the_pauses_of_two_more() -> None:
    """After an outage each topic is retried soon, however long its pause has grown."""
    topics = [Topic("public", "default", f"t{n}") for n in range(9)]
    made = queue_of(*topics)
    for topic in topics:
        for _ in range(8):
            made.began(made.queued(topic), AT)
            made.failed(made.queued(topic), AT)
    finish(made, topics[0], seen(topics[0], at=AT + 10))
    assert len(order(made, AT + 10)) == 4, "two names"
    finish(made, topics[0], seen(topics[0], at=AT + 11))
    assert len(order(made, AT + 11)) == 4, "a success that is no retry shows nothing"


def test_a_clock_that_is_set_changes_no_pause() -> None:
    """An observation has the host's times; the queue has a clock of its own."""
    for hours in (-9000, -8, 8, 9000):
        made = TopicQueue(CONFIG, jitter=lambda: 1.0)
        made.serve({A: [Partition(A, -1)]})
        made.began(made.queued(A), 50.0)
        at = AT + hours * 3600
        made.done(made.queued(A), seen(at=at, oldest=at - 1700), more=False, now=51.0)
        assert made.ready_at(made.queued(A)) == 150.0
        made.began(made.queued(A), 150.0)
        made.failed(made.queued(A), 150.0)
        assert made.ready_at(made.queued(A)) == 210.0
        made.began(made.queued(A), 210.0)
        made.done(made.queued(A), seen(at=AT, release_at=AT + 300), more=False, now=211.0)
        assert made.ready_at(made.queued(A)) == 510.0


def test_a_new_partition_of_a_failing_topic_gets_its_hold_without_waiting() -> None:
    made = queue_of(A)
    made.serve({A: [Partition(A, 0)]})
    finish(made, A, seen(A))
    queued = made.queued(A)
    for _ in range(5):
        made.began(queued, AT)
        made.failed(queued, AT)
    assert made.ready_at(queued) == AT + 900
    made.serve({A: [Partition(A, 0)]})
    assert made.ready_at(queued) == AT + 900
    made.serve({A: [Partition(A, 0), Partition(A, 1)]})
    assert made.ready_at(queued) <= AT
    # Its turn fails again: it waits as before, and is not asked again and again.
    made.began(queued, AT)
    made.serve({A: [Partition(A, 0), Partition(A, 1)]})
    made.failed(queued, AT)
    made.serve({A: [Partition(A, 0), Partition(A, 1)]})
    assert made.ready_at(queued) == AT + 900


@pytest.mark.parametrize(
    ("times", "interval", "jitter", "expected"),
    [
        (1, 60, 1.0, 60),
        (1, 60, 0.0, 30),
        (3, 1, 1.0, 4),
        (1, 0, 1.0, 1),
        (1000, 60, 1.0, BACK_OFF_MOST),
        (1000, 60, 0.0, BACK_OFF_MOST / 2),
        (5, 7200, 1.0, 7200),
    ],
)
def test_back_off(times: int, interval: float, jitter: float, expected: float) -> None:
    assert back_off(times, interval, jitter) == expected


def test_what_brokers_count_makes_a_topic_ready() -> None:
    made = queue_of(A, B)
    made.count(counts(a=0, b=500))
    made.count(counts(a=0, b=500))
    assert made.queued(B).written == {name(B): 500}, "before the first count: all may be new"
    made.count(counts(a=1700, b=600))
    assert order(made, AT + 60) == "a"
    finish(made, A, seen(A, at=AT + 60))
    assert order(made, AT + 120) == ""
    made.count(counts(a=100))
    made.count(counts(a=100, b=700))
    assert made.queued(A).written == {name(A): 100}, "loaded anew: counted from zero"
    assert made.queued(B).written == {name(B): 700}
    made.count(None)
    assert order(made, AT + UNKNOWN_EVERY) == "b", "without counts, more often"
    made.count(counts(a=1800, b=700))
    assert made.queued(A).written == {name(A): 1800}, "what nobody saw is counted after all"


def test_a_topic_whose_hold_brokers_do_not_show_is_observed_soon() -> None:
    made = queue_of(A)
    made.count({name(A): LoadedTopic(0, frozenset({"other"}))})
    assert order(made, AT + 100) == "", "what brokers say may be older than the observation"
    assert order(made, AT + 121) == "a"


def test_partitions_that_grow_are_observed_at_once() -> None:
    made = queue_of(A)
    made.serve({A: [Partition(A, 0)]})
    assert made.queued(A).observation is None
    finish(made, A, Observation(AT, backlog_of({Partition(A, 0).full_name: 0})))
    made.serve({A: [Partition(A, 0)]})
    assert made.queued(A).observation is not None
    made.serve({A: [Partition(A, 0), Partition(A, 1)]})
    assert order(made, AT) == "a"


def test_topics_that_go_leave_the_queue() -> None:
    made = queue_of(A, B)
    made.began(made.queued(B), AT)
    made.serve({A: []})
    assert {one.topic for one in made} == {A, B}, "its turn is not over"
    made.done(made.queued(B), seen(B), more=True, now=AT)
    assert {one.topic for one in made} == {A}


def test_always_is_after_each_interval() -> None:
    made = queue_of(A, always=True)
    made.count(counts(a=0))
    assert (order(made, AT + 59), order(made, AT + 60)) == ("", "a")


def test_overrides_hold_for_their_topics() -> None:
    changes = OffloadOverride(
        topics="public/default/a", max_age=timedelta(minutes=1), interval=timedelta(seconds=5)
    )
    made = queue_of(A, B, config=CONFIG.model_copy(update={"override": [changes]}))
    assert order(made, AT + 61) == "a"


def test_who_looks_without_a_turn_is_believed() -> None:
    """And the topic's turns come as often as before, however often somebody looks."""
    made = queue_of(A)
    queued = made.queued(A)
    made.count(counts(a=0))
    made.count(counts(a=500))
    first = made.ready_at(queued)
    assert queued.written == {name(A): 500}
    for second in range(1, 60):
        made.looked(A, backlog_of({name(A): 700}, at=AT + second))
    assert queued.backlog is not None
    assert (queued.backlog.sealed, queued.written) == (700, {}), "it is in there by now"
    assert made.ready_at(queued) == first
    made.looked(A, backlog_of({name(A): 100}, at=AT + 5))
    assert queued.backlog.sealed == 700, "what is older changes nothing"
    made.looked(A, backlog_of({name(A): 1600}, at=AT + 61))
    assert made.ready_at(queued) == AT + 60, "it is full, so its turn does not wait for an hour"
    finish(made, A, seen(A, at=AT + 62))
    assert queued.backlog.sealed == 0
    made.looked(B, backlog_of({name(B): 1}, at=AT))
    assert [one.topic for one in made] == [A], "nobody serves it"


def test_a_slow_topic_has_turns_of_its_own_kind_until_it_is_not_slow() -> None:
    queue = TopicQueue(CONFIG)
    queue.serve({A: ()})
    queued = queue.queued(A)
    assert queued.kind == TurnKind(observes=True, workers=Workers.HEALTHY)
    for slow, workers in (
        (None, Workers.HEALTHY),
        (True, Workers.SLOW),
        (None, Workers.SLOW),
        (False, Workers.HEALTHY),
    ):
        queue.began(queued, 0.0)
        queue.done(queued, seen(), more=True, slow=slow, now=0.0)
        assert queued.kind == TurnKind(observes=False, workers=workers)
    queue.done(queued, seen(), more=True, slow=True, now=0.0)
    queue.failed(queued, 0.0)
    assert queued.kind.workers is Workers.SLOW, "it is no retry: it would keep them waiting"
    assert queue.ready_at(queued) > 0.0


def test_a_topic_that_is_slow_among_healthy_ones_alone_comes_back_less_and_less_often() -> None:
    """Each time it may lose minutes of all cores."""
    queue = queue_of(A)
    queued = queue.queued(A)
    tried = []

    def convert(turns: int, *, slow_among_healthy: bool) -> None:
        for number in range(turns):
            healthy = queued.kind.workers is Workers.HEALTHY
            tried.extend([number] if healthy else [])
            slow = healthy and slow_among_healthy
            queue.done(queued, seen(), more=True, slow=slow, now=0.0)

    queue.done(queued, seen(), more=True, now=0.0)
    convert(500, slow_among_healthy=True)
    assert tried == [0, 2, 5, 10, 19, 36, 69, 134, 199, 264, 329, 394, 459]
    convert(100, slow_among_healthy=False)
    assert (queued.slow, queued.relapses) == (False, 0)
