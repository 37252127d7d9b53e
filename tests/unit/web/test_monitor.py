"""What the offloader remembers of itself: throughput, failures, and how much of it."""

import pytest

from offloader.model.observation import Discovery, Observation
from offloader.model.turn import Turn
from offloader.service.monitor import WINDOW, Monitor, Rate
from offloader.web.health import not_ready
from offloader.web.overview import commit_row
from reader.errors import UnavailableError
from reader.model import Partition, Topic
from reader.pulsar.topics import LoadedTopic
from reader.table import LoggedCommit, OffloadedLedger, encode_ledgers
from tests.support.backlogs import backlog_of
from tests.unit.web.world import BILLS, DONE, ORDERS


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def discovery(*topics: Topic, **counts: int) -> Discovery:
    names = {Partition(ORDERS, int(name[1:])).full_name: n for name, n in counts.items()}
    loaded = {name: LoadedTopic(n, frozenset()) for name, n in names.items()}
    return Discovery(dict.fromkeys(topics or (ORDERS, BILLS), ()), loaded)


def committed(topic: Topic) -> Turn:
    return Turn(topic, DONE, (), False, Observation(0.0, backlog_of()))


def test_a_clock_that_is_set_back_changes_no_rate_and_no_round() -> None:
    clock, elapsed = Clock(), Clock()
    monitor = Monitor(clock, elapsed)
    elapsed.now += 100
    monitor.discovered(discovery(p0=1), "")
    monitor.ended(ORDERS, committed(ORDERS))
    clock.now -= 8 * 3600
    elapsed.now += 100
    assert monitor.activity(ORDERS).rows == pytest.approx(DONE.rows / 200)
    assert monitor.round is not None
    assert not_ready(elapsed.now, monitor.round, 60.0, None, stopping=False) is None
    elapsed.now += 400
    late = not_ready(elapsed.now, monitor.round, 60.0, None, stopping=False)
    assert late == "Pulsar last answered 500 s ago"


def test_a_rate_forgets() -> None:
    rate = Rate()
    start = 1_000_000.0
    rate.add(600, start)
    assert rate.per_second(start, start) == 10, "at least a minute"
    assert rate.per_second(start + 600, start) == 1
    rate.add(600, start + 1800)
    assert rate.per_second(start + 3000, start) == pytest.approx(1200 / 3000)
    assert rate.per_second(start + 3000 + 1800, start) == pytest.approx(600 / WINDOW)
    assert rate.per_second(start + 3 * WINDOW, start) == 0.0
    for second in range(100_000):
        rate.add(1, start + second)
    assert rate.buckets <= 61
    assert rate.per_second(start + 100_000, start) == pytest.approx(1, rel=0.05)


def test_what_brokers_count_becomes_a_rate() -> None:
    clock = Clock()
    monitor = Monitor(clock, clock)
    monitor.discovered(discovery(p0=5000, p1=100), "")
    assert ORDERS not in monitor.activities(), "what was before is not known"
    clock.now += 100
    monitor.discovered(discovery(p0=5600, p1=700), "")
    assert monitor.activities()[ORDERS].published == pytest.approx(1200 / 100)
    clock.now += 100
    monitor.discovered(discovery(p0=300), "")
    assert monitor.activities()[ORDERS].published == pytest.approx(1500 / 200), (
        "it began anew at zero"
    )
    monitor.discovered(Discovery({ORDERS: ()}, None), "")
    assert monitor.activities()[ORDERS].published is None


def test_counts_are_kept_of_what_is_loaded_now() -> None:
    monitor = Monitor(Clock())
    for number in range(50):
        name = Partition(Topic("shop", "live", f"passing-{number}"), -1).full_name
        monitor.discovered(Discovery({ORDERS: ()}, {name: LoadedTopic(9, frozenset())}), "")
        assert monitor.counted == {name}
    assert monitor.activities() == {}, "none of these is served"
    monitor.discovered(Discovery({ORDERS: ()}, None), "")
    assert monitor.counted is None


def test_a_topic_that_only_looks_like_a_partition() -> None:
    odd = Topic("shop", "live", "x-partition-3")
    monitor = Monitor(Clock())
    for count in (0, 60):
        loaded = {odd.full_name: LoadedTopic(count, frozenset())}
        monitor.discovered(Discovery({odd: ()}, loaded), "")
    assert monitor.activities()[odd].published == 1.0


def test_failures_in_a_row_and_their_end() -> None:
    clock = Clock()
    monitor = Monitor(clock, clock)
    for times in (1, 2):
        monitor.failed(ORDERS, UnavailableError("no"), "no", clock.now + 9)
        error = monitor.activities()[ORDERS].error
        assert error is not None
        assert (error.times, error.kind) == (times, "UnavailableError")
    monitor.failed("finding a/b/*", UnavailableError("gone"), "gone")
    assert [one.what for one in monitor.errors()][:2] == ["finding a/b/*", "shop/live/orders"]
    assert [one.times for one in monitor.errors(ORDERS)] == [2, 1]
    monitor.ended(ORDERS, committed(ORDERS))
    activity = monitor.activities()[ORDERS]
    assert activity.error is None
    assert activity.commit is not None
    assert activity.commit.done == DONE
    assert len(monitor.errors()) == 3, "what has been is still told"


def test_it_remembers_a_bounded_number() -> None:
    monitor = Monitor(Clock())
    for _ in range(500):
        monitor.ended(ORDERS, committed(ORDERS))
        monitor.failed(BILLS, UnavailableError("no"), "no")
    assert len(monitor.commits()) == len(monitor.errors()) == 200
    assert monitor.commits(BILLS) == []
    monitor.discovered(discovery(BILLS), "Pulsar is away")
    assert monitor.activities().keys() == {BILLS}, "a topic that is gone is forgotten"
    assert monitor.round is not None
    assert monitor.round.unanswered == "Pulsar is away"


def test_anothers_commit_is_among_the_recent_ones() -> None:
    clock = Clock()
    monitor = Monitor(clock, clock)
    ledger = OffloadedLedger(partition=0, ledger=7, entries=5, rows=50, bytes=500, tier="broker")

    def logged(version: int, *ledgers: OffloadedLedger) -> LoggedCommit:
        text = encode_ledgers(ledgers) if ledgers else ""
        at_ms = int(clock.now * 1000)
        return LoggedCommit(version, at_ms, "WRITE", "", "id", text, (), removes=False, info={})

    monitor.noticed(ORDERS, logged(1))
    assert monitor.commits() == [], "it added no ledger"
    monitor.noticed(ORDERS, logged(2, ledger))
    [found] = monitor.commits()
    assert commit_row(found) == {
        "topic": "shop/live/orders",
        "at": clock.now,
        "version": 2,
        "ledgers": 1,
        "rows": 50,
        "stored": 500,
        "reason": "by another process",
    }
    assert monitor.activity(ORDERS).commit == found
    assert monitor.activity(ORDERS).rows == 0, "this process has not done it"
    # An own one, that was noticed before its turn was over, and after it.
    monitor.noticed(ORDERS, logged(DONE.version, ledger))
    monitor.ended(ORDERS, committed(ORDERS))
    monitor.noticed(ORDERS, logged(DONE.version, ledger))
    assert [one.done for one in monitor.commits()] == [DONE, found.done]
    assert monitor.activity(BILLS).commit is None
