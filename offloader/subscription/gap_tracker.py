"""What was seen of each partition's ledgers, so that one that goes unconverted is missed.

The log says which ledger was to be the next (``reader.plan.data_loss``), and all queries see that.
This process knows more: every ledger with entries that it saw listed since it started.
"""

from __future__ import annotations

from collections.abc import Mapping

from reader.model import Partition
from reader.plan import DataLoss, loss_at, new_losses
from reader.pulsar import PartitionLedgers
from reader.table import TopicTable

__all__ = ["GapTracker", "filled_above"]


def filled_above(listing: PartitionLedgers, watermark: int) -> list[int]:
    """The listed ledgers above ``watermark`` that have entries, the open one included."""
    return [
        one.ledger_id
        for one in listing.ledgers
        if one.ledger_id > watermark and listing.last_entry(one) >= 0
    ]


class GapTracker:
    """Remembers listed ledgers from turn to turn; each partition for one thread at a time."""

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[str, list[int]]] = {}

    def lost(
        self, table: TopicTable | None, listed: Mapping[Partition, PartitionLedgers]
    ) -> list[DataLoss]:
        """What is missing now and in no commit, one for each run of ledgers; remembers the rest.

        ``listed`` is not younger than ``table``. What is missing is remembered, too, until a
        commit has stepped over it.
        """
        known = new_losses(table, listed) if table else []
        found = {(one.partition, one.before): one for one in known}
        for partition, listing in listed.items():
            watermark = table.watermark(partition) if table else -1
            created_at, seen = self._seen.get(partition, ("", []))
            if created_at != listing.created_at:
                seen = []  # a topic that was made again
            losses = (loss_at(listing, ledger) for ledger in seen if ledger > watermark)
            gone = [loss for loss in losses if loss is not None]
            for loss in gone:
                found.setdefault((partition, loss.before), loss)
            remembered = [loss.ledger for loss in gone] + filled_above(listing, watermark)
            self._seen[partition] = listing.created_at, sorted(remembered)
        return sorted(found.values(), key=lambda one: (one.partition, one.ledger))
