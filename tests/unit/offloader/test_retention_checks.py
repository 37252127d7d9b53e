"""Settings of Pulsar that would delete what is not offloaded: how often, told once, refused."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from offloader.config import OffloadConfig
from offloader.subscription.retention_checks import RetentionChecks, unsafe_settings
from reader.errors import ConfigurationError
from reader.model import Topic

ORDERS = Topic("shop", "live", "orders")
HOUR = 3600.0


class Policies:
    """What Pulsar says of a topic; ``asked`` counts how often."""

    def __init__(self, ttl: int | None = None, expiry: int | None = None, **quotas: Any) -> None:
        self.ttl = ttl
        self.expiry = expiry
        self.quotas: Mapping[str, Mapping[str, Any]] = quotas
        self.asked = 0

    def message_ttl(self, topic: Topic) -> int | None:
        self.asked += 1
        return self.ttl

    def subscription_expiry(self, topic: Topic) -> int | None:
        return self.expiry

    def backlog_quotas(self, topic: Topic) -> Mapping[str, Mapping[str, Any]]:
        return self.quotas


class Refusing(Policies):
    """A role that may not ask."""

    def message_ttl(self, topic: Topic) -> int | None:
        raise ConfigurationError("this role may not")


class World:
    def __init__(self, policies: Policies, what: Literal["warn", "refuse"] = "warn") -> None:
        self.now = 1.0
        self.said: list[str] = []
        self.checks = RetentionChecks(
            policies,
            OffloadConfig(unsafe_retention=what),
            elapsed=lambda: self.now,
            say=self.said.append,
        )


@pytest.mark.parametrize(
    ("policies", "says"),
    [
        (Policies(), []),
        (Policies(ttl=0, expiry=0), []),
        (Policies(ttl=60), ["message TTL 60 s"]),
        (Policies(expiry=5), ["subscription expiry 5 min"]),
        (
            Policies(destination_storage={"limitSize": 9, "policy": "consumer_backlog_eviction"}),
            ["Pulsar deletes what is not offloaded"],
        ),
        (
            Policies(message_age={"limitTime": 9, "policy": "producer_exception"}),
            ["producers are stopped"],
        ),
        (Policies(destination_storage={"limitSize": -1, "policy": "producer_exception"}), []),
        (Refusing(), ["cannot check for a TTL"]),
    ],
)
def test_what_is_unsafe(policies: Policies, says: list[str]) -> None:
    found = unsafe_settings(policies, ORDERS)
    assert len(found) == len(says)
    assert all(part in text for part, text in zip(says, found, strict=True))


def test_pulsar_is_asked_once_an_hour_and_operators_are_told_once() -> None:
    policies = Policies(ttl=60)
    world = World(policies)
    for _ in range(3):
        assert len(world.checks.check(ORDERS)) == 1
    assert (policies.asked, len(world.said)) == (1, 1)
    assert "shop/live/orders: unsafe retention: message TTL 60 s" in world.said[0]
    world.now += HOUR
    assert len(world.checks.check(ORDERS)) == 1
    assert (policies.asked, len(world.said)) == (2, 1), "nothing new"
    policies.ttl, policies.expiry = None, 5
    world.now += HOUR
    [text] = world.checks.check(ORDERS)
    assert "subscription expiry" in text
    assert len(world.said) == 2


def test_a_topic_is_refused_until_its_settings_are_safe() -> None:
    policies = Policies(ttl=60)
    world = World(policies, "refuse")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="not offloaded: message TTL 60 s"):
            world.checks.check(ORDERS)
    policies.ttl = None
    world.now += HOUR
    assert world.checks.check(ORDERS) == ()
