"""The page of a topic of which Pulsar's own tiered storage has ledgers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offloader.service.status import topic_status
from offloader.web.topic_detail import TopicDetail
from reader.model.reasons import Reason, TierReason
from tests.unit.turns.pulsar_world import PLAIN, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A ledger in tiered storage, one on the bookies, and the open one."""
    with World(tmp_path) as found:
        found.offloader().observe(found.topic)
        found.seal(PLAIN, PLAIN)
        found.seal(PLAIN)
        found.write(PLAIN)
        found.move(10)
        yield found


def detail(world: World) -> TopicDetail:
    return TopicDetail(world.clients, "pulsar-lake", dict, lambda topic, found: None)


def shown(world: World) -> list[tuple[int, str, str, str]]:
    segments = detail(world).segments(world.topic)["segments"]
    return [(one["first"], one["state"], one["tier"], one["reason"]) for one in segments]


def test_a_segment_shows_its_tier(world: World) -> None:
    assert shown(world) == [
        (10, "sealed", "tiered", str(TierReason(Reason.PULSAR_TIERED))),
        (11, "sealed", "bookkeeper", str(TierReason(Reason.SEALED))),
        (12, "open", "bookkeeper", str(TierReason(Reason.OPEN))),
    ]


def test_and_so_do_the_table_and_the_commit_that_moved_it(world: World) -> None:
    world.offloader().turn(world.topic, now=True)
    in_table = TierReason(Reason.IN_TABLE, "{}")
    assert shown(world)[:2] == [
        (10, "offloaded", "parquet", str(in_table).format("tiered")),
        (11, "offloaded", "parquet", str(in_table).format("bookkeeper")),
    ]
    [commit] = detail(world).commits(world.topic)
    assert commit["read_from"] == ["bookkeeper", "tiered"]
    assert (commit["ledgers"], commit["rows"]) == (2, 3)


def test_without_a_place_it_is_the_brokers_and_the_status_says_what_to_do(world: World) -> None:
    """Its lag counts as any other's, and is shown to be there."""
    found = topic_status(world.clients, "pulsar-lake", world.topic, clock_ms=world.now, failures={})
    assert (found.lag_ledgers, found.errors) == (2, ())
    assert [(one.lag_ledgers, one.lag_tiered) for one in found.partitions] == [(2, 1)]
    world.config.tiered.clear()
    assert shown(world)[0] == (10, "sealed", "broker", str(TierReason(Reason.PULSAR_OFFLOADED)))
