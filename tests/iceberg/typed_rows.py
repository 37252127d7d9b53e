"""A table with a column of each type that payloads become, with values, NaN and NULL."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from offloader.commit.delta_committer import DeltaCommitter
from offloader.output import Addition, Advance
from offloader.parquet.file_names import data_file
from offloader.parquet.statistics import statistics_columns
from offloader.parquet.writer import write_file
from reader.model import Partition
from reader.model.columns import METADATA
from reader.storage import Storage
from reader.table import OffloadedLedger, TopicTable
from tests.support.additions import CREATED
from tests.support.tables import TOPIC

TYPED = pa.schema(
    [
        ("number", pa.int64()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("price", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", tz="UTC")),
        ("Größe/x y", pa.int64()),
        ("person", pa.struct([("name", pa.string()), ("marks", pa.list_(pa.float64()))])),
        ("tags", pa.list_(pa.string())),
        ("people", pa.list_(pa.struct([("name", pa.string()), ("age", pa.int64())]))),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("nested", pa.map_(pa.string(), pa.struct([("x", pa.int64())]))),
    ]
)

_VALUES: list[dict[str, Any]] = [
    {
        "number": -(2**63),
        "real": float("nan"),
        "flag": True,
        "text": "é\n\0",
        "raw": b"\x00\xff",
        "price": Decimal("1234567890123456789012345678.0123456789"),
        "day": date(1, 1, 2),
        "moment": datetime(1, 1, 2, tzinfo=UTC),
        "Größe/x y": 1,
        "person": {"name": "a", "marks": [1.5, None, float("inf")]},
        "tags": ["x", None, ""],
        "people": [{"name": "b", "age": 2}, None, {"name": None, "age": None}],
        "counts": [("one", 1), ("none", None)],
        "nested": [("k", {"x": 7}), ("n", None)],
    },
    {
        "number": 2**63 - 1,
        "real": -0.0,
        "flag": False,
        "text": "",
        "raw": b"",
        "price": Decimal("-0.0000000001"),
        "day": date(9999, 12, 31),
        "moment": datetime(2026, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC),
        "Größe/x y": 2,
        "person": {"name": None, "marks": []},
        "tags": [],
        "people": [],
        "counts": [],
        "nested": [],
    },
    {},
]


def fill_typed(storage: Storage, ledger: int) -> None:
    """One commit: a file of a ledger with three rows, of which the last has only NULL."""
    fill_rows(storage, ledger, _VALUES, TYPED, ("number", "day", "moment"))


def fill_rows(
    storage: Storage,
    ledger: int,
    values: Sequence[Mapping[str, Any]],
    fields: pa.Schema,
    chosen: tuple[str, ...],
) -> None:
    """One commit: a file of a ledger with these rows, and statistics of the ``chosen`` columns."""
    columns = pa.schema([*fields, *METADATA])
    rows = [
        {**value, "__partition": 0, "__ledgerId": ledger, "__entryId": entry, "__batchIndex": -1}
        for entry, value in enumerate(values)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=columns)
    filesystem, directory = storage.directory(TOPIC)
    file = write_file(
        filesystem,
        directory,
        data_file(0, ledger),
        columns,
        [(ledger, batch)],
        statistics_columns(columns, chosen),
    )
    assert file is not None
    table = TopicTable.open(storage, TOPIC)
    before = table.watermark(Partition(TOPIC, 0)) if table else -1
    count = len(rows)
    DeltaCommitter(storage).commit(
        table,
        Addition(
            topic=TOPIC,
            advances=(Advance(Partition(TOPIC, 0), before, ledger, CREATED),),
            files=(file,),
            ledgers=(OffloadedLedger(0, ledger, count, count, 100, "bookkeeper"),),
            fields=fields,
            source="bookkeeper",
            cluster="test",
            statistics=chosen,
        ),
    )
