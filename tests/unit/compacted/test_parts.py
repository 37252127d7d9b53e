"""What a compacted view reads from Pulsar's compacted ledger, and where that is not enough."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from reader.config import ReadConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition, Position
from reader.plan.completeness import CompactedPart, compacted_parts, compaction_start
from reader.plan.snapshot import take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar import CompactedLedger, PartitionLedgers
from reader.table import PartitionNumbers, TopicNumbers, TopicTable
from tests.support.additions import numbers_of
from tests.unit.plan.test_snapshot import (
    PART,
    TOPIC,
    FakeAdmin,
    FakeClients,
    listing,
    make_table,
    metadata,
    opened,
    sealed,
)


def compacted(upto: str, ledger: int = 90) -> CompactedLedger:
    return CompactedLedger(ledger, 50, metadata(ledger, 50), Position.parse(upto))


def partition(ledgers: list[Any], last: str, upto: str | None, **changes: Any) -> PartitionLedgers:
    """What is listed of a partition that was compacted up to ``upto``."""
    cursors, ledger = {}, None
    if upto is not None:
        ledger = compacted(upto)
        cursors = {"__compaction": replace(ledger.upto, entry=ledger.upto.entry + 1)}
    return listing(ledgers, last, **({"compacted": ledger, "cursors": cursors} | changes))


def part(before: int, upto: str, end: str, first: int | None = None) -> CompactedPart:
    first = before if first is None else first
    return CompactedPart(PART, first, before, compacted(upto), Position.parse(end))


@dataclass
class Table:
    """A table of the ledgers from ``first`` to ``watermark``. ``lowest`` to ``highest`` expired."""

    lowest: int | None = None
    highest: int = -1
    recorded: int | None = None
    first_ledger: int = 1
    last: int = 33
    created: str = "created-1"
    lost: int | None = None
    next: int | None = None
    topic = TOPIC

    @property
    def topic_numbers(self) -> TopicNumbers:
        expired = None if self.lowest is None else 1
        return TopicNumbers(TOPIC.full_name, TopicNumbers.expired_before.set(TOPIC, expired).get)

    def numbers(self, partition: Partition) -> PartitionNumbers:
        return numbers_of(
            partition,
            first=self.first_ledger,
            expected=self.next,
            data_loss=self.lost,
            compaction_start=self.recorded,
            expired_from=self.lowest,
            expired_upto=Position(self.highest, 9),
        )

    def watermark(self, partition: Partition) -> int:
        return self.last

    def created_at(self, partition: Partition) -> str:
        return self.created

    def is_filled_from(self, partition: Partition, created_at: str) -> bool:
        return created_at == self.created


def parts(table: Table | None, listed: PartitionLedgers, **options: Any) -> Any:
    found: Any = table
    return compacted_parts(found, {PART: listed}, **options)


@pytest.mark.parametrize(
    ("ledgers", "upto", "before"),
    [
        ([opened(35)], "35:-1", 35),  # Pulsar has deleted all that it has compacted
        ([sealed(32), opened(35)], "32:9", 32),
        ([sealed(32), opened(35)], "32:4", 32),  # the rest is read where it is
        ([], "32:9", 33),
    ],
)
def test_it_ends_before_the_first_ledger_that_is_there(
    ledgers: list[Any], upto: str, before: int
) -> None:
    listed = partition(ledgers, "35:4", upto)
    assert parts(None, listed) == (part(before, upto, "35:4"),)


def test_a_topic_that_was_never_compacted_has_no_such_part() -> None:
    assert parts(None, partition([opened(35)], "35:4", None)) == ()


def test_the_first_ledger_of_the_table_is_readable() -> None:
    """Though Pulsar had compacted and deleted others before the offloader began."""
    listed = partition([sealed(33), opened(35)], "35:4", "33:9")
    assert parts(Table(first_ledger=20), listed) == (part(20, "33:9", "35:4"),)
    forced = parts(Table(first_ledger=20), listed, reads_table=False)
    assert forced == (part(33, "33:9", "35:4"),), "the table is not read"


def test_expired_rows_are_read_from_what_compaction_has_kept() -> None:
    listed = partition([sealed(34), opened(35)], "35:4", "33:9")
    found = parts(Table(lowest=1, highest=33, recorded=1), listed)
    assert found == (part(34, "33:9", "35:4", first=1),)


def test_an_empty_ledger_that_has_expired_needs_no_compaction() -> None:
    ledgers = [sealed(32), sealed(33, 0), opened(35)]
    listed = partition(ledgers, "35:4", "32:9")
    found = parts(Table(lowest=1, highest=33, recorded=1), listed)
    assert found == (part(34, "32:9", "35:4", first=1),)


@pytest.mark.parametrize(
    ("recorded", "upto", "reason"),
    [
        pytest.param(None, None, "has no compacted ledger", id="never"),
        pytest.param(1, "32:9", "compacted it up to 32:9 only", id="not so far"),
        pytest.param(None, "40:9", "only from ledger 33 on", id="it began after they expired"),
        pytest.param(2, "40:9", "only from ledger 2 on", id="it began after they were deleted"),
    ],
)
def test_expired_rows_that_compaction_has_not_seen_are_an_error(
    recorded: int | None, upto: str | None, reason: str
) -> None:
    table = Table(lowest=1, highest=33, recorded=recorded)
    listed = partition([sealed(33), sealed(40), opened(45)], "45:4", upto)
    with pytest.raises(ConfigurationError, match="would lack keys: rows have expired") as raised:
        parts(table, listed)
    assert reason in str(raised.value)
    assert "query.allow_data_loss" in str(raised.value.hint)
    with pytest.raises(ConfigurationError, match="would lack keys"):
        parts(table, listed, reads_table=False)  # Pulsar has them in no other place
    assert len(parts(table, listed, allow_missing=True)) == (upto is not None)


@pytest.mark.parametrize(
    ("table", "before"),
    [
        pytest.param(Table(recorded=1, lost=20), 20, id="a commit stepped over it"),
        pytest.param(Table(recorded=1, next=35), 40, id="no commit has"),
        pytest.param(Table(recorded=1, lost=20, next=35), 40, id="both"),
        pytest.param(Table(recorded=2, lost=20), 1, id="compaction has not seen all of the table"),
    ],
)
def test_what_was_lost_is_read_from_what_compaction_has_kept(table: Table, before: int) -> None:
    """With ``query.allow_data_loss``: keys of ledgers that Pulsar had compacted and deleted."""
    listed = partition([sealed(40), opened(45)], "45:4", "40:9")
    assert parts(table, listed, allow_missing=True) == (part(before, "40:9", "45:4", first=1),)


def test_where_compaction_begins() -> None:
    listed = partition([sealed(33), opened(35)], "35:4", "33:9")
    table: Any = Table(recorded=7)
    assert compaction_start(table, listed) == 7
    assert compaction_start(table, replace(listed, created_at="again")) == 33
    assert compaction_start(table, replace(listed, cursors={})) is None, "it was switched off"
    new = Position(33, 0)
    first = partition([sealed(33), opened(35)], "35:4", None, cursors={"__compaction": new})
    assert compaction_start(None, first) == 33, "before its first run"


def test_a_topic_that_was_made_again_begins_with_what_is_listed(tmp_path: Path) -> None:
    """Rows of its earlier life hide nothing of what Pulsar has compacted and deleted since."""
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    make_table(config, watermark=9)
    listed = partition([sealed(105), opened(110)], "110:4", "104:9", created_at="created-2")
    snapshot = take_snapshot(FakeClients(config, FakeAdmin(listed)), TOPIC, compacted=True)
    assert snapshot.compacted == (part(105, "104:9", "110:4"),)


def test_expired_rows_of_an_earlier_life_are_an_error() -> None:
    """No compaction of this life has seen them."""
    table = Table(lowest=1, highest=3, recorded=1, created="created-0")
    listed = partition([sealed(40), opened(45)], "45:4", "40:9")
    with pytest.raises(ConfigurationError, match="among them some of ledger 1,"):
        parts(table, listed)


def test_the_log_has_what_it_needs(tmp_path: Path) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    make_table(config, watermark=33)
    clients = FakeClients(config, FakeAdmin())

    def table() -> TopicTable:
        found = clients.newest_table(TOPIC)
        assert found is not None
        return found

    assert (table().numbers(PART).expired_from, table().numbers(PART).compaction_start) == (
        None,
        None,
    )
    numbers = PartitionNumbers.first.set(PART, 1) | PartitionNumbers.compaction_start.set(PART, 1)
    numbers |= PartitionNumbers.expired_from.set(PART, 2)
    numbers |= PartitionNumbers.expired_upto.set(PART, Position(20, 9))
    handle = DeltaTable(table().uri)
    handle.create_write_transaction(
        [],
        mode="append",
        schema=handle.schema(),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(name, number) for name, number in numbers.items()]
        ),
    )
    assert (table().numbers(PART).expired_from, table().numbers(PART).compaction_start) == (2, 1)
    listed = partition([sealed(33), opened(35)], "35:4", "33:9")
    assert compacted_parts(table(), {PART: listed}) == (part(21, "33:9", "35:4", first=1),)


def test_a_table_of_a_topic_that_was_deleted() -> None:
    with pytest.raises(ConfigurationError, match="compacted ledger is not read"):
        compacted_parts(Table(lowest=1, highest=33), {})  # type: ignore[arg-type]
    assert compacted_parts(Table(), {}) == ()  # type: ignore[arg-type]


def test_a_compacted_ledger_that_the_broker_does_not_show_is_an_error() -> None:
    """As while its bookies do not answer: the view would be what Pulsar has not deleted."""
    hidden = CompactedLedger(90, 0, None, Position(33, 9))
    listed = partition([opened(35)], "35:4", "33:9", compacted=hidden)
    with pytest.raises(UnavailableError, match="does not show compacted ledger 90"):
        parts(None, listed)


def test_the_end_of_an_idle_partition_may_lie_before_the_cursor() -> None:
    [found] = parts(None, partition([opened(35)], "32:9", "35:-1"))
    assert found.end == Position(35, -1)


@pytest.mark.parametrize(
    ("ledger", "serves"),
    [
        pytest.param(compacted("33:9"), True, id="the same"),
        pytest.param(compacted("40:0"), True, id="the same, by its number"),
        pytest.param(compacted("35:4", 91), True, id="up to the end"),
        pytest.param(compacted("35:5", 91), False, id="behind the end"),
    ],
)
def test_which_ledger_serves_a_snapshot(ledger: CompactedLedger, serves: bool) -> None:
    """A later message of a key may have taken the place of the one that the snapshot has."""
    assert part(34, "33:9", "35:4").serves(ledger) is serves


def test_the_token_of_a_view_has_it(tmp_path: Path) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    admin = FakeAdmin(partition([opened(35)], "35:4", "35:-1"))
    clients = FakeClients(config, admin)
    snapshot = take_snapshot(clients, TOPIC, compacted=True)
    assert snapshot.compacted == (part(35, "35:-1", "35:4"),)
    token = to_token(snapshot)
    assert from_token(admin, TOPIC, token).compacted == snapshot.compacted
    assert not take_snapshot(clients, TOPIC).compacted
    later = compacted("35:4", 91)
    admin.listings[PART] = replace(admin.listings[PART], compacted=later)
    assert from_token(admin, TOPIC, token).compacted == (
        replace(snapshot.compacted[0], ledger=later),
    )
    admin.listings[PART] = replace(admin.listings[PART], compacted=compacted("35:5", 91))
    [found] = from_token(admin, TOPIC, token).compacted
    assert (found.ledger.ledger_id, found.ledger.metadata) == (90, None), "it permits no ledger"
