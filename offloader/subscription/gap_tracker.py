"""What was seen of each partition's ledgers, so that one that goes unconverted is missed.

The log says which ledger was to be the next (``reader.plan.data_loss``), and all queries see that.
This process knows more: every ledger with entries that it saw listed since it started, and every
loss that it saw by a broker's counters, which an unload sets back.
"""

from collections.abc import Mapping, Sequence

from reader.model import Partition
from reader.plan import DataLoss, loss_at, new_losses
from reader.pulsar import PartitionLedgers
from reader.table import TopicTable


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
        # Creation time, and ledgers: with entries, or the first of a loss (-1: nobody knows which).
        self._seen: dict[Partition, tuple[str, set[int]]] = {}

    def lost(
        self,
        table: TopicTable | None,
        listed: Mapping[Partition, PartitionLedgers],
        given_up: Sequence[DataLoss] = (),
    ) -> list[DataLoss]:
        """What is missing now and in no commit, one for each run of ledgers; remembers the rest.

        ``listed`` is not younger than ``table``; ``given_up``: what else is known to be missing.
        What is missing is remembered, too, until a commit has stepped over it.
        """
        known = [*given_up, *(new_losses(table, listed) if table else ())]
        found = {(one.partition, one.before): one for one in known}
        for partition, listing in listed.items():
            watermark = table.watermark(partition) if table else -1
            created_at, seen = self._seen.get(partition, ("", set()))
            if created_at != listing.created_at:
                seen = set()  # a topic that was made again
            above = (ledger for ledger in sorted(seen) if watermark < max(ledger, 0))
            losses = (loss_at(listing, ledger) for ledger in above)
            gone = [loss for loss in losses if loss is not None]
            gone += (one for one in known if one.partition == partition)
            for loss in gone:
                found.setdefault((partition, loss.before), loss)
            remembered = {*filled_above(listing, watermark), *(loss.ledger for loss in gone)}
            self._seen[partition] = listing.created_at, remembered
        return sorted(found.values(), key=lambda one: (one.partition, one.ledger))
