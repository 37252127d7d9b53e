"""Additions to a table, made by hand: real files, without a Pulsar behind them."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from offloader.output import Addition, Advance
from offloader.parquet.file_names import data_file
from offloader.parquet.statistics import statistics_columns
from offloader.parquet.writer import write_file
from reader.model import Partition, Position, Topic
from reader.model.columns import METADATA
from reader.model.row_kinds import RowKind
from reader.storage import Storage
from reader.table import OffloadedLedger, PartitionNumbers, TopicTable

FIELDS = pa.schema([("amount", pa.float64()), ("id", pa.int64())])
PUBLISHED = 1_700_000_000_000_123
CREATED = "2026-01-01T00:00:00.000Z"


def rows_of(
    ledger: int,
    partition: int,
    entries: range,
    fields: pa.Schema,
    published: int,
    given_up: Mapping[int, Position] | None = None,
) -> pa.RecordBatch:
    """Entries of one message; publish times, from ``published`` on, are 1 ms and 1 µs apart.

    ``given_up``: entries that are rows of a given-up message, and where it begins.
    """
    count, begins = len(entries), given_up or {}
    values: dict[str, list[object]] = {
        "__partition": [partition] * count,
        "__ledgerId": [ledger] * count,
        "__entryId": list(entries),
        "__batchIndex": [-1] * count,
        "__publishTime": [published + 1001 * i for i in entries],
        "__kind": [RowKind.INCOMPLETE if i in begins else RowKind.MESSAGE for i in entries],
        "__firstChunkLedgerId": [begins[i].ledger if i in begins else None for i in entries],
        "__firstChunkEntryId": [begins[i].entry if i in begins else None for i in entries],
        "id": list(entries),
        "amount": [float("nan") if i % 3 == 0 else float(i) for i in entries],
    }
    if "at" in fields.names:
        members = fields.field("at").type.names
        values["at"] = [dict.fromkeys(members, i) for i in entries]
    schema = pa.schema([*fields, *METADATA])
    arrays = [
        pa.array(values[field.name], field.type)
        if field.name in values
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def addition(
    storage: Storage,
    topic: Topic,
    ledgers: Sequence[int],
    *,
    before: int = -1,
    partition: int = 0,
    rows: int = 10,
    first: int = 0,
    published: int = PUBLISHED,
    fields: pa.Schema = FIELDS,
    cluster: str = "test",
    statistics: tuple[str, ...] = (),
    given_up: Mapping[int, Position] | None = None,
) -> Addition:
    """A file with ``rows`` rows of each ledger, from entry ``first`` on, not committed.

    ``given_up``: entries that are rows of a given-up message, and where it begins.
    """
    filesystem, directory = storage.directory(topic)
    columns = pa.schema([*fields, *METADATA])
    file = write_file(
        filesystem,
        directory,
        data_file(partition, ledgers[0]),
        columns,
        (
            (
                ledger,
                rows_of(ledger, partition, range(first, first + rows), fields, published, given_up),
            )
            for ledger in ledgers
        ),
        statistics_columns(columns, statistics),
    )
    times = (published + 1001 * first, published + 1001 * (first + rows - 1)) if rows else ()
    return Addition(
        topic=topic,
        advances=(Advance(Partition(topic, partition), before, ledgers[-1], CREATED),),
        files=(file,) if file else (),
        ledgers=tuple(
            OffloadedLedger(partition, ledger, rows, rows, 100, "bookkeeper", *times)
            for ledger in ledgers
        ),
        fields=fields,
        source="bookkeeper",
        cluster=cluster,
        statistics=statistics,
    )


def numbers_of(partition: Partition, **fields: object) -> PartitionNumbers:
    """A partition's numbers, as a table has them in which commits have set ``fields``."""
    found: dict[str, int] = {}
    for name, value in fields.items():
        found |= getattr(PartitionNumbers, name).set(partition, value)
    return PartitionNumbers(partition.full_name, found.get)


def open_table(storage: Storage, topic: Topic) -> TopicTable:
    """The newest version; there is one."""
    table = TopicTable.open(storage, topic)
    assert table is not None
    return table


def ledgers_in(storage: Storage, topic: Topic) -> dict[tuple[int, int], int]:
    """(partition, ledger) → rows, as a reader of the newest version counts them."""
    table = open_table(storage, topic)
    filesystem, directory = storage.directory(topic)
    dataset = table.handle.to_pyarrow_dataset(
        filesystem=pa.fs.SubTreeFileSystem(directory, filesystem)
    )
    found: dict[tuple[int, int], int] = {}
    for row in dataset.to_table(columns=["__partition", "__ledgerId"]).to_pylist():
        key = (row["__partition"], row["__ledgerId"])
        found[key] = found.get(key, 0) + 1
    return found
