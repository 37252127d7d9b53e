"""Messages that Pulsar deleted before they were offloaded: found, named, never passed by silently.

Ledger ids are cluster-wide, so a missing number says nothing. What does: each commit records the
first ledger above each watermark that had entries then (``TopicTable.expected``). Pulsar deletes
in order, so if that one is not listed any more although the table does not have it, its messages
are lost, and with them those of whatever lay between it and the first ledger that is still there.
A commit that steps over such a loss records it (``OffloadedLedger.lost``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from reader.errors import ConfigurationError
from reader.model import Partition
from reader.pulsar import PartitionLedgers
from reader.table import TopicTable

__all__ = ["DataLoss", "describe_data_loss", "loss_at", "new_losses", "refuse_data_loss"]


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Ledger ``ledger`` was deleted before it was offloaded.

    ``before``: the first ledger that was still there; those between the two are lost as well.
    """

    partition: Partition
    ledger: int
    before: int

    def __str__(self) -> str:
        return (
            f"{self.partition}: the messages of ledger {self.ledger}, and of any other before "
            f"ledger {self.before}, were deleted before they were offloaded"
        )


def new_losses(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> list[DataLoss]:
    """Those that no commit has stepped over; ``listed`` is not younger than ``table``.

    A topic that was deleted and made again has none: its messages were deleted on purpose.
    """
    found = []
    for partition, listing in listed.items():
        expected = table.expected(partition)
        if expected is None or table.created_at(partition) != listing.created_at:
            continue
        if (loss := loss_at(listing, expected)) is not None:
            found.append(loss)
    return found


def loss_at(listing: PartitionLedgers, ledger: int) -> DataLoss | None:
    """The loss that begins with ``ledger``, which had entries, if it is not listed any more."""
    at = bisect_left(listing.ledgers, ledger, key=lambda one: one.ledger_id)
    # One that is newer than the list is not in it either.
    if at == len(listing.ledgers) or listing.ledgers[at].ledger_id == ledger:
        return None
    return DataLoss(listing.partition, ledger, listing.ledgers[at].ledger_id)


def _recorded(table: TopicTable) -> list[str]:
    """The losses that commits stepped over; one line where log clean-up has removed these."""
    if not table.has_data_loss:
        return []
    found = [
        DataLoss(Partition(table.topic, one.partition), one.ledger, after.ledger)
        for one, after in pairwise(table.ledgers())
        if one.lost
    ]
    forgotten = f"{table.topic}: messages were deleted before they were offloaded, long ago"
    return [str(one) for one in found] or [forgotten]


def describe_data_loss(
    table: TopicTable, listed: Mapping[Partition, PartitionLedgers]
) -> list[str]:
    """A line for each loss; one for all those that the log has forgotten."""
    return _recorded(table) + [str(one) for one in new_losses(table, listed)]


def refuse_data_loss(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> None:
    """Raise ConfigurationError if messages are missing, for queries that did not allow it."""
    losses = describe_data_loss(table, listed)
    if losses:
        more = f" (and further data losses: {len(losses) - 1})" if len(losses) > 1 else ""
        raise ConfigurationError(
            f"{losses[0]}{more}", hint="query.allow_data_loss = true reads what there is"
        )
