"""Rows that were offloaded as committed and that Pulsar calls aborted afterwards."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from offloader.maintenance import aborted_since
from offloader.maintenance.table_maintainer import TableMaintainer
from reader.model import Position
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import HOUR, PLAIN, START, World

COMMIT = 21
ALL = (1, 2, 3)
"""The transactions."""


def of(transaction: int, **values: Any) -> bytes:
    """An entry of a transaction."""
    values |= {"txnid_most_bits": 0, "txnid_least_bits": transaction}
    return entry(b"row", publish_time=START, **values)


def decide(world: World, aborted: Iterable[int] = (), counted: int | None = None) -> None:
    """All transactions are over; ``counted``: how many are aborted, as the broker states it."""
    world.state.transactions = True
    world.ml.aborted = set(aborted)
    world.ml.counted_aborted = counted


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as found:
        found.offloader().observe(found.topic)
        yield found


@pytest.fixture
def offloaded(world: World) -> World:
    """Three rows of transaction 1, and its commit; two of transaction 2; a plain one."""
    decide(world)
    world.seal(of(1), of(1), PLAIN, of(2), of(1), of(1, marker_type=COMMIT), of(2))
    world.offloader().turn(world.topic, now=True)
    assert len(world.cold()) == 6
    return world


def maintainer(world: World) -> TableMaintainer:
    return TableMaintainer(
        world.clients.storage, world.config.offload, pulsar=world.clients, say=world.said.append
    )


@pytest.mark.parametrize("counts", [True, False])
def test_they_are_told_of_once_and_stay(offloaded: World, counts: bool) -> None:
    """``counts``: whether the broker says how many are aborted; Pulsar 2 does not."""
    decide(offloaded, ALL, None if counts else -1)
    before = offloaded.cold()
    one = maintainer(offloaded)
    result = one.maintain(offloaded.topic)
    assert (result.aborted_rows, result.aborted_transactions) == (5, 2)
    assert result.aborted_at == (offloaded.partition, Position(10, 0))
    assert not result.idle
    assert "5 rows of 2 transactions, from 10:0 of" in str(result)
    again = one.maintain(offloaded.topic)
    assert again.idle
    assert "aborted" not in str(again)
    assert maintainer(offloaded).maintain(offloaded.topic, dry_run=True).aborted_rows == 5
    assert offloaded.cold() == before


def test_committed_ones_are_not(offloaded: World) -> None:
    decide(offloaded, counted=1)
    assert maintainer(offloaded).maintain(offloaded.topic).idle


def test_nothing_is_read_where_the_broker_knows_of_no_aborted_one(offloaded: World) -> None:
    offloaded.read.clear()
    for offloaded.state.transactions in (True, False):
        assert maintainer(offloaded).maintain(offloaded.topic).idle
    assert not offloaded.read


def test_those_that_were_left_out_are_not(world: World) -> None:
    decide(world, ALL)
    world.seal(of(1), PLAIN)
    world.offloader().turn(world.topic, now=True)
    assert len(world.cold()) == 1
    assert maintainer(world).maintain(world.topic).idle


def test_what_pulsar_has_deleted_is_not_looked_at(offloaded: World) -> None:
    decide(offloaded, ALL)
    offloaded.delete(10)
    assert maintainer(offloaded).maintain(offloaded.topic).idle


def test_nor_a_topic_that_pulsar_has_deleted(
    offloaded: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        offloaded.rest, "answer", lambda *request: (404, {"reason": "Topic not found"})
    )
    offloaded.said.clear()
    assert maintainer(offloaded).maintain(offloaded.topic).idle
    assert not offloaded.said


def test_nor_a_topic_that_was_made_again(offloaded: World) -> None:
    decide(offloaded, ALL)
    offloaded.ml.created = "2026-02-02T00:00:00Z"
    assert maintainer(offloaded).maintain(offloaded.topic).idle


def test_only_the_last_ledgers_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aborted_since, "LOOKED_AT_BYTES", 3 * len(of(1)))
    decide(world)
    for count in 4, 1, 2:
        world.seal(*[of(1)] * count)
    world.offloader().turn(world.topic, now=True)
    assert len(world.cold()) == 7
    decide(world, ALL)
    world.read.clear()
    result = maintainer(world).maintain(world.topic)
    assert (result.aborted_rows, result.aborted_at) == (3, (world.partition, Position(11, 0)))
    assert set(world.read) == {11, 12}


def test_what_pulsar_has_offloaded_is_read_from_its_objects(offloaded: World) -> None:
    offloaded.move(10)
    decide(offloaded, ALL)
    offloaded.read.clear()
    result = maintainer(offloaded).maintain(offloaded.topic)
    assert (result.aborted_rows, result.aborted_transactions) == (5, 2)
    assert result.aborted_at == (offloaded.partition, Position(10, 0))
    assert not offloaded.read, "no bookie is asked"


def test_what_pulsar_has_put_elsewhere_is_passed_over(offloaded: World) -> None:
    """No place is named for it; what else there is, is looked at."""
    offloaded.seal(of(3))
    decide(offloaded)
    offloaded.offloader().turn(offloaded.topic, now=True)
    offloaded.move(10)
    offloaded.config.tiered.clear()
    decide(offloaded, ALL)
    offloaded.said.clear()
    result = maintainer(offloaded).maintain(offloaded.topic)
    assert (result.aborted_rows, result.aborted_at) == (1, (offloaded.partition, Position(11, 0)))
    assert not offloaded.said


def test_a_table_is_maintained_without_pulsar(offloaded: World) -> None:
    offloaded.ml.recovering_ms = offloaded.now + HOUR
    offloaded.admin.sleep = lambda seconds: None
    moments = iter(range(0, 10_000, 4))
    offloaded.admin.clock = lambda: float(next(moments))
    offloaded.said.clear()
    assert maintainer(offloaded).maintain(offloaded.topic).idle
    (said,) = offloaded.said
    assert "not compared with Pulsar's aborted transactions" in said
    assert "still recovering" in said


def test_not_where_entries_come_through_the_broker(offloaded: World) -> None:
    decide(offloaded, ALL)
    config = offloaded.config.offload.model_copy(update={"source": "broker"})
    one = TableMaintainer(offloaded.clients.storage, config, pulsar=offloaded.clients)
    assert one.maintain(offloaded.topic).idle
