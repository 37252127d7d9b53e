"""The lowest ledger of which a partition has rows in a table."""

from __future__ import annotations

import pyarrow.compute as pc

from reader.model import Partition
from reader.table.topic_table import TopicTable

__all__ = ["first_ledger"]


def first_ledger(table: TopicTable, partition: Partition) -> int | None:
    """The lowest ledger of which ``partition`` has rows; None: it has no rows.

    The files' statistics give it where each file has rows of one partition. Rows are read only of
    files that have several, and of files without statistics.
    """
    files, where = table.files(), pc.field("__partition") == partition.index
    lowest: int | None = None
    if "min.__ledgerId" in files.schema.names:
        names = ("min.__partition", "max.__partition", "min.__ledgerId")
        columns = [files.column(name).to_pylist() for name in names]
        alone = [
            low
            for least, most, low in zip(*columns, strict=True)
            if least == most == partition.index and low is not None
        ]
        lowest = min(alone, default=None)
    if lowest is not None:
        where &= pc.field("__ledgerId") < lowest
    for batch in table.batches(["__ledgerId"], where):
        if batch.num_rows:
            low = int(pc.min(batch.column(0)).as_py())
            lowest = low if lowest is None else min(lowest, low)
    return lowest
