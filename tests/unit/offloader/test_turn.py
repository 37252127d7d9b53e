"""When a turn moves the hold, and what it makes of a Pulsar that goes away before that."""

from pathlib import Path

import pytest

from offloader.config import load_config
from offloader.turn.held_topic import HeldTopic
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position
from reader.pulsar import TABLE_KEY, PartitionLedgers
from reader.pulsar.admin import AdminClient
from tests.support.conversions import no_jobs
from tests.unit.turns.pulsar_world import HOUR, PLAIN, World
from tests.unit.web.world import NOWHERE, ORDERS


def test_a_commit_counts_when_pulsar_goes_away_before_its_release() -> None:
    config = load_config({"pulsar": {"admin_url": NOWHERE}, "storage": {"uri": "/nowhere"}})
    said: list[str] = []
    partition, nothing = Partition(ORDERS, -1), Position(-1, -1)
    empty = PartitionLedgers(partition, (), nothing, nothing, False, "", 0, {})
    held = HeldTopic(ORDERS, 0, 0.0, 0.0, {partition: empty}, None, (), ())
    with AdminClient(config.pulsar) as admin:
        offloader = TopicOffloader(
            Clients(config, admin=admin), config.offload, no_jobs(), say=said.append
        )
        assert offloader.release_at_once(held) is None, "for the next turn"
        with pytest.raises(UnavailableError):
            offloader.release(ORDERS)
    [line] = said
    assert "shop/live/orders: committed, but the hold is not moved yet: no answer" in line


@pytest.mark.parametrize("hours", [1, 5])
def test_ledgers_stay_for_the_grace(tmp_path: Path, hours: int) -> None:
    """Queries that began before the commit still read them. The commit is a day old at once."""
    with World(tmp_path, grace=f"{24 + hours}h") as world:
        world.seal(PLAIN)
        offloader = world.offloader()
        offloader.turn(world.topic, now=True)
        assert world.table().watermark(world.partition) == 10
        world.now += (hours - 1) * HOUR + HOUR // 2
        offloader.turn(world.topic, now=True)
        assert world.held == Position(10, 0)
        world.now += HOUR
        offloader.turn(world.topic, now=True)
        assert world.held == Position(11, 0)


def test_the_hold_of_another_table_is_not_moved_back(tmp_path: Path) -> None:
    """Its messages may be in that table."""
    with World(tmp_path) as world:
        world.seal(PLAIN)
        offloader = world.offloader()
        offloader.observe(world.topic)
        hold = world.config.offload.subscription
        world.ml.cursors[hold] = (11, 0)
        world.ml.properties[hold] = {TABLE_KEY: "s3://elsewhere/orders"}
        with pytest.raises(ConfigurationError, match="is moved for the table at s3://elsewhere"):
            offloader.observe(world.topic)
        assert world.moves == []


def test_a_failure_is_called_another_offloaders_work_only_if_there_is_such_work(
    tmp_path: Path,
) -> None:
    with World(tmp_path) as world:
        world.seal(PLAIN)
        offloader = world.offloader()
        offloader.turn(world.topic, now=True)
        world.silent.add(world.seal(PLAIN) - 1)
        with pytest.raises(UnavailableError):
            offloader.turn(world.topic, now=True)
        assert not any("planning again" in text for text in world.said)


def test_a_hold_that_was_moved_ahead_is_moved_back(tmp_path: Path) -> None:
    """By a TTL, or by hand: Pulsar still has ledger 10, and no table has it."""
    with World(tmp_path) as world:
        world.seal(PLAIN)
        offloader = world.offloader()
        offloader.observe(world.topic)
        world.ml.cursors[world.config.offload.subscription] = (11, 0)
        offloader.observe(world.topic)
        assert world.held == world.moves[0] == Position(10, 0)
        assert any("moved back to 10:0" in text for text in world.said)
        offloader.turn(world.topic, now=True)
        assert world.held == Position(11, 0)
