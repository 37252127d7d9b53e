"""Rows out of a topic's table.

``MovedLedger`` is for a ledger that has left BookKeeper since the snapshot. ``read_cold`` reads
a version's Parquet files in Python, for ``format("pulsar")``, which must give all tiers by itself;
the catalog never comes here: its cold half is Spark's own Delta scan, which is several times
faster.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reader.decode import Decryption
from reader.errors import NotFoundError, UnavailableError
from reader.model import Split
from reader.model.columns import IS_CIPHERTEXT, TIMESTAMP
from reader.sources.base import Delivered, PublishRange, RowSource, Step
from reader.sources.ciphertext import read_ciphertext
from reader.sources.rows import RowFormat, conform
from reader.sources.source_clients import SourceClients
from reader.storage import Storage
from reader.table import TopicTable

__all__ = ["ColdFiles", "MovedLedger", "read_cold"]

_BATCH_ROWS = 1 << 16
_CIPHER_COLUMNS = ("__encryptionContext", "__error")


@dataclass(frozen=True, slots=True)
class ColdFiles:
    """Parquet files of one task, as paths in the storage's filesystem.

    ``no_ciphertext``: leave out the rows of encrypted entries, which another task decrypts.
    """

    paths: tuple[str, ...]
    no_ciphertext: bool = False


def read_cold(storage: Storage, files: ColdFiles, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The files' rows with exactly ``columns``: those that a file lacks are NULL."""
    filesystem = storage.filesystem()[0]
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


class MovedLedger(RowSource):
    """A ledger that has left BookKeeper, from the newest version of its topic's table.

    ``decryption``: opens the encrypted entries that the table holds; None: they stay as they are.
    """

    ordered = False

    def __init__(
        self,
        clients: SourceClients,
        rows: RowFormat,
        *,
        publish_range: PublishRange = (None, None),
        decryption: Decryption | None = None,
    ) -> None:
        self._clients = clients
        self._rows = rows
        self._range = publish_range
        self._decryption = decryption

    def read(self, split: Split, first: int) -> Generator[Step]:
        """See ``RowSource.read``. Raises NotFoundError where the table has not all of the range."""
        if first > split.last_entry:
            return
        partition, ledger_id = split.partition, split.ledger_id
        table = TopicTable.open(self._clients.storage, partition.topic)
        if table is None or table.watermark(partition) < ledger_id:
            raise NotFoundError(
                f"ledger {ledger_id} of {partition} has left BookKeeper and is not in the table",
                hint="its messages were deleted before they were offloaded: "
                "retention, TTL or backlog",
            )
        where = (
            (pc.field("__partition") == partition.index)
            & (pc.field("__ledgerId") == ledger_id)
            & (pc.field("__entryId") >= first)
            & (pc.field("__entryId") <= split.last_entry)
        )
        whole = split.whole and first == split.first_entry
        _require_rows(table, split, table.dataset().count_rows(filter=where), whole=whole)
        decryption = self._decryption if table.has_ciphertext else None
        low, high = self._range
        if low is not None:
            where &= pc.field("__publishTime") >= pa.scalar(low, TIMESTAMP)
        if high is not None:
            where &= pc.field("__publishTime") <= pa.scalar(high, TIMESTAMP)
        if decryption is not None:
            where &= ~IS_CIPHERTEXT
        for batch in table.batches(self._rows.columns.names, where):
            yield conform(batch, self._rows.columns)
        if decryption is not None:
            yield from read_ciphertext(
                table,
                partition,
                self._rows,
                decryption,
                ledger=ledger_id,
                entries=(first, split.last_entry),
                publish_range=self._range,
            )
        yield Delivered(split.last_entry)


def _require_rows(table: TopicTable, split: Split, found: int, *, whole: bool) -> None:
    """Refuse to give fewer rows than were offloaded (row expiry may have removed some).

    ``whole``: nothing of the split's ledger was read before.
    """
    hint = "rows have expired since the query's snapshot: make the query anew"
    for one in table.ledgers():
        if (one.partition, one.ledger) != (split.partition.index, split.ledger_id):
            continue
        # The snapshot may have seen the ledger while it was open, and shorter.
        if whole and split.entries == one.entries:
            if found >= one.rows:
                return
            raise NotFoundError(
                f"the table has {found} of the {one.rows} rows of ledger {split.ledger_id} of "
                f"{split.partition}",
                hint=hint,
            )
    # Of a part nobody knows how many rows it had, nor of a ledger that the log has forgotten.
    if split.ledger_id <= table.expired(split.partition):
        raise NotFoundError(
            f"rows of ledger {split.ledger_id} of {split.partition} may have expired", hint=hint
        )
