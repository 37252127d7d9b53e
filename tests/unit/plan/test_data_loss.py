"""Messages that were deleted before they were offloaded: which ones, in what words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.commit.schema_changes import evolve
from reader.config import StorageConfig
from reader.errors import ConfigurationError
from reader.model import Partition, Position
from reader.plan.data_loss import DataLoss, loss_at, new_losses, refuse_data_loss
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from reader.storage import open_storage
from reader.table import PartitionNumbers, TopicNumbers
from tests.support.additions import CREATED, addition, numbers_of, open_table
from tests.unit.plan.values import TOPIC


class Table:
    """Commits expected ledger 3 of partition 0 and ledger 5 of partition 1; it has no loss yet."""

    topic_numbers = TopicNumbers(TOPIC.full_name, lambda app_id: None)

    def numbers(self, partition: Partition) -> PartitionNumbers:
        return numbers_of(partition, expected={0: 3, 1: 5}.get(partition.index))

    def created_at(self, partition: Partition) -> str:
        return "then"


def listing(index: int, *ledgers: int, created: str = "then") -> PartitionLedgers:
    end = Position(ledgers[-1], 0)
    found = tuple(LedgerInfo(one, 1, 1, None, False, None) for one in ledgers)
    return PartitionLedgers(Partition(TOPIC, index), found, end, end, False, created, 0, {})


def of(*listings: PartitionLedgers) -> dict[Partition, PartitionLedgers]:
    return {one.partition: one for one in listings}


TABLE: Any = Table()
BOTH = of(listing(0, 7, 8), listing(1, 9))


def test_a_ledger_that_is_listed_or_newer_than_the_list_is_not_lost() -> None:
    assert loss_at(listing(0, 3, 7), 3) is None
    assert loss_at(listing(0, 3, 7), 8) is None
    assert loss_at(listing(0, 3, 7), 5) == DataLoss(Partition(TOPIC, 0), 5, 7)


def test_of_a_topic_made_again_none_is_lost() -> None:
    assert [(one.ledger, one.before) for one in new_losses(TABLE, BOTH)] == [(3, 7), (5, 9)]
    assert new_losses(TABLE, of(listing(0, 7, created="now"), listing(2, 7))) == []


@pytest.mark.parametrize(("expected", "open_ledger"), [(3, None), (None, 3)])
def test_none_is_lost_between_the_commits_of_a_topic_made_again(
    tmp_path: Path, expected: int | None, open_ledger: int | None
) -> None:
    """The first of them, of its creation time, is there when the offloader stops."""
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    first = addition(storage, TOPIC, [1])
    step = replace(first.advances[0], expected=expected, open_ledger=open_ledger)
    table = DeltaCommitter(storage).commit(None, replace(first, advances=(step,)))
    more = addition(storage, TOPIC, [8], before=1)
    again = replace(more, advances=(replace(more.advances[0], created_at="now"),))
    listed = of(replace(listing(0, 7, 8, created=CREATED), added=3, kept=2))
    assert len(new_losses(table, listed)) == 1
    made_again = of(replace(listing(0, 7, 8, created="now"), added=3, kept=2))
    assert new_losses(table, made_again) == []
    assert evolve(table, again)
    between = open_table(storage, TOPIC)
    assert between.created_at(Partition(TOPIC, 0)) == "now"
    assert new_losses(between, made_again) == []
    assert DeltaCommitter(storage).commit(between, again).watermark(Partition(TOPIC, 0)) == 8


def test_a_query_says_the_first_loss_and_how_many_follow() -> None:
    refuse_data_loss(TABLE, of(listing(0, 3, 7)))
    with pytest.raises(ConfigurationError, match="ledger 3,") as one:
        refuse_data_loss(TABLE, of(listing(0, 7)))
    assert "further" not in str(one.value)
    with pytest.raises(ConfigurationError, match=r"ledger 3,.* \(and further data losses: 1\)"):
        refuse_data_loss(TABLE, BOTH)


@pytest.mark.parametrize("created", ["1990-01-01T00:00:00Z", "2190-01-01T00:00:00Z"])
def test_a_partition_is_newer_than_its_table_by_what_the_table_recorded(
    tmp_path: Path, created: str
) -> None:
    """The broker's clock is a lifetime behind, or ahead, of that of who made the table."""
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    first = addition(storage, TOPIC, [1])
    table = DeltaCommitter(storage).commit(
        None, replace(first, partitions={0: CREATED, 1: created})
    )
    trimmed = replace(listing(1, 7, created=created), added=9, kept=1)
    assert new_losses(table, of(trimmed)) == [], "the topic had it before the first hold"
    again = replace(trimmed, created_at="2026-05-05T00:00:00Z")
    assert new_losses(table, of(again)) == [DataLoss(Partition(TOPIC, 1), -1, 7)]
    added = replace(trimmed, partition=Partition(TOPIC, 2))
    assert new_losses(table, of(added)) == [DataLoss(Partition(TOPIC, 2), -1, 7)]
    more = replace(addition(storage, TOPIC, [2], before=1), partitions={0: CREATED, 2: created})
    later = DeltaCommitter(storage).commit(table, more)
    assert new_losses(later, of(added)) == new_losses(table, of(added)), "written once"
