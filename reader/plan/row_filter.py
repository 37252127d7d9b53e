"""What a filter needs, and what can have no row that matches it.

A filter is Arrow's own expression, of which nobody else can see the inside. So Arrow is asked: it
refuses a filter whose columns are not there, and it drops a dataset's fragments by what is
guaranteed of their rows. Hot segments are asked about as fragments too, which nobody opens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from reader.errors import ConfigurationError
from reader.model import Segment
from reader.model.columns import TIMESTAMP

Limits = Mapping[str, tuple[int | None, int | None]]
"""By column the least and the greatest value (times: µs), None where unknown."""


def both(one: pc.Expression | None, other: pc.Expression | None) -> pc.Expression | None:
    """What matches both; None: everything."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter and the columns that it uses."""

    expression: pc.Expression
    columns: tuple[str, ...]

    @classmethod
    def of(cls, expression: pc.Expression, columns: pa.Schema) -> RowFilter:
        """Return the filter of rows with ``columns``.

        Raises ConfigurationError for an expression that cannot be applied to them.
        """
        if "FieldPath(" in str(expression):
            # A number means another column in each tier's batches.
            raise ConfigurationError(
                "the filter names a column by its number",
                hint='by name: pyarrow.compute.field("id")',
            )
        try:
            columns.empty_table().filter(expression)
        except (pa.ArrowException, TypeError) as error:
            raise ConfigurationError(
                f"the filter cannot be applied: {' '.join(str(error).split())[:300]}",
                hint="a pyarrow.compute.Expression that is true or false, over the topic's columns",
            ) from error
        used = [name for name in columns.names if not _binds(expression, columns, without=name)]
        return cls(expression, tuple(used or ["__partition"]))  # rows without columns match nothing


def _binds(where: pc.Expression, columns: pa.Schema, *, without: str) -> bool:
    rest = pa.schema([field for field in columns if field.name != without])
    try:
        pads.InMemoryDataset(rest.empty_table()).scanner(filter=where)
    except pa.ArrowInvalid:
        return False
    return True


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
