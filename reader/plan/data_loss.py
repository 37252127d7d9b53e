"""Messages that Pulsar deleted before they were offloaded: found, named, never passed by silently.

Ledger ids are cluster-wide, so a missing number says nothing. What does:

- Each commit records the first ledger above each watermark that had entries then
  (``TopicTable.expected``). Pulsar deletes in order, so if that one is not listed any more although
  the table does not have it, its messages are lost, and with them those of whatever lay between it
  and the first ledger that is still there.
- Where none had entries, the commit records the open one (``TopicTable.open_ledger``). That one may
  also be gone because it was empty when the topic was unloaded, or its first write failed. But a
  broker counts what it adds from when it loads the topic, and the commit records that count
  (``TopicTable.added``): if more was added since than there is above the watermark now, the rest is
  deleted. Of a count below the recorded one, all was added since: the topic was loaded anew.
- Of a partition that has nothing in the table, although the table is older than the partition: the
  topic was held already, and what a broker has deleted since it loaded it is lost. A table records
  which partitions the topic had when it was made, so no clocks are compared.

What was deleted before the last load, of a ledger that no commit saw filled, nobody can tell; nor
after it, once the broker's count has passed the recorded one again, unless more is lost than that.
A commit that steps over a loss records it (``OffloadedLedger.lost``). So does one that adds a
ledger which operators have declared lost (``pulsar.lost_ledgers``): Pulsar lists it, and not all of
it can be read (``OffloadedLedger.declared_lost``).
"""

import json
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from reader.errors import ConfigurationError
from reader.model import Partition
from reader.pulsar import PartitionLedgers
from reader.table import PARTITIONS_KEY, TopicTable

UNKNOWN_LEDGER = -1
"""A loss that begins with a ledger that nobody knows."""


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Ledger ``ledger`` was deleted before it was offloaded; -1: nobody knows which.

    ``before``: the first ledger that was still there; those between the two are lost as well.
    The same as ``ledger``: that one is there, and was declared lost.
    """

    partition: Partition
    ledger: int
    before: int

    def __str__(self) -> str:
        if self.before == self.ledger:
            return (
                f"{self.partition}: ledger {self.ledger} was declared lost (pulsar.lost_ledgers): "
                "entries that could not be read are rows with the reason in __error"
            )
        which = f"before ledger {self.before}"
        if self.ledger != UNKNOWN_LEDGER:
            which = f"of ledger {self.ledger}, and of any other {which},"
        return f"{self.partition}: the messages {which} were deleted before they were offloaded"


def new_losses(table: TopicTable, listed: Mapping[Partition, PartitionLedgers]) -> list[DataLoss]:
    """Those that no commit has stepped over; ``listed`` is not younger than ``table``.

    A topic that was deleted and made again has none: its messages were deleted on purpose.
    """
    losses = (_new_loss(table, listing) for listing in listed.values())
    return [one for one in losses if one is not None]


def _new_loss(table: TopicTable, listing: PartitionLedgers) -> DataLoss | None:
    partition, created_at = listing.partition, table.created_at(listing.partition)
    if created_at is None:
        late = listing.trimmed and listing.ledgers and _is_newer(table, listing)
        return DataLoss(partition, UNKNOWN_LEDGER, listing.ledgers[0].ledger_id) if late else None
    if created_at != listing.created_at:
        return None
    if (expected := table.numbers(partition).expected) is not None:
        return loss_at(listing, expected)
    was_open = table.numbers(partition).open_ledger
    if was_open is None or _added_since(table, listing) <= _above(table, listing):
        return None
    return loss_at(listing, was_open)


def _is_newer(table: TopicTable, listing: PartitionLedgers) -> bool:
    """Return whether a partition's managed ledger was made after the table.

    False if Pulsar or the table does not say.
    """
    text = table.configuration.get(PARTITIONS_KEY)
    if not text or not listing.created_at:
        return False
    known: dict[str, str] = json.loads(text)
    return known.get(str(listing.partition.index)) != listing.created_at


def _added_since(table: TopicTable, listing: PartitionLedgers) -> int:
    """Entries added since the commit that saw none above the watermark: so many, or more."""
    before = table.numbers(listing.partition).added
    if before is None:
        return 0
    return listing.added if listing.added < before else listing.added - before


def _above(table: TopicTable, listing: PartitionLedgers) -> int:
    """Entries that there are above the watermark, by the broker's count."""
    watermark = table.watermark(listing.partition)
    return listing.kept - sum(one.entries for one in listing.ledgers if one.ledger_id <= watermark)


def created_ms(created_at: str) -> int:
    """Since the epoch; 0 where Pulsar does not print it as ISO 8601."""
    try:
        return int(datetime.fromisoformat(created_at).timestamp() * 1000)
    except ValueError:
        return 0


def loss_at(listing: PartitionLedgers, ledger: int) -> DataLoss | None:
    """The loss that begins with ``ledger``, which had entries, if it is not listed any more."""
    at = bisect_left(listing.ledgers, ledger, key=lambda one: one.ledger_id)
    # One that is newer than the list is not in it either.
    if at == len(listing.ledgers) or listing.ledgers[at].ledger_id == ledger:
        return None
    return DataLoss(listing.partition, ledger, listing.ledgers[at].ledger_id)


def declared_losses(
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    lost_ledgers: Collection[int],
) -> list[DataLoss]:
    """Those of ledgers that operators have declared lost, and that no commit has added."""
    return [
        DataLoss(partition, one.ledger_id, one.ledger_id)
        for partition, listing in listed.items()
        for one in listing.ledgers
        if one.ledger_id in lost_ledgers
        and one.ledger_id > (table.watermark(partition) if table else -1)
    ]


def recorded_losses(table: TopicTable) -> list[DataLoss]:
    """The losses that commits stepped over, as far as the log still has these."""
    if table.topic_numbers.data_loss is None:
        return []
    found = []
    ledgers = table.ledgers()
    for one, after in zip_longest(ledgers, ledgers[1:]):
        partition = Partition(table.topic, one.partition)
        if one.lost and after is not None:
            found.append(DataLoss(partition, one.ledger, after.ledger))
        elif one.declared_lost:
            found.append(DataLoss(partition, one.ledger, one.ledger))
    return found


def _recorded(table: TopicTable) -> list[str]:
    """A line for each; one where log clean-up has removed them all."""
    if table.topic_numbers.data_loss is None:
        return []
    forgotten = f"{table.topic}: messages were lost before they were offloaded, long ago"
    return [str(one) for one in recorded_losses(table)] or [forgotten]


def describe_data_loss(
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    lost_ledgers: Collection[int] = (),
) -> list[str]:
    """A line for each loss; one for all those that the log has forgotten."""
    found = declared_losses(table, listed, lost_ledgers)
    if table is not None:
        found = [*new_losses(table, listed), *found]
    return [*(_recorded(table) if table else ()), *map(str, found)]


def refuse_data_loss(
    table: TopicTable | None,
    listed: Mapping[Partition, PartitionLedgers],
    lost_ledgers: Collection[int] = (),
) -> None:
    """Raise ConfigurationError if messages are missing, for queries that did not allow it."""
    losses = describe_data_loss(table, listed, lost_ledgers)
    if losses:
        more = f" (and further data losses: {len(losses) - 1})" if len(losses) > 1 else ""
        raise ConfigurationError(
            f"{losses[0]}{more}", hint="query.allow_data_loss = true reads what there is"
        )
