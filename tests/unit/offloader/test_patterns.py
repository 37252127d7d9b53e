"""Patterns of topics and names: which match; overrides: which win, which are refused."""

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from offloader.config import OffloadConfig, load_config
from offloader.model.observation import Observation
from offloader.model.patterns import is_enabled, matches, settings_of
from offloader.schedule.discovery import Lookup, by_failure, find_topics, parse_names
from offloader.schedule.queue import TopicQueue
from reader.errors import ConfigurationError, NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Partition, Topic
from reader.pulsar import TopicRequests
from tests.support.backlogs import backlog_of

ORDERS = Topic("shop", "live", "orders")


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("shop/live/orders", "shop/live/orders", True),
        ("shop/live/*", "shop/live/orders", True),
        ("shop/*/*", "shop/live/orders", True),
        ("*/*/order?", "shop/live/orders", True),
        ("persistent://shop/*/*", "shop/live/orders", True),
        ("shop/l*e/o*s", "shop/live/orders", True),
        ("s*/orders", "shop/live/orders", False),
        ("shop/live/*", "shop/live/a/b", True),
        ("shop/live/order", "shop/live/orders", False),
        ("shop/live/o.ders", "shop/live/orders", False),
        ("shop/live/[o]rders", "shop/live/orders", False),
        ("*", "orders", True),
    ],
)
def test_matches(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


def config(*overrides: dict[str, Any]) -> OffloadConfig:
    return load_config({"offload": {"override": list(overrides)}}).offload


def test_the_last_match_wins_key_by_key() -> None:
    found = settings_of(
        config(
            {"topics": "shop/*/*", "threshold_bytes": "5MiB", "max_age": "5m"},
            {"topics": "shop/live/*", "max_age": "1m"},
            {"topics": "other/*/*", "max_age": "9m"},
        ),
        ORDERS,
    )
    assert (found.threshold_bytes, found.max_age) == (5 << 20, timedelta(minutes=1))
    assert found.interval == timedelta(minutes=1), "the default"


def test_topics_are_switched_off_and_on() -> None:
    settings = config(
        {"topics": "shop/*/*", "enabled": False},
        {"topics": "shop/live/orders", "enabled": True},
        {"topics": "shop/live/*", "max_age": "1m"},
    )
    assert is_enabled(settings, ORDERS)
    assert not is_enabled(settings, Topic("shop", "live", "bills"))
    assert is_enabled(settings, Topic("other", "live", "bills"))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ({"topics": "a/b/*", "treshold_bytes": 1}, "did you mean threshold_bytes"),
        ({"topics": "a/b/*", "source": "broker"}, "unknown key offload.override.0.source"),
        ({"max_age": "1h"}, "offload.override.0.topics"),
        ({"topics": "orders"}, "write tenant/namespace/name"),
        ({"topics": "non-persistent://a/b/c"}, "write tenant/namespace/name"),
        ({"topics": "a/b/*", "max_age": "soon"}, "offload.override.0.max_age"),
    ],
)
def test_what_is_wrong_is_named(override: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        config(override)
    assert says in str(caught.value)


def test_overrides_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lake.toml"
    path.write_text(
        '[[offload.override]]\ntopics = "shop/*/*"\nenabled = false\n'
        '[[offload.override]]\ntopics = "shop/live/*"\nrollover_after = "2h"\n'
    )
    found = settings_of(load_config(path).offload, ORDERS)
    assert found.rollover_after == timedelta(hours=2)


class Lists:
    """What Pulsar lists; ``asked``: for what."""

    def __init__(self, *counts: int | PulsarLakeError) -> None:
        self.counts = iter(counts)
        self.asked: list[str] = []

    def listed(self, tenant: str, namespace: str) -> dict[Topic, tuple[Partition, ...]]:
        return {ORDERS: ()}

    def partition_count(self, topic: Topic) -> int:
        self.asked.append(topic.name)
        found = next(self.counts)
        if isinstance(found, PulsarLakeError):
            raise found
        return found


def lookup(lists: Lists, *names: str) -> list[int]:
    """How many partitions each topic of a round has."""
    found = Lookup(cast(TopicRequests, lists))
    return [len(found.find(one)[one]) for one in parse_names(names)]


def test_partitions_of_a_topic_that_is_named_are_asked_for_by_its_name() -> None:
    assert lookup(Lists(3), "shop/live/orders") == [3]
    assert lookup(Lists(0), "shop/live/orders") == [0], "its turn will tell"
    for error in (NotFoundError("no such topic"), ConfigurationError("no permission")):
        lists = Lists(error, 2)
        assert lookup(lists, "shop/live/orders", "shop/live/bills") == [0, 2]


class Rounds:
    """Rounds of lookups by name, of servers that fail after some seconds."""

    def __init__(self, **seconds: float | None) -> None:
        self.seconds = seconds
        self.now = 0.0
        self.failed_at: dict[Topic, float] = {}

    def partition_count(self, topic: Topic) -> int:
        seconds = self.seconds[topic.name]
        if seconds is None:
            return 5
        self.now += seconds
        raise UnavailableError("no answer")

    def found(self) -> dict[str, int]:
        """How many partitions a round finds, by name in the order of the questions."""
        admin = cast(TopicRequests, self)
        lookup = Lookup(admin, failed_at=self.failed_at, clock=lambda: self.now)
        names = by_failure(parse_names([f"a/b/{name}" for name in self.seconds]), self.failed_at)
        return {name.name: len(lookup.find(name)[name]) for name in names}


def test_a_server_that_fails_at_once_hides_no_other_topic() -> None:
    assert Rounds(x=0.1, y=None, z=0.1).found() == {"x": 0, "y": 5, "z": 0}


def test_a_silent_server_is_waited_for_once_a_round_and_hides_others_for_one() -> None:
    rounds = Rounds(x=30, y=30, z=None)
    assert rounds.found() == {"x": 0, "y": 0, "z": 0}
    assert rounds.now == 30
    assert list(rounds.found().items()) == [("y", 0), ("z", 0), ("x", 0)]
    assert list(rounds.found().items()) == [("z", 5), ("x", 0), ("y", 0)]
    rounds.seconds["y"] = None
    assert list(rounds.found().items()) == [("z", 5), ("y", 5), ("x", 0)]
    assert list(rounds.found().items()) == [("y", 5), ("z", 5), ("x", 0)]
    rounds.seconds["x"] = None
    assert rounds.found() == {"y": 5, "z": 5, "x": 5}
    assert not rounds.failed_at


def test_a_partition_added_to_a_named_topic_is_observed_in_the_next_round() -> None:
    queue = TopicQueue(OffloadConfig(), jitter=lambda: 0.5)
    found = Lookup(cast(TopicRequests, Lists(2)))
    queue.serve(found.find(ORDERS))
    queued = queue.queued(ORDERS)
    queue.began(queued, 0.0)
    names = [Partition(ORDERS, index).full_name for index in range(3)]
    seen = Observation(1000.0, backlog_of(dict.fromkeys(names[:2], 0)))
    queue.done(queued, seen, more=False, now=0.0)
    assert queue.ready_at(queued) > 1
    queue.serve(Lookup(cast(TopicRequests, Lists(2))).find(ORDERS))
    assert queue.ready_at(queued) > 1
    queue.serve(Lookup(cast(TopicRequests, Lists(3))).find(ORDERS))
    assert queue.ready_at(queued) == 0.0


def test_a_pattern_that_matches_nothing_is_named() -> None:
    lines: list[str] = []
    lists = cast(TopicRequests, Lists())
    names = ["shop/live/*", "shop/live/x*"]
    assert find_topics(lists, names, on_unmatched=lines.append) == [ORDERS]
    assert lines == ["pattern shop/live/x* matches no topic"]
