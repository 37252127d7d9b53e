"""The one executor of reads: a read, as a plan has it, to Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from reader import plan
from reader.model.columns import METADATA
from reader.sources.parquet_files import read_files
from reader.sources.row_format import RowFormat, bare_rows

if TYPE_CHECKING:  # kernels: not where only files are read
    from reader.decode import ChunkMemory
    from reader.sources.source_clients import SourceClients


def read_rows(
    clients: SourceClients,
    read: plan.Read,
    rows: RowFormat,
    where: plan.RowFilter | None = None,
    *,
    chunks: ChunkMemory | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one read as batches of exactly ``rows.columns``; none is empty.

    where: only rows that match it. chunks: collects how much of each chunked message was read, by
    uuid. Splits give their rows in the order of the log, each file in its own order
    (``reader.stream.entry_sizes`` goes by that), other reads in no order.

    Raises what reading raises (``reader.sources.base.RowSource.read``), and NotFoundError if a file
    or an entry of the table's version is gone.
    """
    if isinstance(read, plan.CountRead):
        yield bare_rows(read.rows)
        return
    if isinstance(read, plan.FilesRead):  # pyarrow filters them, row group by row group
        yield from read_files(clients.storage, read, rows, where)
        return
    wanted = rows if where is None else replace(rows, columns=_with_filter(rows, where))
    for batch in _read(clients, read, wanted, chunks):
        if where is not None:
            batch = matching(batch, where.expression)
        if batch.num_rows:
            yield _selected(batch, rows.columns)


def _read(
    clients: SourceClients, read: plan.Read, rows: RowFormat, chunks: ChunkMemory | None
) -> Iterator[pa.RecordBatch]:
    # Kernels: not where only files are read.
    match read:
        case plan.SplitsRead():
            from reader.sources.split_reader import read_splits

            return read_splits(clients, read, rows, chunks=chunks)
        case plan.EncryptedRead():
            from reader.sources.encrypted import read_encrypted

            return read_encrypted(clients, read, rows)
        case plan.CompactedRead():
            from reader.sources.compacted import read_compacted

            return read_compacted(clients, read.part, rows)
    raise AssertionError(f"no source reads {read}")


def _with_filter(rows: RowFormat, where: plan.RowFilter) -> pa.Schema:
    """Return the wanted columns and those that only the filter uses."""
    more = [name for name in where.columns if name not in rows.columns.names]
    there = {field.name: field for field in (*METADATA, *rows.fields)}
    return pa.schema([*rows.columns, *(there[name] for name in more)])


def _selected(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    if batch.num_columns == len(columns):
        return batch
    return batch.select(columns.names) if columns.names else bare_rows(batch.num_rows)


def matching(batch: pa.RecordBatch, where: pc.Expression) -> pa.RecordBatch:
    """Return the rows for which ``where`` is true, filtered in the caller's thread.

    ``batch.filter`` uses Arrow's threads, which may drop the rows last, a moment after it returned.
    Decoded rows lie in memory of Python's, and the interpreter may have begun to end: the process
    aborts (apache/arrow issue 49942).
    """
    import pyarrow.acero as acero  # not where nothing is filtered

    steps = [
        acero.Declaration(
            "table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
        ),
        acero.Declaration("filter", acero.FilterNodeOptions(where)),
    ]
    found = acero.Declaration.from_sequence(steps).to_table(use_threads=False)
    return found.combine_chunks().to_batches()[0] if found.num_rows else batch.slice(0, 0)
