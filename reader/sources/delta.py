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
from reader.model import Topic
from reader.model.columns import IS_CIPHERTEXT
from reader.sources.rows import conform
from reader.storage import open_storage
from reader.table import TopicTable

__all__ = ["ColdFiles", "cold_files", "read_cold"]

_BATCH_ROWS = 1 << 16
_CIPHER_COLUMNS = ("__encryptionContext", "__error")


@dataclass(frozen=True, slots=True)
class ColdFiles:
    """Parquet files of one task, as paths in the storage's filesystem.

    ``no_ciphertext``: leave out the rows of encrypted entries, which another task decrypts.
    """

    paths: tuple[str, ...]
    no_ciphertext: bool = False


def cold_files(
    config: ReadConfig, topic: Topic, version: int, target_bytes: int, no_ciphertext: bool = False
) -> list[ColdFiles]:
    """The version's files in packs of about ``target_bytes``, in the log's order."""
    storage = open_storage(config.storage)
    table = TopicTable.open(storage, topic, version)
    if table is None:
        raise NotFoundError(f"the table of {topic} is gone since it was looked at")
    base = storage.directory(topic)[1]
    actions = table.files().sort_by("path").to_pylist()
    packs: list[list[str]] = []
    size = 0
    for action in actions:
        if not packs or size + action["size_bytes"] > target_bytes:
            packs.append([])
            size = 0
        packs[-1].append(f"{base}/{action['path']}")
        size += action["size_bytes"]
    return [ColdFiles(tuple(pack), no_ciphertext) for pack in packs]


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
