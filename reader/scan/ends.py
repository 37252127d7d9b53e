"""A topic's first or last messages, without reading what lies between.

Within a partition messages have the log's order; those of several partitions are merged by publish
time. An entry mostly holds a message or more. So as many entries as messages are wanted are read
at the partition's end, and where their rows are too few (markers, aborted transactions, chunks),
sixteen times as many. Where files begin and end, Parquet's row groups say; what is read, and
whether it is enough, their rows.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reader.clients import Clients
from reader.model import Position
from reader.plan import Plan, Snapshot, pinned_table
from reader.scan.bounds import within
from reader.scan.row_scan import RowScan, plan_scan
from reader.table import file_errors, stored_name

_POSITION = ("__partition", "__ledgerId", "__entryId", "__batchIndex")
_TIME = "__publishTime"
ORDER_COLUMNS = (*_POSITION, _TIME)
"""By which rows are put in order."""
_WIDER = 16
_LAST_LEDGER = 1 << 62


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Where rows lie: positions first..last (inclusive), and at least how many entries of them."""

    first: Position
    last: Position
    entries: int


def end_rows(
    clients: Clients, snapshot: Snapshot, columns: Sequence[str] | None, count: int, *, newest: bool
) -> pa.Table:
    """The first (or ``newest``: last) ``count`` rows of the snapshot, oldest first.

    Raises as ``plan_scan`` and as reading does.
    """
    names = list(snapshot.columns.names if columns is None else columns)
    extra = [name for name in ORDER_COLUMNS if name not in names]
    scan = plan_scan(clients, snapshot, [*names, *extra])
    stretches = _Stretches(clients, scan.plan)
    found: dict[int, pa.Table] = {}
    wanted, entries = stretches.partitions, max(1, count)
    while wanted:
        bounds = {index: _bounds(stretches.of(index, newest), entries, newest) for index in wanted}
        rows = in_log_order(within(scan, bounds), clients)
        found |= rows
        wanted = [
            index
            for index in wanted
            if bounds[index] != (None, None)
            and (index not in found or found[index].num_rows < count)
        ]
        entries *= _WIDER
    ends = [
        one.slice(max(0, one.num_rows - count)) if newest else one.slice(0, count)
        for _, one in sorted(found.items())
    ]
    return merged(ends, scan.columns, count, newest).select(names)


def in_log_order(scan: RowScan, clients: Clients) -> dict[int, pa.Table]:
    """All rows of a scan with the position columns, by partition, each in the order of the log."""
    rows = pa.Table.from_batches(scan.batches(clients), scan.columns)
    if not rows.num_rows:
        return {}
    # Not ``sort_by``: it uses Arrow's threads, see ``matching``.
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in _POSITION])
    rows = rows.take(order)
    indexes = rows.column("__partition").to_pylist()
    found, first = {}, 0
    for index, run in groupby(indexes):
        length = sum(1 for _ in run)
        found[int(index)] = rows.slice(first, length)
        first += length
    return found


def merged(parts: Sequence[pa.Table], columns: pa.Schema, count: int, newest: bool) -> pa.Table:
    """By publish time, each part in its order: the first (last) ``count`` rows of all."""
    everything = pa.concat_tables(parts) if parts else columns.empty_table()
    runs: list[list[tuple[int, int]]] = []
    first = 0
    for part in parts:
        times = part.column(_TIME).cast(pa.int64()).to_pylist()
        run = [(0 if time is None else time, first + n) for n, time in enumerate(times)]
        runs.append(run[::-1] if newest else run)
        first += part.num_rows
    order = heapq.merge(*runs, key=lambda one: one[0], reverse=newest)
    taken = [row for (_, row), _ in zip(order, range(count), strict=False)]
    return everything.take(pa.array(taken[::-1] if newest else taken, pa.int64()))


def _bounds(
    stretches: Iterable[_Stretch], entries: int, newest: bool
) -> tuple[Position | None, Position | None]:
    """How far so many entries reach; (None, None): over everything."""
    left = entries
    for one in stretches:
        if one.first.ledger == one.last.ledger and one.entries >= left:
            if newest:
                return Position(one.last.ledger, one.last.entry - left + 1), None
            return None, Position(one.first.ledger, one.first.entry + left - 1)
        left -= one.entries
        if left <= 0:
            return (one.first, None) if newest else (None, one.last)
    return None, None


class _Stretches:
    """Where a plan's rows lie: row groups of files, and hot segments."""

    def __init__(self, clients: Clients, plan: Plan) -> None:
        self._clients = clients
        self._plan = plan
        self._row_groups: dict[str, list[_Stretch]] = {}

    @property
    def partitions(self) -> list[int]:
        """All that may have rows."""
        found = {one.segment.partition.index for one in self._plan.segments if one.splits}
        limits = {one.file.limit("__partition") for one in self._plan.cold}
        for low, high in limits:
            if low is None or high is None:  # a file without statistics
                table = pinned_table(self._clients.storage, self._plan.snapshot)
                found |= {one.index for one in table.partitions()}
            else:
                found |= set(range(low, high + 1))
        return sorted(found)

    def of(self, index: int, newest: bool) -> Iterator[_Stretch]:
        """The partition's, from the one end to the other; files are looked into when it is asked
        for. Some may be out of order."""
        hot = [
            _Stretch(
                Position(one.segment.ledger_id, 0),
                Position(one.segment.ledger_id, one.segment.last_entry),
                one.segment.last_entry + 1,
            )
            for one in self._plan.segments
            if one.splits and one.segment.partition.index == index
        ]
        if newest:
            yield from reversed(hot)
            yield from self._cold(index, newest)
        else:
            yield from self._cold(index, newest)
            yield from hot

    def _cold(self, index: int, newest: bool) -> Iterator[_Stretch]:
        files: list[tuple[int, str]] = []
        for one in self._plan.cold:
            low, high = one.file.limit("__partition")
            if (low is None or low <= index) and (high is None or high >= index):
                ledger = one.file.limit("__ledgerId")[1 if newest else 0]
                files.append((-1 if ledger is None else ledger, one.file.path))
        for _, group in groupby(sorted(files, reverse=newest), key=lambda one: one[0]):
            found = [stretch for _, path in group for stretch in self._groups_of(path)]
            if newest:
                yield from sorted(found, key=lambda one: one.last, reverse=True)
            else:
                yield from sorted(found, key=lambda one: one.first)

    def _groups_of(self, path: str) -> list[_Stretch]:
        if path not in self._row_groups:
            snapshot = self._plan.snapshot
            filesystem, directory = self._clients.storage.directory(snapshot.topic)
            with (
                file_errors(snapshot.topic, snapshot.version),
                pq.ParquetFile(f"{directory}/{stored_name(path)}", filesystem=filesystem) as file,
            ):
                self._row_groups[path] = list(_row_groups(file.metadata))
        return self._row_groups[path]


def _row_groups(metadata: Any) -> Iterator[_Stretch]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns: Any = {
            one.path_in_schema: one.statistics
            for one in (group.column(at) for at in range(group.num_columns))
            if one.path_in_schema in _POSITION
        }
        ledgers, entries = columns.get("__ledgerId"), columns.get("__entryId")
        if not all(one is not None and one.has_min_max for one in (ledgers, entries)):
            yield _Stretch(Position(-1, 0), Position(_LAST_LEDGER, 0), group.num_rows)
        elif ledgers.min == ledgers.max:
            first, last = (Position(ledgers.min, at) for at in (entries.min, entries.max))
            yield _Stretch(first, last, last.entry - first.entry + 1)
        else:
            last = Position(ledgers.max, entries.max)
            yield _Stretch(Position(ledgers.min, 0), last, group.num_rows)
