"""Files of a table into one, with the writer that made them: the same options and statistics.

Columns that a file lacks, because the table got them later, are NULL in the new one. Memory: a row
group of each file that is open at a time, and one of the new file.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from offloader.commit import is_compatible, recorded_statistics
from offloader.maintenance.merge import SortedFile, merge_rows
from offloader.maintenance.table_files import TableFile
from offloader.output import ExpiredRows, WrittenFile
from offloader.parquet import ParquetWriter, statistics_columns
from reader.errors import CorruptError, UnavailableError, plain_text
from reader.model import Position
from reader.model.columns import FIRST_CHUNK, TIMESTAMP, last_given_up
from reader.model.row_kinds import KIND_COLUMN
from reader.sources import conform
from reader.storage import Storage
from reader.table import TopicTable, stored_name

_BATCH_ROWS = 1 << 14
_PLACE = ("__ledgerId", "__entryId")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """``file``: None, if no row was left. ``dropped``: how many rows were too old; ``expired``:
    which (None: none were)."""

    file: WrittenFile | None
    dropped: int = 0
    expired: ExpiredRows | None = None


def rewrite(
    storage: Storage,
    table: TopicTable,
    files: Sequence[TableFile],
    *,
    published_from: int | None = None,
    raise_if_stopped: Callable[[], None] = lambda: None,
) -> Rewritten:
    """Write the rows of ``files``, of one partition, as one file.

    ``published_from`` (µs) leaves out the rows that were published before. ``raise_if_stopped`` is
    called for each batch. Raises CorruptError where a file does not fit the table, or has not the
    rows that the log says, and UnavailableError.
    """
    filesystem, directory = storage.directory(table.topic)
    schema = table.schema
    kept = dropped = 0
    expired: ExpiredRows | None = None

    def read(file: TableFile) -> Iterator[pa.RecordBatch]:
        nonlocal kept, dropped, expired
        path = f"{directory}/{file.path}"
        with _reading(path), filesystem.open_input_file(path) as source:
            opened = pq.ParquetFile(source, pre_buffer=True)
            _check(file, opened, schema)
            for group in range(opened.num_row_groups):
                for batch in opened.iter_batches(
                    _BATCH_ROWS, row_groups=[group], use_threads=False
                ):
                    raise_if_stopped()
                    young = batch
                    if published_from is not None:
                        keep = _is_young(batch, published_from)
                        young, old = batch.filter(keep), batch.filter(pc.invert(keep))
                        dropped += old.num_rows
                        expired = _with(expired, old)
                    kept += young.num_rows
                    yield conform(young, schema)

    sources = [SortedFile(one.first, lambda one=one: read(one)) for one in files]  # type: ignore[misc]
    statistics = statistics_columns(schema, recorded_statistics(table))
    written = ParquetWriter(storage, table.topic, schema, statistics).write(
        files[0].partition, files[0].ledgers[0], ((0, batch) for batch in merge_rows(sources))
    )
    expected = sum(one.rows for one in files)
    if kept + dropped != expected or (written.rows if written else 0) != kept:
        raise CorruptError(
            f"the files to rewrite of {table.topic} have {kept + dropped} rows, "
            f"not the {expected} of the log"
        )
    return Rewritten(written, dropped, expired)


def range_of(storage: Storage, table: TopicTable, file: TableFile) -> ExpiredRows:
    """Return the range of all rows of a file.

    Raises UnavailableError if it cannot be read, CorruptError if it has no row.
    """
    filesystem, directory = storage.directory(table.topic)
    path, found = f"{directory}/{stored_name(file.path)}", None
    with _reading(path), filesystem.open_input_file(path) as source:
        opened = pq.ParquetFile(source, pre_buffer=True)
        columns = [*_PLACE, KIND_COLUMN, *FIRST_CHUNK]
        for batch in opened.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            found = _with(found, batch)
    if found is None:
        raise CorruptError(f"{path} has no row, not the {file.rows} of the log")
    return found


def _with(known: ExpiredRows | None, rows: pa.RecordBatch) -> ExpiredRows | None:
    """Return the range of the rows ``known`` before and of some more, if there are any."""
    ledgers, entries = (rows.column(name) for name in _PLACE)
    first, last = pc.min(ledgers), pc.max(ledgers)
    if not last.is_valid:
        return known
    entry = pc.max(entries.filter(pc.equal(ledgers, last)))
    found = ExpiredRows(first.as_py(), Position(last.as_py(), entry.as_py()), last_given_up(rows))
    return found if known is None else known.joined(found)


def _check(file: TableFile, opened: pq.ParquetFile, schema: pa.Schema) -> None:
    """A column that the table does not have, or has otherwise, would be lost."""
    for field in opened.schema_arrow:
        known = field.name in schema.names
        if not known or not is_compatible(field.type, schema.field(field.name).type):
            raise CorruptError(
                f"{file.path} has column {field.name} as {field.type}, unlike the table: "
                "not rewritten"
            )


def _is_young(batch: pa.RecordBatch, published_from: int) -> pa.Array:
    """Which rows are not too old; those without a publish time stay."""
    limit = pa.scalar(published_from, TIMESTAMP)
    return pc.fill_null(pc.greater_equal(batch.column("__publishTime"), limit), True)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise UnavailableError(
            f"cannot read {path}: {plain_text(error)}", hint="check storage.uri and storage.options"
        ) from error
