"""Statistics never prune a row that matches: random filters against the same rows without files.

Three read the same version of a table: the cold half of a topic, Delta's own scan, and Spark over
the rows in memory, with every filter evaluated on every row.
"""

import datetime as dt
import random
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from offloader.commit.delta_committer import DeltaCommitter
from offloader.output import Addition, Advance
from offloader.parquet.statistics import statistics_columns
from offloader.parquet.writer import write_file
from reader.config import StorageConfig
from reader.model import Partition, Topic
from reader.model.columns import METADATA
from reader.storage import Storage, open_storage
from reader.table import OffloadedLedger, TopicTable
from spark_ext import PulsarLake
from spark_ext.ddl import quoted
from spark_ext.planner.cold_tables import TableVersion
from spark_ext.planner.topic_names import COLD
from tests.support.examples import examples

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
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("tags", pa.list_(pa.string())),
    ]
)
LATER = pa.schema([*FIELDS, ("late", pa.int64())])
"""What the last files have: the first lack a column."""
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
        case "flag":
            return near % 3 == 0
        case "small" | "late":
            return near
        case "tags":
            return [str(near), "x"][: near % 3]
        case "__messageProperties":
            return {"near": str(near), "k": "v"}
        case "day":
            return dt.date(1969, 12, 20) + dt.timedelta(days=near % 40)
        case "inner":
            return {"y": draw.choice([float(near), float("nan")]), "text": str(near)}
    return None


def _fields(file: int) -> pa.Schema:
    return FIELDS if file < FILES // 2 else LATER


def _batch(draw: random.Random, file: int) -> pa.RecordBatch:
    columns = pa.schema([*_fields(file), *METADATA])
    place = {"__partition": file % 2, "__ledgerId": 10 + file, "__batchIndex": -1}
    rows = [
        {field.name: _value(field.name, draw, file) for field in columns}
        | place
        | {"__entryId": entry}
        for entry in range(ROWS)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=columns)


def _write(storage: Storage, topic: Topic, draw: random.Random) -> tuple[TopicTable, pa.Table]:
    """The table at ``storage``, and all of its rows in memory."""
    filesystem, directory = storage.directory(topic)
    chosen = tuple(LATER.names)  # all that can have statistics
    table: TopicTable | None = None
    batches = []
    for file in range(FILES):
        batch = _batch(draw, file)
        written = write_file(
            filesystem,
            directory,
            f"{uuid.uuid4()}.parquet",
            batch.schema,
            [(10 + file, batch)],
            statistics_columns(batch.schema, chosen),
        )
        assert written is not None
        before = 10 + file - 1 if file else -1
        table = DeltaCommitter(storage).commit(
            table,
            Addition(
                topic=topic,
                advances=(Advance(Partition(topic, -1), before, 10 + file, ""),),
                files=(written,),
                ledgers=(OffloadedLedger(-1, 10 + file, ROWS, ROWS, 100, "bookkeeper"),),
                fields=_fields(file),
                source="bookkeeper",
                statistics=chosen,
            ),
        )
        batches.append(pa.Table.from_batches([batch]))
    assert table is not None
    return table, pa.concat_tables(batches, promote_options="default")


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case dt.datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f} UTC'"
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


_COMPARED = (
    *("id", "price", "name", "raw", "x", "at", "day", "inner.y", "inner.text", "flag", "small"),
    *("late", "__publishTime", "__eventTime", "__entryId", "__partition", "__ledgerId"),
)
_EXPRESSIONS = (
    "name LIKE '{near:06d}%'",
    "name LIKE '%a'",
    "CAST(at AS DATE) = DATE '2013-01-01'",
    "CAST(at AS STRING) > '2013-01-01 01:00:00'",
    "hour(at) = {hour}",
    "at >= '2013-01-01 00:30:00' AND at < '2013-01-01 01:00:00'",
    "date_trunc('HOUR', __publishTime) = '2013-01-01 01:00:00'",
    "CAST(day AS TIMESTAMP) >= '1970-01-03'",
    "day BETWEEN '1969-12-25' AND '1970-01-02'",
    "CAST(small AS STRING) = '{near}'",
    "CAST(small AS BIGINT) > {near}",
    "small + 1 > {near}",
    "CAST(id AS DOUBLE) = double({near})",
    "id > {near}.5",
    "id IN ({near}, NULL)",
    "id NOT IN ({near}, {hour})",
    "id NOT IN ({near}, NULL)",
    "NOT (id > {near} AND __ledgerId = 12)",
    "NOT (id <=> {near})",
    "late IS NULL AND __ledgerId > 12",
    "coalesce(late, -1) = -1",
    "late = {near} OR late IS NULL",
    "get(tags, 0) = '{near}'",
    "size(tags) = 0",
    "__messageProperties['near'] = '{near}'",
    "__partition = 1 AND (id < {near} OR name IS NULL)",
    "__partition <> 1 OR __publishTime > '2013-01-01 01:00:00'",
    "flag AND small < {near}",
    "NOT flag",
    "isnan(x)",
    "x = double('NaN') OR x = -0.0",
    "price BETWEEN {near} / 1000 AND 10000",
    "CASE WHEN id > {near} THEN __partition = 0 ELSE late IS NOT NULL END",
    "false OR __entryId < 3",
)


def _comparison(draw: random.Random, rows: pa.Table) -> str:
    name = draw.choice(_COMPARED)
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


def _filter(draw: random.Random, rows: pa.Table) -> str:
    first = _comparison(draw, rows)
    match draw.randrange(6):
        case 0:
            return f"({first}) AND {_comparison(draw, rows)}"
        case 1:
            return f"({first}) OR {_comparison(draw, rows)}"
        case 2:
            return f"NOT ({first})"
    return first


Found = list[list[tuple[int, int]]]
"""The places of each filter's rows."""
_AT_ONCE = 20
_PLACE = "__ledgerId, __entryId"
_SETTINGS = {
    # Each query runs once: compiling it would take longer.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@contextmanager
def _set(spark: Any, settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _found(spark: Any, table: str, filters: list[str]) -> Found:
    """Rows of each filter, by scans of their own."""
    found: Found = [[] for _ in filters]
    for first in range(0, len(filters), _AT_ONCE):
        parts = (
            f"SELECT {number} AS n, {_PLACE} FROM {table} WHERE {text}"
            for number, text in enumerate(filters[first : first + _AT_ONCE], first)
        )
        for number, ledger, entry in spark.sql(" UNION ALL ".join(parts)).collect():
            found[number].append((ledger, entry))
    return [sorted(one) for one in found]


def _whole(spark: Any, table: str, filters: list[str]) -> Found:
    """The same by one look at all rows, of which no filter is pushed anywhere."""
    parts = (f"({text}) AS f{number}" for number, text in enumerate(filters))
    rows = sorted(spark.sql(f"SELECT {_PLACE}, {', '.join(parts)} FROM {table}").collect())
    return [[(row[0], row[1]) for row in rows if row[at]] for at in range(2, 2 + len(filters))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_filters_give_what_a_full_scan_gives(lake: PulsarLake, zone: str) -> None:
    draw = random.Random(zone)
    topic = Topic("public", "default", f"pruned-{uuid.uuid4().hex[:8]}")
    storage = open_storage(lake.config.storage)
    table, rows = _write(storage, topic, draw)
    near, hour = draw.randrange(FILES * 1000), draw.randrange(24)
    filters = [_filter(draw, rows) for _ in range(examples(FILTERS))]
    filters += [one.format(near=near, hour=hour) for one in _EXPRESSIONS]
    spark = lake.spark
    spark.createDataFrame(rows).createOrReplaceTempView("unpruned")
    name = quoted("pulsar", "public/default", f"{topic.name}{COLD}{TableVersion.of(table)}")
    with _set(spark, _SETTINGS | {"spark.sql.session.timeZone": zone}):
        whole = _whole(spark, "unpruned", filters)
        cold = _found(spark, name, filters)
        delta = _found(spark, quoted("delta", storage.spark_uri(table.uri)), filters)
    assert [one for one in zip(filters, cold, whole, strict=True) if one[1] != one[2]] == []
    assert [one for one in zip(filters, delta, whole, strict=True) if one[1] != one[2]] == []
    assert 0 < sum(not one for one in whole) < min(FILTERS, len(filters))


@pytest.mark.journey
def test_pyarrow_prunes_no_row_either(tmp_path: Path) -> None:
    """The same files through deltalake's dataset, row groups by their footers included."""
    draw = random.Random(7)
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    table, rows = _write(storage, TOPIC, draw)
    dataset = table.dataset()
    for name in ("id", "price", "name", "x", "at", "day", "__publishTime", "__eventTime"):
        for _ in range(6):
            value = rows.column(name)[draw.randrange(rows.num_rows)]
            for compare in (pc.equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal):
                wanted = pc.sum(compare(rows.column(name), value)).as_py() or 0
                found = dataset.count_rows(filter=compare(pc.field(name), value))
                assert found == wanted, (name, compare, value)
