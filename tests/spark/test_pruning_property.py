"""Statistics never prune a row that matches: random filters against the same rows without files."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from offloader.commit.addition import Addition, Advance
from offloader.commit.append import append
from offloader.parquet.statistics import statistics_columns
from offloader.parquet.writer import write_file
from reader.config import StorageConfig
from reader.model import Partition, Topic
from reader.model.columns import METADATA
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake

TOPIC = Topic("public", "default", "pruned")
FIELDS = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(38, 6)),
        ("name", pa.string()),
        ("raw", pa.binary()),
        ("x", pa.float64()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("day", pa.date32()),
        ("inner", pa.struct([("y", pa.float64()), ("text", pa.string())])),
    ]
)
COLUMNS = pa.schema([*FIELDS, *METADATA])
FILES, ROWS, FILTERS = 6, 30, 40


def _value(name: str, draw: random.Random, file: int) -> Any:
    """Values of a file lie near each other, so that there is something to prune, with outliers."""
    if draw.random() < 0.1:
        return None
    near = file * 1000 + draw.randrange(300)
    match name:
        case "id":
            return draw.choice([near, near, -(2**63), 2**63 - 1])
        case "price":
            return draw.choice([Decimal(near).scaleb(-3), Decimal("-0.000001"), Decimal(10**30)])
        case "name":
            tail = draw.choice(["", "a" * 80, "\U0010ffff" * 40, "é", "\ud7ff" * 70])
            return f"{near:06d}{tail}"
        case "raw":
            return bytes([near % 256]) + b"\xff" * draw.choice([0, 1, 90])
        case "x":
            return draw.choice([float(near), float("nan"), -0.0, 0.0, float("inf"), 1e-320])
        case "at" | "__publishTime" | "__eventTime":
            step = dt.timedelta(seconds=near, microseconds=draw.choice([0, 1, 999, 999_999]))
            return dt.datetime(2013, 1, 1, tzinfo=dt.UTC) + step
        case "day":
            return dt.date(1969, 12, 20) + dt.timedelta(days=near % 40)
        case "inner":
            return {"y": draw.choice([float(near), float("nan")]), "text": str(near)}
    return None


def _batch(draw: random.Random, file: int) -> pa.RecordBatch:
    place = {"__partition": file % 2, "__ledgerId": 10 + file, "__batchIndex": -1}
    rows = [
        {field.name: _value(field.name, draw, file) for field in COLUMNS}
        | place
        | {"__entryId": entry}
        for entry in range(ROWS)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=COLUMNS)


def _write(storage: Storage, draw: random.Random) -> pa.Table:
    """The table at ``storage``, and all of its rows in memory."""
    filesystem, _ = storage.filesystem()
    chosen = tuple(FIELDS.names)  # all that can have statistics
    table: TopicTable | None = None
    batches = []
    for file in range(FILES):
        batch = _batch(draw, file)
        written = write_file(
            filesystem,
            storage.table_uri(TOPIC),
            f"{uuid.uuid4()}.parquet",
            COLUMNS,
            [(10 + file, batch)],
            statistics_columns(COLUMNS, chosen),
        )
        assert written is not None
        before = 10 + file - 1 if file else -1
        table = append(
            storage,
            table,
            Addition(
                topic=TOPIC,
                advances=(Advance(Partition(TOPIC, -1), before, 10 + file, ""),),
                files=(written,),
                ledgers=(),
                fields=FIELDS,
                source="bookkeeper",
                statistics=chosen,
            ),
        )
        batches.append(batch)
    return pa.Table.from_batches(batches)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case dt.datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}'"
        case dt.date():
            return f"DATE '{value}'"
        case float():
            return f"double('{value}')"
        case bytes():
            return f"X'{value.hex()}'"
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL(38,6))"
        case str():
            return "'" + value + "'"
    return f"{value}L"


def _filter(draw: random.Random, rows: pa.Table) -> str:
    names = ["id", "price", "name", "raw", "x", "at", "day", "inner.y", "inner.text"]
    name = draw.choice([*names, "__publishTime", "__eventTime", "__entryId"])
    outer, _, member = name.partition(".")
    value = rows.column(outer)[draw.randrange(rows.num_rows)].as_py()
    value = value[member] if member and value is not None else value
    kind = draw.choice(["=", "<", "<=", ">", ">=", "<>", "in", "null", "not null", "<=>"])
    match kind:
        case "in":
            return f"{name} IN ({_literal(value)}, {_literal(value)})"
        case "null":
            return f"{name} IS NULL"
        case "not null":
            return f"{name} IS NOT NULL"
    return f"{name} {kind} {_literal(value)}"


def _counts(spark: Any, table: str, filters: list[str]) -> list[int]:
    parts = (
        f"SELECT {number} AS n, count(*) AS c FROM {table} WHERE {text}"
        for number, text in enumerate(filters)
    )
    return [row["c"] for row in spark.sql(" UNION ALL ".join(parts) + " ORDER BY n").collect()]


@pytest.mark.timeout(300)
def test_filters_give_what_a_full_scan_gives(lake: PulsarLake, tmp_path: Path) -> None:
    draw = random.Random(2013)
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    rows = _write(storage, draw)
    filters = [_filter(draw, rows) for _ in range(FILTERS)]
    lake.spark.createDataFrame(
        rows.select(FIELDS.names + list(METADATA.names))
    ).createOrReplaceTempView("unpruned")
    pruned = _counts(lake.spark, f"delta.`{storage.table_uri(TOPIC)}`", filters)
    whole = _counts(lake.spark, "unpruned", filters)
    assert [one for one in zip(filters, pruned, whole, strict=True) if one[1] != one[2]] == []
    assert 0 < sum(count == 0 for count in whole) < FILTERS


def test_pyarrow_prunes_no_row_either(tmp_path: Path) -> None:
    """The same files through deltalake's dataset, row groups by their footers included."""
    draw = random.Random(7)
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    rows = _write(storage, draw)
    table = TopicTable.open(storage, TOPIC)
    assert table is not None
    dataset = table.dataset()
    for name in ("id", "price", "name", "x", "at", "day", "__publishTime", "__eventTime"):
        for _ in range(6):
            value = rows.column(name)[draw.randrange(rows.num_rows)]
            for compare in (pc.equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal):
                wanted = pc.sum(compare(rows.column(name), value)).as_py() or 0
                found = dataset.count_rows(filter=compare(pc.field(name), value))
                assert found == wanted, (name, compare, value)
