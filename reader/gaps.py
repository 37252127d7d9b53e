"""Messages that Pulsar deleted before they were offloaded: found, named, never passed by silently.

Ledger ids are cluster-wide, so a missing number says nothing. What does: each commit records the
first ledger above each watermark that had entries then (``TopicTable.expected``). Pulsar deletes
in order, so if that one is not listed any more although the table does not have it, its messages
are lost, and with them those of whatever lay between it and the first ledger that is still there.
A commit that steps over such a gap records it (tier ``LOST``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from reader.admin import PartitionLedgers
from reader.errors import ConfigurationError
from reader.model import Partition
from reader.table import LOST, TopicTable

__all__ = ["Gap", "new_gaps", "recorded_gaps", "refuse_gaps", "say_gaps"]


@dataclass(frozen=True, slots=True)
class Gap:
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


def new_gaps(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> list[Gap]:
    """Those that no commit has stepped over; ``listed`` is not younger than ``table``.

    A topic that was deleted and made again has none: its messages were deleted on purpose.
    """
    found = []
    for partition, listing in listed.items():
        expected = table.expected(partition)
        if expected is None or table.created_at(partition) != listing.created_at:
            continue
        later = [one.ledger_id for one in listing.ledgers if one.ledger_id >= expected]
        # A ledger that is newer than the list is not in it either.
        if later and later[0] != expected:
            found.append(Gap(partition, expected, later[0]))
    return found


def recorded_gaps(table: TopicTable) -> list[Gap]:
    """Those that the commits still in the log say of; log clean-up removes commits by age."""
    ledgers = table.ledgers() if table.has_gaps else []
    return [
        Gap(Partition(table.topic, one.partition), one.ledger, after.ledger)
        for one, after in pairwise(ledgers)
        if one.tier == LOST
    ]


def say_gaps(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> list[str]:
    """A line for each gap; one for all those that the log has forgotten."""
    found = [str(one) for one in (*recorded_gaps(table), *new_gaps(table, listed))]
    if table.has_gaps and not found:
        return [f"{table.topic}: messages were deleted before they were offloaded, long ago"]
    return found


def refuse_gaps(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> None:
    """Raise ConfigurationError if messages are missing, for queries that did not allow it."""
    gaps = say_gaps(table, listed)
    if gaps:
        more = f" (and {len(gaps) - 1} more gaps)" if len(gaps) > 1 else ""
        raise ConfigurationError(
            f"{gaps[0]}{more}", hint="query.allow_gaps = true reads what there is"
        )
