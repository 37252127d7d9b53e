"""The files of one table version, with what their statistics say."""

from dataclasses import dataclass

import pyarrow as pa

from reader.model.columns import TIMESTAMP
from reader.table import TopicTable


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file of one partition (index).

    ``ledgers`` and ``entries``: least and greatest id of its rows. ``published``: the range of
    publish times that holds all of them (µs; None: unknown, or no row has one).
    """

    path: str
    size: int
    rows: int
    partition: int
    ledgers: tuple[int, int]
    entries: tuple[int, int]
    published: tuple[int, int] | None

    @property
    def first(self) -> tuple[int, int, int]:
        """Where it begins in its partition: no row comes before this (ledger, entry, -1)."""
        low, high = self.ledgers
        return low, self.entries[0] if low == high else -1, -1


def files_of(table: TopicTable) -> list[TableFile]:
    """By partition, then in the order of their rows.

    Files without the statistics that all of ours have are left out: an external writer's.
    """
    actions = table.files()
    for name in actions.schema.names:
        if name.endswith(".__publishTime"):
            column = actions.schema.get_field_index(name)
            micros = actions.column(column).cast(TIMESTAMP).cast(pa.int64())
            actions = actions.set_column(column, name, micros)
    found = []
    for row in actions.to_pylist():
        needed = ("__partition", "__ledgerId", "__entryId")
        ranges = [(row.get(f"min.{name}"), row.get(f"max.{name}")) for name in needed]
        if row.get("num_records") is None or any(None in one for one in ranges):
            continue
        (partition, last_partition), ledgers, entries = ranges
        if partition != last_partition:
            continue
        published = row.get("min.__publishTime"), row.get("max.__publishTime")
        found.append(
            TableFile(
                path=row["path"],
                size=row["size_bytes"],
                rows=row["num_records"],
                partition=partition,
                ledgers=ledgers,
                entries=entries,
                published=None if None in published else published,
            )
        )
    return sorted(found, key=lambda one: (one.partition, one.first, one.ledgers[1], one.entries))
