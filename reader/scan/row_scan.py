"""One plan's rows as batches of exactly the wanted columns.

Splits are read ahead in a few threads, whose batches come in turn. So there is no order among rows.
"""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from reader import plan as plans
from reader.clients import Clients
from reader.errors import ConfigurationError
from reader.prefetch import Prefetched

_MOST_THREADS = 4
_AHEAD = 2
"""Batches that a thread has ready."""
_SPLIT_BYTES = (1, 8 << 20)
_ALL_FILES = 1 << 62


@dataclass(frozen=True, slots=True)
class RowScan:
    """What is read: the plan, the columns of the answer, and which of the plan's rows match."""

    plan: plans.Plan
    columns: pa.Schema
    where: plans.RowFilter | None

    def batches(self, clients: Clients) -> Generator[pa.RecordBatch]:
        """Yield the rows, in no order; none of the batches is empty. Raises as ``read_rows``."""
        threads = _threads()
        reads = plans.plan_reads(
            self.plan, threads, split_bytes=_SPLIT_BYTES, file_bytes=_ALL_FILES
        )
        for ahead, some in groupby(reads, key=lambda read: isinstance(read, plans.SplitsRead)):
            shares = [*some]
            if not ahead:
                yield from self._read(clients, shares)
                continue
            with ExitStack() as stack:
                pending = [
                    stack.enter_context(
                        Prefetched(self._read(clients, shares[number::threads]), _AHEAD)
                    )
                    for number in range(min(threads, len(shares)))
                ]
                while pending:
                    for share in list(pending):
                        batch = next(share, None)
                        if batch is None:
                            pending.remove(share)
                        else:
                            yield batch

    def _read(self, clients: Clients, reads: Iterable[plans.Read]) -> Generator[pa.RecordBatch]:
        from reader.sources import RowFormat, read_rows  # not where nothing is read

        plan = self.plan
        rows = RowFormat.of(clients.settings, plan.snapshot, self.columns, plan.predicates)
        for read in reads:
            yield from read_rows(clients, read, rows, self.where)


def plan_scan(
    clients: Clients,
    snapshot: plans.Snapshot,
    columns: Sequence[str] | None = None,
    predicates: Sequence[plans.Predicate] = (),
    where: pc.Expression | None = None,
    *,
    bounds: plans.Bounds | None = None,
) -> RowScan:
    """Return what a scan of the snapshot reads.

    columns: None for all. predicates, bounds: prune only; ``where`` decides. Raises
    ConfigurationError for an unknown column or a filter that cannot be applied.
    """
    everything = snapshot.columns
    wanted = _fields(everything, everything.names if columns is None else columns, snapshot)
    used = None if where is None else plans.RowFilter.of(where, everything)
    names = wanted.names if used is None else [*dict.fromkeys([*wanted.names, *used.columns])]
    plan = plans.make_plan(
        clients,
        snapshot,
        names,
        predicates,
        bounds=bounds,
        parallelism=_threads(),
        describe=False,
        times=used is not None and "__publishTime" in used.columns,  # may_match prunes by them
    )
    if used is not None:
        segments = [one.segment for one in plan.segments if one.splits]
        kept = {
            (one.partition, one.ledger_id)
            for one in plans.may_match(segments, used.expression, everything)
        }
        plan = replace(
            plan,
            segments=tuple(
                one
                if (one.segment.partition, one.segment.ledger_id) in kept
                else replace(one, splits=())
                for one in plan.segments
            ),
        )
    return RowScan(plan, wanted, used)


def _fields(columns: pa.Schema, names: Sequence[str], snapshot: plans.Snapshot) -> pa.Schema:
    for number, name in enumerate(names):
        if name not in columns.names:
            raise ConfigurationError(
                f"topic {snapshot.topic} has no column {name}",
                hint="columns: " + ", ".join(columns.names),
            )
        if name in names[:number]:
            raise ConfigurationError(f"column {name} is asked for twice", hint="name it once")
    return pa.schema([columns.field(name) for name in names])


def _threads() -> int:
    return max(1, min(_MOST_THREADS, os.cpu_count() or 1))
