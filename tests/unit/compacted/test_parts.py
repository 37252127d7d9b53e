"""What a compacted view reads from Pulsar's compacted ledger, and where that is not enough."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.model import Partition, Position
from reader.model.columns import METADATA
from reader.plan.completeness import CompactedPart, compacted_parts
from reader.plan.snapshot import take_snapshot
from reader.plan.snapshot_token import from_token, to_token
from reader.pulsar import CompactedLedger
from reader.storage import open_storage
from reader.table import TopicTable, first_ledger
from tests.unit.plan.test_snapshot import (
    PART,
    TOPIC,
    FakeAdmin,
    FakeClients,
    listing,
    metadata,
    opened,
    sealed,
)


def compacted(upto: str) -> CompactedLedger:
    return CompactedLedger(90, 50, metadata(90, 50), Position.parse(upto))


class Expired:
    """A table of ledgers from ``first`` to ``watermark``, of which some have expired."""

    def __init__(self, expired: int = -1) -> None:
        self._expired = expired

    topic = TOPIC

    @property
    def expired_before(self) -> int | None:
        return None if self._expired < 0 else 1

    def expired(self, partition: Partition) -> int:
        return self._expired

    def watermark(self, partition: Partition) -> int:
        return -1


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
    part = listing(ledgers, "35:4", compacted=compacted(upto))
    assert compacted_parts(None, {PART: part}) == (CompactedPart(PART, before),)


def test_a_topic_that_was_never_compacted_has_no_such_part() -> None:
    assert compacted_parts(None, {PART: listing([opened(35)], "35:4")}) == ()


def test_expired_rows_are_read_from_what_compaction_has_kept() -> None:
    table: Any = Expired(33)
    part = listing([sealed(34), opened(35)], "35:4", compacted=compacted("33:9"))
    assert compacted_parts(table, {PART: part}) == (CompactedPart(PART, 34),)


def test_an_empty_ledger_that_has_expired_needs_no_compaction() -> None:
    table: Any = Expired(33)
    ledgers = [sealed(32), sealed(33, 0), opened(35)]
    part = listing(ledgers, "35:4", compacted=compacted("32:9"))
    assert compacted_parts(table, {PART: part}) == (CompactedPart(PART, 34),)


@pytest.mark.parametrize("found", [None, compacted("32:9")], ids=["never", "not so far"])
def test_expired_rows_that_compaction_has_not_seen_are_an_error(
    found: CompactedLedger | None,
) -> None:
    table: Any = Expired(33)
    part = listing([sealed(33), opened(35)], "35:4", compacted=found)
    with pytest.raises(ConfigurationError, match="would lack keys: rows have expired") as raised:
        compacted_parts(table, {PART: part})
    assert "query.allow_data_loss" in str(raised.value.hint)
    assert len(compacted_parts(table, {PART: part}, allow_missing=True)) == (found is not None)


def test_a_table_of_a_topic_that_was_deleted() -> None:
    with pytest.raises(ConfigurationError, match="compacted ledger is not read"):
        compacted_parts(Expired(33), {})  # type: ignore[arg-type]
    assert compacted_parts(Expired(), {}) == ()  # type: ignore[arg-type]


def test_the_token_of_a_view_has_it(tmp_path: Path) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    admin = FakeAdmin(listing([opened(35)], "35:4", compacted=compacted("35:-1")))
    clients = FakeClients(config, admin)
    snapshot = take_snapshot(clients, TOPIC, compacted=True)
    assert snapshot.compacted == (CompactedPart(PART, 35),)
    found = from_token(admin, TOPIC, to_token(snapshot))
    assert found.compacted == snapshot.compacted
    assert not take_snapshot(clients, TOPIC).compacted


def test_the_table_has_a_first_ledger(tmp_path: Path) -> None:
    config = ReadConfig.load({"storage": {"uri": str(tmp_path)}})
    schema = pa.schema([("value", pa.string()), *METADATA])
    storage = open_storage(config.storage)
    handle = DeltaTable.create(storage.table_uri(TOPIC), Schema.from_arrow(schema))

    def write(*rows: tuple[int, int]) -> None:
        found = [{"__partition": index, "__ledgerId": ledger} for index, ledger in rows]
        write_deltalake(handle, pa.Table.from_pylist(found, schema), mode="append")

    write((0, 7), (0, 8))
    write((0, 3), (1, 5))  # files of two partitions
    write((1, 2), (2, 4))
    table = TopicTable.open(storage, TOPIC)
    assert table is not None
    assert [first_ledger(table, Partition(TOPIC, index)) for index in range(4)] == [3, 2, 4, None]
