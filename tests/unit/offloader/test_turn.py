"""What a turn makes of a Pulsar that goes away after the commit."""

from __future__ import annotations

from typing import NoReturn

import pytest

from offloader.config import load_config
from offloader.turn.held_topic import HeldTopic
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.errors import UnavailableError
from reader.model import Partition, Position
from reader.pulsar import PartitionLedgers
from reader.pulsar.admin import AdminClient
from tests.unit.web.world import NOWHERE, ORDERS


def test_a_commit_counts_when_pulsar_goes_away_before_its_release() -> None:
    def no_spark() -> NoReturn:
        raise AssertionError("nothing is converted")

    config = load_config({"pulsar": {"admin_url": NOWHERE}, "storage": {"uri": "/nowhere"}})
    said: list[str] = []
    partition, nothing = Partition(ORDERS, -1), Position(-1, -1)
    empty = PartitionLedgers(partition, (), nothing, nothing, False, "", 0, {})
    held = HeldTopic(ORDERS, 0, 0.0, 0.0, {partition: empty}, None, (), ())
    with AdminClient(config.pulsar) as admin:
        offloader = TopicOffloader(
            Clients(config, admin=admin), config.offload, no_spark, say=said.append
        )
        assert offloader.release_at_once(held) is None, "for the next turn"
        with pytest.raises(UnavailableError):
            offloader.release(ORDERS)
    [line] = said
    assert "shop/live/orders: committed, but the hold is not moved yet: no answer" in line
