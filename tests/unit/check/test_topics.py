"""What ``check`` says of the topics that the settings name."""

from types import SimpleNamespace
from typing import Any

import pytest

from offloader.check.topic_check import check_topics, find
from offloader.config import OffloadConfig
from reader.model import Partition, Topic

TOPIC = Topic("shop", "live", "orders")


def admin(source: str | None = None, migrated: bool = False) -> Any:
    return SimpleNamespace(
        http=SimpleNamespace(url="http://pulsar"),
        listed=lambda tenant, namespace: {TOPIC: (Partition(TOPIC, -1),)},
        shadow_source=lambda topic: source,
        is_migrated=lambda topic: migrated,
        message_ttl=lambda topic: None,
        subscription_expiry=lambda topic: None,
        backlog_quotas=lambda topic: {},
    )


@pytest.mark.parametrize(
    ("topics", "pulsar", "state", "text"),
    [
        (["shop/live/*"], admin(), "ok", "1 topic: shop/live/orders; nothing there deletes"),
        (["shop/live/*", "shop/live/x*"], admin(), "warning", "shop/live/x* matches no topic"),
        (["shop/live/x*"], admin(), "warning", "matches no topic"),
        (["shop/live/*"], admin("persistent://a/b/c"), "warning", "is a shadow of a/b/c"),
        (["shop/live/*"], admin(migrated=True), "warning", "was migrated to a scalable topic"),
    ],
)
def test_findings(topics: list[str], pulsar: Any, state: str, text: str) -> None:
    offload = OffloadConfig(topics=topics)
    found = find(pulsar, offload, lambda _: None)
    finding = check_topics(pulsar, offload, found, lambda _: None)
    assert finding.state == state
    assert text in finding.text
