"""One plan's rows as batches of exactly the wanted columns: files, hot splits, encrypted entries.

The table's files are read by pyarrow's own scanner, with its threads. Hot splits are read ahead in
a few threads, whose batches come in turn. So there is no order among rows.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.model import Position, Split
from reader.model.row_kinds import RowKind, is_not_kind
from reader.plan import (
    Plan,
    Predicate,
    Snapshot,
    make_plan,
    pack_splits,
    pinned_table,
    publish_range,
)
from reader.prefetch import Prefetched
from reader.scan.row_filter import both, filter_columns, guarantee, matching, may_match
from reader.table import file_errors, stored_name

__all__ = ["RowScan", "plan_scan"]

_MOST_THREADS = 4
_AHEAD = 2
"""Batches that a thread has ready, of a file or of splits."""
_LEAST_FILES = 2
"""Files that are read at once."""
_PACK_BYTES = 8 << 20
_BATCH_ROWS = 32_768
"""Of a file. By default pyarrow has 16 batches of 131,072 rows ready of each of 4 files: three
times the memory, and with two cores up to twice the time, which goes into new pages."""


@dataclass(frozen=True, slots=True)
class RowScan:
    """What is read: the plan, the columns of the answer, and which of the plan's rows match.

    ``needed``: those columns and what ``where`` uses.
    """

    plan: Plan
    columns: pa.Schema
    needed: pa.Schema
    where: pc.Expression | None

    def batches(self, clients: Clients) -> Generator[pa.RecordBatch]:
        """The rows, in no order; none of the batches is empty.

        Raises what reading raises (``reader.sources.base.RowSource.read``), and NotFoundError where
        a file or entry of the snapshot's table version is gone.
        """
        yield from self._cold(clients)
        yield from self._hot(clients)
        if self.plan.counted:
            yield _bare(self.plan.counted)
        yield from self._decrypted(clients)

    def _cold(self, clients: Clients) -> Generator[pa.RecordBatch]:
        files = [one.file for one in self.plan.cold if one.read]
        if not files:
            return
        snapshot, where = self.plan.snapshot, self.where
        if snapshot.ciphertext is not None:
            where = both(where, is_not_kind(RowKind.ENCRYPTED))
        filesystem, directory = clients.storage.directory(snapshot.topic)
        # As Spark reads them: in µs, whatever a file of another writer has.
        parquet = pads.ParquetFileFormat(coerce_int96_timestamp_unit="us")
        fragments = [
            parquet.make_fragment(
                f"{directory}/{stored_name(one.path)}",
                filesystem,
                None if where is None else guarantee(one.limits or {}),
            )
            for one in files
        ]
        dataset = pads.FileSystemDataset(fragments, snapshot.columns, parquet, filesystem)
        with file_errors(snapshot.topic, snapshot.version):
            scanner = dataset.scanner(
                columns=self.columns.names,
                filter=where,
                batch_size=_BATCH_ROWS,
                batch_readahead=_AHEAD,
                fragment_readahead=max(_LEAST_FILES, _threads()),
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield batch

    def _hot(self, clients: Clients) -> Generator[pa.RecordBatch]:
        segments = [one.segment for one in self.plan.segments if one.splits]
        wanted = {
            (one.partition, one.ledger_id)
            for one in may_match(segments, self.where, self.plan.snapshot.columns)
        }
        splits = [one for one in self.plan.splits if (one.partition, one.ledger_id) in wanted]
        if not splits:
            return
        total = sum(one.bytes for one in splits)
        threads = _threads()
        packs = pack_splits(splits, max(1, min(_PACK_BYTES, total // threads)))
        shares = [packs[number::threads] for number in range(min(threads, len(packs)))]
        with ExitStack() as stack:
            left = [
                stack.enter_context(Prefetched(self._read(clients, share), _AHEAD))
                for share in shares
            ]
            while left:
                for one in list(left):
                    batch = next(one, None)
                    if batch is None:
                        left.remove(one)
                    else:
                        yield batch

    def _read(self, clients: Clients, packs: Sequence[list[Split]]) -> Generator[pa.RecordBatch]:
        from reader.sources import read_splits  # kernels: not where only files are read

        for pack in packs:
            yield from self._matching(
                read_splits(
                    clients,
                    pack,
                    self._format(clients),
                    publish_range=publish_range(self.plan.predicates),
                )
            )

    def _decrypted(self, clients: Clients) -> Generator[pa.RecordBatch]:
        snapshot = self.plan.snapshot
        if snapshot.ciphertext is None:
            return
        from reader.sources import read_ciphertext

        table = pinned_table(clients.storage, snapshot)
        for partition in snapshot.ciphertext.partitions:
            yield from self._matching(
                read_ciphertext(
                    table,
                    partition,
                    self._format(clients),
                    clients.decryption(snapshot.topic),
                    publish_range=publish_range(self.plan.predicates),
                )
            )

    def _format(self, clients: Clients) -> Any:
        from reader.sources import RowFormat

        snapshot = self.plan.snapshot
        return RowFormat.of(clients.settings, snapshot, self.needed)

    def _matching(self, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        for batch in batches:
            found = batch if self.where is None else matching(batch, self.where)
            if found.num_rows:
                yield found if self.needed is self.columns else _selected(found, self.columns)


def plan_scan(
    clients: Clients,
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    predicates: Sequence[Predicate] = (),
    where: pc.Expression | None = None,
    *,
    start: Mapping[int, Position] | None = None,
    end: Mapping[int, Position] | None = None,
) -> RowScan:
    """What a scan of the snapshot reads. ``columns``: None for all.

    ``predicates``, ``start`` and ``end`` (by partition index) only prune: ``where`` decides.
    Raises ConfigurationError for an unknown column or a filter that cannot be applied.
    """
    everything = snapshot.columns
    wanted = _fields(everything, everything.names if columns is None else columns, snapshot)
    needed, times = wanted, False
    if where is not None:
        used = filter_columns(where, everything)
        times = "__publishTime" in used  # may_match prunes by them
        more = [name for name in used if name not in wanted.names]
        if not wanted.names and not more:
            more = ["__partition"]  # rows that are only counted are not filtered
        if more:
            needed = pa.schema([*wanted, *(everything.field(name) for name in more)])
    plan = make_plan(
        clients,
        snapshot,
        needed.names,
        predicates,
        start=start,
        end=end,
        parallelism=_threads(),
        describe=False,
        times=times,
    )
    return RowScan(plan, wanted, needed, where)


def _fields(columns: pa.Schema, names: Sequence[str], snapshot: Snapshot) -> pa.Schema:
    for number, name in enumerate(names):
        if name not in columns.names:
            raise ConfigurationError(
                f"topic {snapshot.topic} has no column {name}",
                hint="columns: " + ", ".join(columns.names),
            )
        if name in names[:number]:
            raise ConfigurationError(f"column {name} is asked for twice", hint="name it once")
    return pa.schema([columns.field(name) for name in names])


def _selected(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    return batch.select(columns.names) if columns.names else _bare(batch.num_rows)


def _bare(count: int) -> pa.RecordBatch:
    from reader.sources import bare_rows

    return bare_rows(count)


def _threads() -> int:
    return max(1, min(_MOST_THREADS, os.cpu_count() or 1))
