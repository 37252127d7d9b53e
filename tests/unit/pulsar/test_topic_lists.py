"""Which of the names that Pulsar lists are topics, and what kinds of topics these are."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from reader.config import PulsarConfig
from reader.errors import ConfigurationError
from reader.model import Topic
from reader.pulsar.admin import AdminClient
from testbed.serving import Asked, HttpAnswer
from testbed.serving import answering as http_answering

TOPIC = Topic("public", "default", "orders")


@contextmanager
def answering(answers: Mapping[str, Any]) -> Iterator[AdminClient]:
    """A client of a server with these answers, by the paths below ``/admin/v2``; else 404."""

    def answer(asked: Asked) -> HttpAnswer:
        found = answers.get(asked.path.removeprefix("/admin/v2/"))
        return 404 if found is None else 200, found, {}

    with http_answering(answer) as url, AdminClient(PulsarConfig(admin_url=url)) as admin:
        yield admin


def listed(partitioned: list[str], names: list[str]) -> list[str]:
    answers = {
        "persistent/public/default/partitioned": partitioned,
        "persistent/public/default": names,
    }
    with answering(answers) as admin:
        return [one.name for one in admin.topics("public", "default")]


def test_names_that_begin_with_two_underscores_are_topics() -> None:
    names = ["__amqp_exchange__orders", "__consumer_offsets", "_one", "orders"]
    full = [f"persistent://public/default/{name}" for name in names]
    assert listed(full[:1], [f"{full[0]}-partition-0", *full[1:]]) == names


def test_pulsars_own_are_left_out() -> None:
    own = [
        "__change_events",
        "__change_events-partition-0",
        "__transaction_buffer_snapshot",
        "__transaction_buffer_snapshot_segments",
        "__transaction_buffer_snapshot_indexes",
        "orders-app__transaction_pending_ack",
    ]
    full = [f"persistent://public/default/{name}" for name in own]
    assert listed([full[0]], [*full, "persistent://public/default/orders"]) == ["orders"]


def test_names_of_other_kinds_hide_no_topics() -> None:
    names = [
        "topic://public/default/scalable",
        "segment://public/default/scalable/0000-ffff-0",
        "non-persistent://public/default/memory",
        "orders",
        "persistent://public/default/..",
        "persistent://public/default/orders",
    ]
    assert listed(names[:4], names) == ["orders"]


def test_counts_of_other_kinds_hide_none() -> None:
    one = {"bytesInCount": 7, "subscriptions": {"s": {}}}
    counted = {"persistent://public/default/orders": one, "segment://public/default/x/0-1-2": one}
    stats = {"public/default": {"0x0_0xf": {"persistent": counted}}}
    with answering({"broker-stats/topics": stats}) as admin:
        assert list(admin.loaded([])) == ["persistent://public/default/orders"]


@pytest.mark.parametrize(
    ("properties", "source"),
    [
        (None, None),  # of a Pulsar that has none
        ("", None),  # no content
        ({}, None),
        ({"index": "4"}, None),
        ({"PULSAR.SHADOW_SOURCE": "persistent://a/b/c"}, "persistent://a/b/c"),
    ],
)
def test_a_shadow_topic_has_its_source(properties: Any, source: str | None) -> None:
    with answering({"persistent/public/default/orders/properties": properties}) as admin:
        assert admin.shadow_source(TOPIC) == source


@pytest.mark.parametrize(
    ("segments", "migrated"),
    [
        (None, False),
        ({}, False),
        ({"0": {"segmentId": 0, "legacy": False}}, False),  # another topic of that name
        ({"0": {"segmentId": 0, "legacy": True}, "1": {"segmentId": 1}}, True),
    ],
)
def test_a_migrated_topic_has_legacy_segments(segments: Any, migrated: bool) -> None:
    layout = None if segments is None else {"epoch": 1, "segments": segments}
    with answering({"scalable/public/default/orders": layout}) as admin:
        assert admin.is_migrated(TOPIC) is migrated


@pytest.mark.parametrize("name", ["topic://a/b/c", "segment://a/b/c/0000-ffff-0"])
def test_scalable_topics_are_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="scalable topic of Pulsar 5, which this version"):
        Topic.parse(name)
