"""A forced tier gives all rows that the table has, or refuses."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from offloader.commit.delta_committer import DeltaCommitter
from reader.config import ReadConfig
from reader.errors import NotFoundError
from reader.model import Partition
from reader.plan.snapshot import take_snapshot
from reader.pulsar import PartitionLedgers
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from tests.support.additions import CREATED, PUBLISHED, addition
from tests.support.tables import DAY_US, maintainer, now_us
from tests.unit.plan.test_snapshot import (
    PART,
    TOPIC,
    FakeAdmin,
    FakeClients,
    listing,
    opened,
    sealed,
)


@pytest.fixture
def config(tmp_path: Path) -> ReadConfig:
    return ReadConfig.load({"storage": {"uri": str(tmp_path)}})


@pytest.fixture
def storage(config: ReadConfig) -> Storage:
    return open_storage(config.storage)


def fill(storage: Storage, *commits: Sequence[int], published: int = PUBLISHED) -> None:
    """A commit each, of ten rows a ledger."""
    for ledgers in commits:
        table = TopicTable.open(storage, TOPIC)
        before = table.watermark(PART) if table else -1
        DeltaCommitter(storage).commit(
            table,
            addition(storage, TOPIC, ledgers, before=before, partition=-1, published=published),
        )


def listed(first: int, last: int) -> PartitionLedgers:
    """Sealed ledgers of ten entries, and an open one."""
    ledgers = [sealed(ledger) for ledger in range(first, last)]
    return listing([*ledgers, opened(last)], f"{last - 1}:9", created_at=CREATED)


def forced(config: ReadConfig, *parts: PartitionLedgers) -> list[int]:
    snapshot = take_snapshot(FakeClients(config, FakeAdmin(*parts)), TOPIC, tiers="bookkeeper")
    return [one.ledger_id for one in snapshot.hot]


def clean_up(storage: Storage) -> None:
    """What delta-rs does at a checkpoint that is written 31 days later."""
    table = TopicTable.open(storage, TOPIC)
    assert table is not None
    table.handle.create_checkpoint()
    old = time.time() - 31 * 86_400
    for file in Path(storage.directory(TOPIC)[1], "_delta_log").iterdir():
        os.utime(file, (old, old))
    fill(storage, [table.watermark(PART) + 1])  # the newest commit stays
    table.handle.cleanup_metadata()


def test_a_forced_tier_is_refused_also_when_no_commit_tells_of_what_was_trimmed(
    config: ReadConfig, storage: Storage
) -> None:
    fill(storage, *([ledger] for ledger in range(1, 6)))
    clean_up(storage)
    table = TopicTable.open(storage, TOPIC)
    assert table is not None and min(one.ledger for one in table.ledgers()) > 4
    assert forced(config, listed(1, 8)) == list(range(1, 8))
    for first in range(2, 8):
        with pytest.raises(NotFoundError, match="trimmed ledger 1,"):
            forced(config, listed(first, 8))


def test_a_forced_tier_is_refused_after_compaction(config: ReadConfig, storage: Storage) -> None:
    fill(storage, *([ledger] for ledger in range(1, 10)))
    maintainer(storage).maintain(TOPIC)
    table = TopicTable.open(storage, TOPIC)
    assert table is not None and len(table.paths()) < 9
    assert forced(config, listed(1, 10)) == list(range(1, 10))
    with pytest.raises(NotFoundError):
        forced(config, listed(2, 10))


def test_what_has_expired_is_not_missed(config: ReadConfig, storage: Storage) -> None:
    fill(storage, [1], published=now_us() - 40 * DAY_US)
    fill(storage, [2], published=now_us())
    with pytest.raises(NotFoundError):
        forced(config, listed(2, 4))
    maintainer(storage, retention="30d").maintain(TOPIC)
    assert forced(config, listed(2, 4)) == [2, 3]


def test_a_forced_tier_of_a_topic_that_was_made_again(config: ReadConfig, storage: Storage) -> None:
    """Its first life is in the table alone; so are partitions that the second does not have."""
    fill(storage, [1])
    again = replace(listed(5, 7), created_at="2026-05-05T00:00:00Z")
    with pytest.raises(NotFoundError):
        forced(config, again)
    with pytest.raises(NotFoundError):
        forced(config, replace(again, partition=Partition(TOPIC, 0)))
    with pytest.raises(NotFoundError):
        forced(config)  # deleted


def test_a_file_without_statistics_may_have_any_rows(config: ReadConfig, storage: Storage) -> None:
    fill(storage, [1])
    assert forced(config, listed(1, 3)) == [1, 2]
    table = TopicTable.open(storage, TOPIC)
    assert table is not None
    table.handle.alter.set_table_properties({"delta.dataSkippingStatsColumns": "id"})
    row = pa.Table.from_pylist([{"__ledgerId": 2, "__partition": -1}], table.schema)
    write_deltalake(table.handle, row, mode="append")
    with pytest.raises(NotFoundError, match="without statistics"):
        forced(config, listed(1, 3))
