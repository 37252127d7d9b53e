"""A table of very many files that exist only in its log."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from offloader.commit.delta_committer import DeltaCommitter
from offloader.output import Addition, Advance
from offloader.output.files import LedgerRows, WrittenFile
from offloader.parquet.statistics import FileStatistics, statistics_columns
from reader.model import Partition, SchemaInfo, Topic
from reader.model.columns import METADATA
from reader.payload import payload_fields
from reader.storage import Storage
from reader.table import OffloadedLedger, TopicTable

_CREATED = "2026-01-01T00:00:00Z"
_ENTRIES = 50_000
_BYTES = 64 << 20
_START = 1_767_225_600_000  # 2026-01-01, ms
_STEP = 600_000  # ms between the ends of two ledgers


@dataclass(frozen=True, slots=True)
class Wide:
    """A topic of `ledgers` sealed ledgers over `partitions`, a file each, of a `cluster`.

    Each ledger has 64 MiB in 50,000 entries and spans ten minutes of publish time.
    """

    topic: Topic
    partitions: int
    ledgers: int
    schema: dict[str, Any]
    cluster: str = "simulated"

    def span(self, ledger: int) -> tuple[int, int]:
        """First and last publish time of a ledger, ms."""
        return _START + ledger * _STEP, _START + (ledger + 1) * _STEP - 1

    @property
    def schemas(self) -> tuple[SchemaInfo, ...]:
        return (SchemaInfo(0, "JSON", json.dumps(self.schema)),)


def fill_table(storage: Storage, wide: Wide, commits: int) -> TopicTable:
    """Commit every ledger, a file each that does not exist, in about so many commits."""
    table: TopicTable | None = None
    for addition in additions_of(wide, commits):
        table = DeltaCommitter(storage).commit(table, addition)
    assert table is not None
    return table


def additions_of(wide: Wide, commits: int) -> Iterator[Addition]:
    """What `fill_table` commits, one after the other."""
    fields = payload_fields(wide.schemas)
    columns = pa.schema([*fields, *METADATA])
    schema = columns.serialize().to_pybytes()
    watermarks = dict.fromkeys(range(wide.partitions), -1)
    per_commit = max(wide.partitions, wide.ledgers // commits // wide.partitions * wide.partitions)
    for first in range(0, wide.ledgers, per_commit):
        ledgers = range(first, min(first + per_commit, wide.ledgers))
        advances = []
        for index in range(wide.partitions):
            upto = max(one for one in ledgers if one % wide.partitions == index)
            partition = Partition(wide.topic, index)
            advances.append(Advance(partition, watermarks[index], upto, _CREATED))
            watermarks[index] = upto
        yield Addition(
            topic=wide.topic,
            advances=tuple(advances),
            files=tuple(_file(wide, one, columns, schema) for one in ledgers),
            ledgers=tuple(_offloaded(wide, one) for one in ledgers),
            fields=fields,
            source="bookkeeper",
            cluster=wide.cluster,
        )


def _file(wide: Wide, ledger: int, columns: pa.Schema, schema: bytes) -> WrittenFile:
    times = [one * 1000 for one in wide.span(ledger)]
    known: dict[str, Sequence[Any]] = {
        "__partition": [ledger % wide.partitions] * 2,
        "__ledgerId": [ledger] * 2,
        "__entryId": [0, _ENTRIES - 1],
        "__publishTime": times,
    }
    arrays = [pa.array(known.get(field.name, [None] * 2), field.type) for field in columns]
    statistics = FileStatistics(statistics_columns(columns))
    statistics.add(pa.RecordBatch.from_arrays(arrays, schema=columns))
    return WrittenFile(
        path=f"p{ledger % wide.partitions}-{ledger}-simulated.zstd.parquet",
        size=_BYTES // 2,
        modified=time.time_ns() // 1_000_000,
        rows=2,
        statistics=statistics.to_json(),
        schema=schema,
        ledgers=(LedgerRows(ledger, 2, *times),),
    )


def _offloaded(wide: Wide, ledger: int) -> OffloadedLedger:
    low, high = (one * 1000 for one in wide.span(ledger))
    partition = ledger % wide.partitions
    return OffloadedLedger(partition, ledger, _ENTRIES, 2, _BYTES, "bookkeeper", low, high)
