"""Turns and queries while a broker recovers a topic's transactions."""

from pathlib import Path

import pytest

from offloader.service.status import topic_status
from reader.errors import UnavailableError
from reader.model import Partition
from reader.plan.snapshot import take_snapshot
from tests.unit.turns.small_pulsar import HOLD, NOW_MS, TOPIC, SmallPartition, SmallPulsar

NEVER = 1 << 50


def two_partitions() -> tuple[SmallPartition, SmallPartition]:
    """Each with a sealed ledger; of the second one the transactions are being recovered."""
    one, other = (SmallPartition(Partition(TOPIC, n), first=10 * n + 1) for n in range(2))
    for part in (one, other):
        first = max(part.ledgers)
        part.ml.cursors = {HOLD: (first, 0), "reader": (first, 0)}
        part.write(f"{first}a", f"{first}b")
        part.roll(first + 1)
    other.ml.recovering_ms = NEVER
    return one, other


def test_a_query_says_which_partition_is_recovering(tmp_path: Path) -> None:
    one, other = two_partitions()
    pulsar = SmallPulsar(one, other)
    pulsar.state.transactions = True
    config = pulsar.config(tmp_path)
    for tiers in (None, "bookkeeper", "broker"):
        with pytest.raises(UnavailableError, match="orders-partition-1: its broker is still"):
            pulsar.query(config, tiers)
    with pulsar.clients(config) as clients:  # segments are shown all the same
        shown = take_snapshot(clients, TOPIC, checked=False)
    assert [(one.partition.index, one.ledger_id) for one in shown.hot] == [(0, 1)]
    assert [one.waiting for one in shown.unreadable if one.partition.index == 1] == [2, 0]
    other.ml.recovering_ms = 0
    assert sorted(pulsar.query(config)) == ["11a", "11b", "1a", "1b"]


def test_a_recovering_partition_is_not_due_and_the_others_are(tmp_path: Path) -> None:
    one, other = two_partitions()
    pulsar = SmallPulsar(one, other)
    pulsar.state.transactions = True
    with pulsar.offloader(pulsar.config(tmp_path)) as offloader:
        # An observation cannot fail for it, or the others would never get a turn.
        assert offloader.observe(TOPIC).more
        turn = offloader.turn(TOPIC, now=True)
        assert turn.committed is not None
        assert (turn.committed.ledgers, turn.more) == (1, True)
        # What was asked for is not in the table: whoever waits for that is told.
        with pytest.raises(UnavailableError, match="orders-partition-1: its broker is still"):
            offloader.turn(TOPIC, now=True)
        other.ml.recovering_ms = 0
        turn = offloader.turn(TOPIC, now=True)
        assert turn.committed is not None
        assert (turn.committed.rows, turn.more) == (2, False)


def test_a_lag_that_is_not_known_is_an_error_of_the_status(tmp_path: Path) -> None:
    pulsar = SmallPulsar(*two_partitions())
    pulsar.state.transactions = True
    with pulsar.clients(pulsar.config(tmp_path)) as clients:
        found = topic_status(clients, HOLD, TOPIC, clock_ms=NOW_MS, failures={})
    [error] = found.errors
    assert "still recovering" in error
