"""A compacted view of the product: what it reads, and the latest message of each key of that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reader.clients import Clients
from reader.model import Topic
from reader.plan import Plan, make_plan, take_snapshot
from reader.plan.reads import CompactedRead, SplitsRead
from reader.sources import RowFormat, read_rows
from tests.simulation.product.queries import read_cold_files, with_value

View = dict[tuple[int, bytes], bytes]
"""The value of each partition and key."""

_PLACE = ("__partition", "__ledgerId", "__entryId")
_NAMES = (*_PLACE, "__key", "__tombstone", "__error", "value")


@dataclass(frozen=True, slots=True)
class CompactedView:
    """A view whose snapshot was taken."""

    plan: Plan

    @classmethod
    def of(cls, clients: Clients, topic: Topic) -> CompactedView:
        """Raises PulsarLakeError."""
        snapshot = with_value(take_snapshot(clients, topic, compacted=True))
        return cls(make_plan(clients, snapshot, _NAMES))

    def read(self, clients: Clients) -> View:
        """Return the view as Spark makes it of the rows (``spark_ext.planner.relations``).

        Raises PulsarLakeError.
        """
        snapshot = self.plan.snapshot
        columns = pa.schema([snapshot.columns.field(name) for name in _NAMES])
        form = RowFormat.of(clients.settings, snapshot, columns)
        rows: list[dict[str, Any]] = []
        for part in snapshot.compacted:
            rows += _rows(read_rows(clients, CompactedRead(part), form))
        left_out = {one.partition.index: one for one in snapshot.compacted}
        for row in _rows(read_cold_files(clients, self.plan, columns)):
            missing = left_out.get(row["__partition"])
            if missing is None or not missing.first <= row["__ledgerId"] < missing.before:
                rows.append(row)
        rows += _rows(read_rows(clients, SplitsRead(self.plan.splits), form))
        rows.sort(key=lambda row: tuple(row[name] for name in _PLACE))
        latest = {(row["__partition"], row["__key"].encode()): row for row in rows}
        return {key: row["value"] for key, row in latest.items() if not row["__tombstone"]}


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterable[dict[str, Any]]:
    for batch in batches:
        for row in batch.to_pylist():
            assert row["__error"] is None, row
            yield row
