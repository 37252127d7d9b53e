"""Rows out of the Parquet files of a topic's table, by pyarrow's own scanner and its threads."""

import os
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.dataset as pads

from reader.model.columns import METADATA
from reader.model.row_kinds import RowKind, is_not_kind
from reader.plan import FilesRead, RowFilter, both, guarantee
from reader.sources.row_format import RowFormat
from reader.storage import Storage
from reader.table import file_errors, stored_name

_AHEAD = 2
"""Batches of a file that are ready."""
_LEAST_FILES = 2
"""Files that are read at once."""
_MOST_FILES = 4
BATCH_ROWS = 32_768
"""Of a file. By default pyarrow has 16 batches of 131,072 rows ready of each of 4 files: three
times the memory, and with two cores up to twice the time, which goes into new pages."""


def read_files(
    storage: Storage, read: FilesRead, rows: RowFormat, where: RowFilter | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the files' rows that match, in order, with ``rows.columns``.

    What a file lacks is NULL. No batch is empty. Raises NotFoundError if a file is gone,
    UnavailableError if the storage does not answer, and CorruptError for a file that is no Parquet
    file.
    """
    expression = None if where is None else where.expression
    if read.without_encrypted:
        expression = both(expression, is_not_kind(RowKind.ENCRYPTED))
    filesystem, directory = storage.directory(read.topic)
    # As Spark reads them: in µs, whatever a file of another writer has.
    parquet = pads.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    fragments = [
        parquet.make_fragment(
            f"{directory}/{stored_name(file.path)}",
            filesystem,
            None if expression is None else guarantee(file.limits or {}),
        )
        for file in read.files
    ]
    columns = pa.schema([*rows.fields, *METADATA])
    dataset = pads.FileSystemDataset(fragments, columns, parquet, filesystem)
    with file_errors(read.topic, read.version):
        scanner = dataset.scanner(
            columns=rows.columns.names,
            filter=expression,
            batch_size=BATCH_ROWS,
            batch_readahead=_AHEAD,
            fragment_readahead=max(_LEAST_FILES, min(_MOST_FILES, os.cpu_count() or 1)),
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield batch
