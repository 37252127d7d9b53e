"""Which sealed ledgers are due: tables of ledger lists, clocks and settings."""

from dataclasses import replace
from datetime import timedelta

import pytest

from offloader.backlog.policy import due, sealed, within, within_few
from offloader.config import OffloadConfig
from offloader.model import Due
from reader.model import LedgerMetadata, Partition, Position, Topic
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers

PARTITION = Partition(Topic("public", "default", "orders"), 0)
NOW_MS = 10_000_000


def ledger(
    ledger_id: int,
    entries: int = 10,
    size: int = 1000,
    closed_ms: int | None = NOW_MS,
    *,
    is_open: bool = False,
) -> LedgerInfo:
    metadata = LedgerMetadata(
        ledger_id=ledger_id,
        state="OPEN" if is_open else "CLOSED",
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        last_entry=-1 if is_open else entries - 1,
        digest_type="CRC32C",
        ensembles=((0, ("bookie:3181",)),),
    )
    shown = 0 if is_open else entries
    return LedgerInfo(ledger_id, shown, size, metadata, False, None if is_open else closed_ms)


def listing(
    *ledgers: LedgerInfo,
    end: Position | None = None,
    max_read: Position | None = None,
    terminated: bool = False,
) -> PartitionLedgers:
    last = end or Position(ledgers[-1].ledger_id if ledgers else -1, -1)
    return PartitionLedgers(
        partition=PARTITION,
        ledgers=ledgers,
        last_confirmed=last,
        max_read=max_read or last,
        terminated=terminated,
        created_at="2026-01-01",
        open_bytes=0,
        cursors={},
    )


OPEN = ledger(99, is_open=True)
THREE = (ledger(1), ledger(4), ledger(6), OPEN)


@pytest.mark.parametrize(
    ("found", "watermark", "expected"),
    [
        pytest.param(listing(), -1, [], id="nothing was ever written"),
        pytest.param(listing(OPEN), -1, [], id="only the open ledger"),
        pytest.param(listing(*THREE), -1, [1, 4, 6], id="all but the open one"),
        pytest.param(listing(*THREE), 4, [6], id="above the watermark"),
        pytest.param(listing(*THREE), 6, [], id="all in the table"),
        pytest.param(listing(*THREE), 5, [6], id="the watermark's ledger was deleted"),
        pytest.param(listing(*THREE[:3]), -1, [1, 4], id="the last is open, whatever it says"),
        pytest.param(
            listing(ledger(1), ledger(4), ledger(6, entries=0), OPEN, max_read=Position(4, 5)),
            -1,
            [1],
            id="no empty ledger behind one that waits for a transaction",
        ),
        pytest.param(
            listing(*THREE[:3], end=Position(6, 9), terminated=True),
            -1,
            [1, 4, 6],
            id="terminated: the last one too",
        ),
        pytest.param(
            listing(ledger(1), OPEN, end=Position(99, 5), terminated=True),
            -1,
            [1],
            id="terminated, but not closed yet",
        ),
        pytest.param(
            listing(*THREE, end=Position(99, 3), max_read=Position(4, 9)),
            -1,
            [1, 4],
            id="an undecided transaction begins in 6",
        ),
        pytest.param(
            listing(*THREE, end=Position(99, 3), max_read=Position(4, 8)),
            -1,
            [1],
            id="an undecided transaction hides the last entry of 4: no gap, so 6 waits too",
        ),
        pytest.param(
            listing(ledger(1), ledger(4, 0, 0), OPEN, end=Position(1, 9)),
            -1,
            [1, 4],
            id="an empty ledger goes along",
        ),
    ],
)
def test_sealed_is_a_gap_free_prefix(
    found: PartitionLedgers, watermark: int, expected: list[int]
) -> None:
    assert [one.ledger_id for one in sealed(found, watermark)] == expected


@pytest.mark.parametrize(
    ("settings", "clock_ms", "now", "trigger"),
    [
        pytest.param({}, NOW_MS, False, None, id="small and young"),
        pytest.param({}, NOW_MS, True, "now", id="requested"),
        pytest.param({"threshold_bytes": 3000}, NOW_MS, False, "size", id="just large enough"),
        pytest.param({"threshold_bytes": 3001}, NOW_MS, False, None, id="one byte short"),
        pytest.param({"max_age": "10s"}, NOW_MS + 10_000, False, "age", id="just old enough"),
        pytest.param({"max_age": "10s"}, NOW_MS + 9_999, False, None, id="one ms too young"),
    ],
)
def test_trigger(
    settings: dict[str, object], clock_ms: int, now: bool, trigger: str | None
) -> None:
    config = OffloadConfig.model_validate(settings)
    found = due(listing(*THREE), -1, clock_ms=clock_ms, config=config, now=now)
    assert (found.trigger if found else None) == trigger
    if found:
        assert (found.upto, found.bytes, found.created_at) == (6, 3000, "2026-01-01")
        assert found.reason
        assert (found.reason == "requested") == now


def test_the_oldest_ledger_counts_for_the_age() -> None:
    config = OffloadConfig.model_validate({"max_age": "1h"})
    old = listing(ledger(1, closed_ms=NOW_MS - 3_600_000), ledger(2), OPEN)
    assert due(old, -1, clock_ms=NOW_MS, config=config)
    assert not due(old, 1, clock_ms=NOW_MS, config=config)


@pytest.mark.parametrize("hours", [-9000, -8, 8, 9000])
def test_the_age_is_by_the_brokers_clock(hours: int) -> None:
    """This host's may be wrong."""
    config = OffloadConfig(max_age=timedelta(minutes=30))
    for minutes, is_due in ((29, False), (31, True)):
        seen = replace(listing(*THREE), listed_at=NOW_MS + minutes * 60_000)
        found = due(seen, -1, clock_ms=NOW_MS + hours * 3_600_000, config=config)
        assert (found is not None) == is_due


def test_a_ledger_without_a_close_time_is_old() -> None:
    found = due(
        listing(ledger(1, closed_ms=None), OPEN), -1, clock_ms=NOW_MS, config=OffloadConfig()
    )
    assert found
    assert found.trigger == "age"


def test_empty_ledgers_alone_are_no_reason_to_commit() -> None:
    empty = listing(ledger(1, 0, 0, closed_ms=0), OPEN, end=Position(99, -1))
    assert due(empty, -1, clock_ms=NOW_MS, config=OffloadConfig()) is None
    found = due(empty, -1, clock_ms=NOW_MS, config=OffloadConfig(), now=True)
    assert found
    assert found.upto == 1


def test_a_commit_takes_a_bounded_prefix_of_a_backlog() -> None:
    config = OffloadConfig()
    one = due(listing(*THREE), -1, clock_ms=NOW_MS, config=config, now=True)
    assert one
    [cut] = within([one], 2000)
    assert [ledger.ledger_id for ledger in cut.ledgers] == [1, 4]
    [least] = within([one], 10)
    assert [ledger.ledger_id for ledger in least.ledgers] == [1], "always at least one"
    assert [part.upto for part in within([one, one], 4000)] == [4, 4], "shared by partitions"
    assert within([one], 3000) == (one,)
    assert within([]) == ()


def test_a_slow_topic_commits_of_few_partitions_the_one_that_waits_longest_first() -> None:
    """A ledger of each of many partitions would be older than a file may be at its commit."""

    def of(index: int, *ledgers: LedgerInfo) -> Due:
        partition = Partition(PARTITION.topic, index)
        return Due(partition, -1, ledgers, "age", "", "2026-01-01")

    dues = [of(n, ledger(10 + n, size=600, closed_ms=NOW_MS - n)) for n in range(4)]
    assert within_few(dues, 1) == (dues[3],)
    assert within_few(dues, 1200) == (dues[2], dues[3])
    two = of(5, ledger(20, size=100, closed_ms=0), ledger(21, size=100, closed_ms=0))
    chosen = within_few([*dues, two], 100)
    assert [(one.partition.index, len(one.ledgers)) for one in chosen] == [(5, 1)]
    chunks = of(6)
    assert within_few([chunks, *dues], 1) == (chunks, dues[3])
    assert within_few([], 1) == ()
