"""A table's Parquet files read in Python: the cold part of ``format("pulsar")``.

The catalog never comes here: its cold half is Spark's own Delta scan, which is several times
faster. This is for the one-source form, which must give all tiers by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from reader.config import ReadConfig
from reader.errors import NotFoundError, UnavailableError
from reader.model.columns import IS_CIPHERTEXT
from reader.sources.rows import conform
from reader.storage import open_storage

__all__ = ["ColdFiles", "read_cold"]

_BATCH_ROWS = 1 << 16
_CIPHER_COLUMNS = ("__encryptionContext", "__error")


@dataclass(frozen=True, slots=True)
class ColdFiles:
    """Parquet files of one task, as paths in the storage's filesystem.

    ``no_ciphertext``: leave out the rows of encrypted entries, which another task decrypts.
    """

    paths: tuple[str, ...]
    no_ciphertext: bool = False


def read_cold(config: ReadConfig, files: ColdFiles, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The files' rows with exactly ``columns``: those that a file lacks are NULL."""
    filesystem = open_storage(config.storage).filesystem()[0]
    for path in files.paths:
        try:
            with pq.ParquetFile(path, filesystem=filesystem) as file:
                wanted = {*columns.names, *(_CIPHER_COLUMNS if files.no_ciphertext else ())}
                have = [name for name in file.schema_arrow.names if name in wanted]
                for batch in file.iter_batches(_BATCH_ROWS, columns=have):
                    if files.no_ciphertext:
                        batch = batch.filter(~IS_CIPHERTEXT)
                    yield conform(batch, columns)
        except FileNotFoundError as error:
            raise NotFoundError(
                f"the table's file {path} is gone", hint="vacuumed since: make the query anew"
            ) from error
        except OSError as error:
            raise UnavailableError(f"cannot read {path}: {error}") from error
