"""What a filter needs, and what can have no row that matches it.

A filter is Arrow's own expression, of which nobody else can see the inside. So Arrow is asked: it
refuses a filter whose columns are not there, and it drops a dataset's fragments by what is
guaranteed of their rows. Hot segments are asked about as fragments too, which nobody opens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from reader.errors import ConfigurationError
from reader.model import Segment
from reader.model.columns import TIMESTAMP

__all__ = ["both", "filter_columns", "guarantee", "matching", "may_match"]

Limits = Mapping[str, tuple[int | None, int | None]]
"""By column the least and the greatest value (times: µs), None where unknown."""


def both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    """What matches both; None: everything."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def filter_columns(where: pc.Expression, columns: pa.Schema) -> list[str]:
    """Those that the filter uses. Raises ConfigurationError for one that cannot be applied."""
    if "FieldPath(" in str(where):
        # A number means another column in each tier's batches.
        raise ConfigurationError(
            "the filter names a column by its number", hint='by name: pyarrow.compute.field("id")'
        )
    try:
        columns.empty_table().filter(where)
    except (pa.ArrowException, TypeError) as error:
        raise ConfigurationError(
            f"the filter cannot be applied: {' '.join(str(error).split())[:300]}",
            hint="a pyarrow.compute.Expression that is true or false, over the topic's columns",
        ) from error
    return [name for name in columns.names if not _binds(where, columns, without=name)]


def _binds(where: pc.Expression, columns: pa.Schema, *, without: str) -> bool:
    rest = pa.schema([field for field in columns if field.name != without])
    try:
        pads.InMemoryDataset(rest.empty_table()).scanner(filter=where)
    except pa.ArrowInvalid:
        return False
    return True


def matching(batch: pa.RecordBatch, where: pc.Expression) -> pa.RecordBatch:
    """The rows for which ``where`` is true, filtered in the caller's thread.

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


def guarantee(limits: Limits) -> pc.Expression:
    """What is true of each row of something whose values lie within ``limits``, or are NULL."""
    found = pc.scalar(True)
    for name, (low, high) in limits.items():
        column, kind = pc.field(name), TIMESTAMP if name.endswith("Time") else pa.int64()
        if low is not None:
            found &= (column >= pa.scalar(low, kind)) | column.is_null()
        if high is not None:
            found &= (column <= pa.scalar(high, kind)) | column.is_null()
    return found


def may_match(
    segments: Sequence[Segment], where: pc.Expression | None, columns: pa.Schema
) -> list[Segment]:
    """The segments that may have a row which matches."""
    if where is None or not segments:
        return list(segments)
    parquet, nowhere = pads.ParquetFileFormat(), pafs.LocalFileSystem()
    fragments = [
        parquet.make_fragment(str(number), nowhere, guarantee(_limits(one)))
        for number, one in enumerate(segments)
    ]
    dataset = pads.FileSystemDataset(fragments, columns, parquet, nowhere)
    return [segments[int(one.path)] for one in dataset.get_fragments(filter=where)]


def _limits(one: Segment) -> Limits:
    index = one.partition.index
    return {
        "__partition": (index, index),
        "__ledgerId": (one.ledger_id, one.ledger_id),
        "__publishTime": (one.min_publish_time, one.max_publish_time),
    }
