"""Messages that were deleted before they were offloaded: which ones, in what words."""

from __future__ import annotations

from typing import Any

import pytest

from reader.errors import ConfigurationError
from reader.model import Partition, Position
from reader.plan.data_loss import DataLoss, loss_at, new_losses, refuse_data_loss
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from tests.unit.plan.values import TOPIC


class Table:
    """Commits expected ledger 3 of partition 0 and ledger 5 of partition 1; it has no loss yet."""

    has_data_loss = False

    def expected(self, partition: Partition) -> int | None:
        return {0: 3, 1: 5}.get(partition.index)

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


def test_a_query_says_the_first_loss_and_how_many_follow() -> None:
    refuse_data_loss(TABLE, of(listing(0, 3, 7)))
    with pytest.raises(ConfigurationError, match="ledger 3,") as one:
        refuse_data_loss(TABLE, of(listing(0, 7)))
    assert "further" not in str(one.value)
    with pytest.raises(ConfigurationError, match=r"ledger 3,.* \(and further data losses: 1\)"):
        refuse_data_loss(TABLE, BOTH)
