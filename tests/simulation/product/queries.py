"""What a query gives: a snapshot, its plan, and the rows that tasks and Spark would read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from reader.clients import Clients
from reader.model import Topic
from reader.model.columns import GIVEN_UP_ERROR, STRAY_ERROR
from reader.plan import Plan, Predicate, from_token, make_plan, take_snapshot, to_token
from reader.plan.snapshot import Snapshot
from reader.sources import RowFormat, read_splits
from reader.sources.delta import ColdFiles, read_cold
from testbed.simulation import Row, RowKind

__all__ = ["PinnedQuery", "count", "pin"]

_PLACE = ("__partition", "__ledgerId", "__entryId", "__batchIndex")
_COLUMNS = (*_PLACE, "__publishTime", "__error", "__rescued", "value")

_RESCUED = {STRAY_ERROR: RowKind.STRAY, GIVEN_UP_ERROR: RowKind.GIVEN_UP}


@dataclass(frozen=True, slots=True)
class PinnedQuery:
    """A query whose snapshot was taken. ``token``: its hot half goes through one, as in Spark."""

    plan: Plan
    token: str | None
    predicates: tuple[Predicate, ...]

    def rows(self, clients: Clients) -> list[Row]:
        """Run it. Raises PulsarLakeError."""
        snapshot = self.plan.snapshot
        hot = self.plan
        if self.token is not None:
            again = replace(
                from_token(clients.admin, snapshot.topic, self.token), cold=(), unreadable=()
            )
            hot = make_plan(
                clients, replace(again, version=None), _COLUMNS, self.predicates, describe=False
            )
        columns = pa.schema([snapshot.columns.field(name) for name in _COLUMNS])
        batches = list(_cold(clients, self.plan, columns))
        form = RowFormat(snapshot.fields, hot.snapshot.schemas, columns)
        batches += [batch for _, batch in read_splits(clients, hot.splits, form)]
        return [row for batch in batches for row in _rows(batch, self.predicates)]


def pin(
    clients: Clients,
    topic: Topic,
    *,
    tiers: str | None = None,
    published_from: int | None = None,
    token: bool = False,
) -> PinnedQuery:
    """A query of all columns. ``published_from``: µs, a condition that prunes.

    Raises PulsarLakeError.
    """
    predicates: Sequence[Predicate] = ()
    if published_from is not None:
        predicates = (Predicate("__publishTime", ">=", (published_from,)),)
    snapshot = _with_value(take_snapshot(clients, topic, tiers=tiers))
    plan = make_plan(clients, snapshot, _COLUMNS, predicates)
    return PinnedQuery(plan, to_token(snapshot) if token else None, tuple(predicates))


def _with_value(snapshot: Snapshot) -> Snapshot:
    """A topic without schema and table has its column all the same."""
    if "value" in snapshot.fields.names:
        return snapshot
    return replace(snapshot, fields=pa.schema([("value", pa.binary())]))


def count(clients: Clients, topic: Topic) -> int:
    """``count(*)``. Raises PulsarLakeError."""
    snapshot = take_snapshot(clients, topic)
    plan = make_plan(clients, snapshot, ())
    nothing = pa.schema([])
    form = RowFormat(snapshot.fields, snapshot.schemas, nothing)
    found = plan.counted
    found += sum(int(b.num_rows) for _, b in read_splits(clients, plan.splits, form))
    return found + sum(int(b.num_rows) for b in _cold(clients, plan, nothing))


def _cold(clients: Clients, plan: Plan, columns: pa.Schema) -> list[pa.RecordBatch]:
    if not any(one.read for one in plan.cold):
        return []
    _, directory = clients.storage.directory(plan.topic)
    paths = tuple(f"{directory}/{one.file.path}" for one in plan.cold if one.read)
    return list(read_cold(clients.storage, ColdFiles(paths), columns))


def _rows(batch: pa.RecordBatch, predicates: Sequence[Predicate]) -> list[Row]:
    columns = {name: batch.column(name) for name in _COLUMNS}
    places = zip(*(columns[name].to_pylist() for name in _PLACE), strict=True)
    times = columns["__publishTime"].cast(pa.int64()).to_pylist()
    contents = zip(
        *(columns[name].to_pylist() for name in ("value", "__error", "__rescued")), strict=True
    )
    low = predicates[0].values[0] if predicates else None
    return [
        (place, *_content(*content))
        for place, content, at in zip(places, contents, times, strict=True)
        if low is None or at >= low
    ]


def _content(
    value: bytes | None, error: str | None, rescued: bytes | None
) -> tuple[bytes | None, RowKind]:
    if error is None and rescued is None:
        return value, RowKind.MESSAGE
    if error is not None and rescued is not None and value is None:
        for begin, kind in _RESCUED.items():
            if error.startswith(begin):
                return rescued, kind
    return value, RowKind.UNEXPECTED
