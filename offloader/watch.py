"""What was seen of each partition's ledgers, so that one that goes unconverted is missed.

The log says which ledger was to be the next (``reader.gaps``), and all queries see that. This
process knows more: every ledger with entries that it saw listed since it started.
"""

from __future__ import annotations

from collections.abc import Mapping

from reader.admin import PartitionLedgers
from reader.gaps import Gap, new_gaps
from reader.model import Partition
from reader.table import TopicTable

__all__ = ["Watch", "filled_above"]


def filled_above(listing: PartitionLedgers, watermark: int) -> list[int]:
    """The listed ledgers above ``watermark`` that have entries, the open one included."""
    return [
        one.ledger_id
        for one in listing.ledgers
        if one.ledger_id > watermark and listing.last_entry(one) >= 0
    ]


class Watch:
    """Remembers listed ledgers from turn to turn; each partition for one thread at a time."""

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[str, list[int]]] = {}

    def gaps(
        self, table: TopicTable | None, listed: Mapping[Partition, PartitionLedgers]
    ) -> list[Gap]:
        """What is missing now and in no commit, one for each run of ledgers; remembers the rest.

        ``listed`` is not younger than ``table``.
        """
        found = (
            {(one.partition, one.before): one for one in new_gaps(table, listed)} if table else {}
        )
        for partition, listing in listed.items():
            watermark = table.watermark(partition) if table else -1
            created_at, seen = self._seen.get(partition, ("", []))
            there = [one.ledger_id for one in listing.ledgers]
            # A topic that was made again has a new creation time.
            for ledger in seen if created_at == listing.created_at else ():
                later = [one for one in there if one >= ledger]
                if ledger > watermark and later and later[0] != ledger:
                    found.setdefault((partition, later[0]), Gap(partition, ledger, later[0]))
            self._seen[partition] = listing.created_at, filled_above(listing, watermark)
        return sorted(found.values(), key=lambda one: (one.partition, one.ledger))
