"""What entries hold, without their payloads: for limits, and to find a publish time.

Of files three columns are read, which take next to nothing, and two more where entries are
encrypted; of what is hot, the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from reader.clients import Clients
from reader.model import Partition, Split
from reader.model.columns import ENCRYPTED_ERROR, METADATA, rows_between
from reader.plan import ColdFile, Plan
from reader.sources import RowFormat, read_splits
from reader.stream.limits import NO_TIME, Entries
from reader.stream.topic_batch import TopicBatch
from reader.table import file_errors, stored_name

__all__ = ["entries_of", "entries_of_file", "entries_of_splits", "files_of"]

_COLUMNS = ("__ledgerId", "__entryId", "__publishTime")
_SCHEMA = pa.schema([METADATA.field(name) for name in _COLUMNS])
_BATCH_ROWS = 1 << 16
_MESSAGES = pc.if_else(
    pc.starts_with(pc.field("__error"), ENCRYPTED_ERROR),
    pc.max_element_wise(pc.field("__encryptionContext", "batchSize"), pa.scalar(1, pa.int32())),
    pa.scalar(1, pa.int32()),
)
"""Of a row of the table, NULL for one: an encrypted entry is opened when it is read.

By a member alone: ``IS_CIPHERTEXT`` would read the whole context."""


def entries_of(clients: Clients, batch: TopicBatch, partition: Partition) -> Iterator[Entries]:
    """A partition's entries that lie in a batch, in the order of the log; planned when asked.

    Raises as reading does.
    """
    plan = batch.plan(clients, _COLUMNS)
    for file in files_of(plan, partition):
        yield from entries_of_file(clients, batch, plan, file, partition)
    splits = [one for one in plan.splits if one.partition == partition]
    yield from entries_of_splits(clients, batch, splits)


def files_of(plan: Plan, partition: Partition) -> list[ColdFile]:
    """Those that a plan reads of a partition, in the order of the log."""
    found = []
    for one in plan.cold:
        low, high = one.file.limit("__partition")
        inside = (low is None or low <= partition.index) and (
            high is None or partition.index <= high
        )
        if one.read and inside:
            found.append(one.file)
    return sorted(found, key=_place)


def _place(file: ColdFile) -> tuple[int, int, int]:
    first, last = file.limit("__ledgerId")
    entry = file.limit("__entryId")[0] if first == last else None
    return (first or 0, last or 0, entry or 0)


def entries_of_file(
    clients: Clients, batch: TopicBatch, plan: Plan, file: ColdFile, partition: Partition
) -> Iterator[Entries]:
    """Those of a file that lie in the batch."""
    where = rows_between(partition.index, *batch.ranges[partition.index])
    filesystem, directory = clients.storage.directory(plan.topic)
    parquet = pads.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    fragment = parquet.make_fragment(f"{directory}/{stored_name(file.path)}", filesystem)
    dataset = pads.FileSystemDataset([fragment], plan.snapshot.columns, parquet, filesystem)
    each = file.bytes / file.rows if file.rows else 0.0
    columns = {name: pc.field(name) for name in _COLUMNS}
    if plan.snapshot.ciphertext is not None:
        columns["messages"] = _MESSAGES
    with file_errors(plan.topic, plan.version):
        for rows in dataset.to_batches(
            columns=columns, filter=where, batch_size=_BATCH_ROWS, use_threads=False
        ):
            if rows.num_rows:
                yield _entries(rows, row_bytes=each)


def entries_of_splits(
    clients: Clients, batch: TopicBatch, splits: Iterable[Split]
) -> Iterator[Entries]:
    """Those of hot splits."""
    form = RowFormat(
        batch.snapshot.fields,
        batch.snapshot.schemas,
        _SCHEMA,
        clients.settings.pulsar.expanded_bytes,
    )
    for split in splits:
        each = split.bytes / split.entries
        for rows in read_splits(clients, [split], form):
            if rows.num_rows:
                yield _entries(rows, entry_bytes=each)


def _entries(rows: pa.RecordBatch, *, row_bytes: float = 0.0, entry_bytes: float = 0.0) -> Entries:
    ledgers, entries, times = (rows.column(name).cast(pa.int64()) for name in _COLUMNS)
    messages = rows.column("messages") if "messages" in rows.schema.names else None
    return Entries.of_rows(
        np.asarray(ledgers),
        np.asarray(entries),
        np.asarray(pc.fill_null(times, NO_TIME)),
        None if messages is None else np.asarray(pc.fill_null(messages.cast(pa.int64()), 1)),
        row_bytes=row_bytes,
        entry_bytes=entry_bytes,
    )
