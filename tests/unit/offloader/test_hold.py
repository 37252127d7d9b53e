"""How far the hold may move, from ledger lists and watermarks alone."""

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.subscription.hold import claim, missing, moves, next_needed, settled, strayed
from offloader.turn.known_versions import KnownVersions
from reader.config import StorageConfig
from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic
from reader.pulsar import TABLE_ID_KEY, TABLE_KEY, WATERMARK_KEY
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from reader.storage import open_storage
from reader.table import PartitionNumbers, TopicTable
from tests.support.additions import addition, numbers_of, open_table

TOPIC = Topic("public", "default", "orders")
PARTITION = Partition(TOPIC, 0)
NAME = "pulsar-lake"


def listing(
    *ids: int, cursor: Position | None = None, terminated: bool = False
) -> PartitionLedgers:
    """Ledgers of 10 entries each; the last one is open and empty, unless terminated."""
    ledgers = [LedgerInfo(one, 10, 100, None, False, 1) for one in ids]
    if ledgers and not terminated:
        ledgers[-1] = replace(ledgers[-1], entries=0)
    end = Position(ids[-1] if ids else -1, 9 if terminated else -1)
    cursors = {} if cursor is None else {NAME: cursor}
    return PartitionLedgers(PARTITION, tuple(ledgers), end, end, terminated, "2026", 0, cursors)


@dataclass
class Table:
    mark: int
    begins: Position | None = None

    def numbers(self, partition: Partition) -> PartitionNumbers:
        return numbers_of(partition, watermark=self.mark, lookback=self.begins)


@pytest.mark.parametrize(
    ("ids", "terminated", "watermark", "expected"),
    [
        ((1, 4, 6), False, 4, Position(6, 0)),
        ((1, 4, 6), False, 3, Position(4, 0)),
        ((1, 4, 6), False, -1, Position(1, 0)),
        ((6,), False, 4, Position(6, 0)),
        ((1, 4, 6), True, 6, Position(6, 10)),
        ((), False, 4, None),
    ],
)
def test_the_first_entry_that_is_still_needed(
    ids: tuple[int, ...], terminated: bool, watermark: int, expected: Position | None
) -> None:
    assert next_needed(listing(*ids, terminated=terminated), watermark) == expected


@pytest.mark.parametrize(
    ("cursor", "watermark", "target"),
    [
        pytest.param(Position(1, 0), 4, Position(6, 0), id="forward"),
        pytest.param(Position(1, 0), 1, Position(4, 0), id="only to the watermark"),
        pytest.param(Position(6, 0), 4, None, id="there already"),
        pytest.param(Position(4, 10), 4, None, id="there, as Pulsar writes it"),
        pytest.param(Position(3, 7), 3, None, id="its ledger was deleted: the next is meant"),
        pytest.param(Position(3, 7), 4, Position(6, 0), id="its ledger was deleted: forward"),
        pytest.param(Position(5, 10), 4, None, id="its ledger was deleted: there already"),
        pytest.param(Position(6, 3), 4, None, id="never backwards"),
        pytest.param(Position(6, 0), 1, None, id="never backwards to a stale watermark"),
        pytest.param(Position(1, 0), -1, None, id="nothing is in the table"),
        pytest.param(None, 4, None, id="no hold to move"),
    ],
)
def test_moves(cursor: Position | None, watermark: int, target: Position | None) -> None:
    found = moves({PARTITION: listing(1, 4, 6, cursor=cursor)}, Table(watermark), NAME)
    assert [one.after for one in found] == ([] if target is None else [target])
    assert all(one.before == cursor for one in found)


def test_a_message_that_is_not_complete_is_held() -> None:
    listed = {PARTITION: listing(1, 4, 6, cursor=Position(1, 0))}
    found = moves(listed, Table(4, Position(1, 7)), NAME)
    assert [one.after for one in found] == [Position(1, 7)]


def test_a_hold_that_has_passed_the_beginning_of_such_a_message_has_strayed() -> None:
    listed = {PARTITION: listing(1, 4, 6, cursor=Position(6, 0))}
    assert strayed(listed, Table(4), NAME) == []
    found = strayed(listed, Table(4, Position(1, 7)), NAME)
    assert [one.after for one in found] == [Position(1, 7)]


@pytest.mark.parametrize(
    ("ids", "lookback", "needed"),
    [
        pytest.param((4, 6), Position(1, 7), Position(4, 0), id="trimmed: what is left of it"),
        pytest.param((14, 16), Position(1, 7), Position(14, 0), id="the topic was made again"),
    ],
)
def test_a_message_whose_beginning_is_gone_holds_nothing_before_what_is_there(
    ids: tuple[int, ...], lookback: Position, needed: Position
) -> None:
    assert next_needed(listing(*ids), 4, lookback) == needed
    listed = {PARTITION: listing(*ids, cursor=needed)}
    assert strayed(listed, Table(4, lookback), NAME) == []


def test_missing_holds_are_found() -> None:
    assert missing({PARTITION: listing(1, 4)}, NAME) == [PARTITION]
    assert missing({PARTITION: listing(1, 4, cursor=Position(1, 0))}, NAME) == []


def test_only_what_has_been_in_the_log_for_the_grace_is_released(tmp_path: Path) -> None:
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    times = []
    for step in range(3):
        table = DeltaCommitter(storage).commit(
            TopicTable.open(storage, TOPIC), addition(storage, TOPIC, [step], before=step - 1)
        )
        times.append(_commit_time(table))
    first, second, third = times
    newest = open_table(storage, TOPIC)

    def at(clock_ms: int, grace_ms: int = 10_000) -> tuple[int | None, float]:
        table, wait = settled(storage, newest, TOPIC, clock_ms=clock_ms, grace_ms=grace_ms)
        return (table.watermark(PARTITION) if table else None), wait

    assert at(third, 0) == (2, 0.0)
    assert at(third + 10_000) == (2, 0.0)
    assert at(third + 9_999)[1] == pytest.approx(0.001)
    assert at(third + 9_999)[0] in ((1,) if second < third else (0, 1, -1))
    # Version 0 only makes the table: it has no watermark yet.
    assert at(first + 9_999)[0] in (-1, None)
    # A host whose clock was set back by hours waits for the grace, and not for hours.
    assert at(first - 8 * 3_600_000) == (None, 10.0)
    assert at(first - 8 * 3_600_000, 0) == (2, 0.0)


def test_the_grace_is_over_for_what_this_process_has_known_for_so_long(tmp_path: Path) -> None:
    """Whatever the clocks say: this host's may be behind that of the commit by hours."""
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    now = [50.0]
    known: KnownVersions | None = None
    for step in range(2):
        table = DeltaCommitter(storage).commit(
            TopicTable.open(storage, TOPIC), addition(storage, TOPIC, [step], before=step - 1)
        )
        known = known or KnownVersions(table.id, lambda: now[0])
        known.note(table.version)
        now[0] += 7
    assert known is not None
    found, wait = settled(
        storage,
        open_table(storage, TOPIC),
        TOPIC,
        clock_ms=0,
        grace_ms=10_000,
        known_ms=known.age_ms,
    )
    assert found is not None
    assert (found.watermark(PARTITION), wait) == (0, 3.0)
    known.note(1)
    assert known.age_ms(1) == 14_000, "a later version was seen later, this one before"
    known.note(0)
    now[0] += 1
    known.note(2)
    assert known.age_ms(2) == 0, "the table is an old copy of itself"


def _commit_time(table: TopicTable) -> int:
    return next(table.commits()).at_ms


@pytest.mark.parametrize(
    ("uri", "table_id", "error"),
    [
        (None, None, None),
        ("here", "1", None),
        ("here", "", None),
        ("elsewhere", "2", "is moved for the table at elsewhere, not for here"),
        ("elsewhere", "", "is moved for the table at elsewhere, not for here"),
        ("here", "2", "is moved for another table of the same name"),
    ],
)
def test_a_hold_is_claimed_for_one_table(
    uri: str | None, table_id: str | None, error: str | None
) -> None:
    held = {} if uri is None else {TABLE_KEY: uri, TABLE_ID_KEY: str(table_id), WATERMARK_KEY: "3"}
    noted: list[dict[str, str]] = []

    def note(partition: Partition, name: str, properties: dict[str, str]) -> bool:
        noted.append(properties)
        held.update(properties)
        return True

    admin: Any = SimpleNamespace(hold_properties=lambda *names: dict(held), note_hold=note)
    table: Any = SimpleNamespace(uri="here", id="1")
    if error is not None:
        with pytest.raises(ConfigurationError, match=error):
            claim(admin, PARTITION, NAME, table, 4)
        assert noted == []
        return
    claim(admin, PARTITION, NAME, table, 4)
    assert [one[WATERMARK_KEY] for one in noted] == ["4"]
