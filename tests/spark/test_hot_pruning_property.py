"""Whatever segments and entries a filter skips, hot or cold: the rows are those of a full read."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import Row

from spark_ext import PulsarLake
from tests.spark.conftest import TOTAL, Orders

KEYS = ("__partition", "__ledgerId", "__entryId", "__batchIndex")
COLUMNS = (*KEYS, "id", "CAST(__publishTime AS TIMESTAMP_NTZ) AS at")
FILTERS = 40


@pytest.fixture
def rows(lake: PulsarLake, orders: Orders) -> list[Row]:
    """Every row, read without a filter; which teaches the sealed ledgers' ranges."""
    found = lake.spark.sql(f"SELECT {', '.join(COLUMNS)} FROM {orders.table}").collect()
    assert len(found) == TOTAL
    return found


def comparison(rows: list[Row], choose: random.Random) -> str:
    """One condition, its bounds out of the rows, or just beside them."""
    row = choose.choice(rows)
    kind = choose.choice(["time", "between", "in", "ledger", "entry", "partition", "id"])
    operator = choose.choice(["<", "<=", "=", ">=", ">", "<=>", "<>"])
    beside = choose.choice([0, 0, -1, 1])
    moment = f"TIMESTAMP_NTZ'{row['at']}' + INTERVAL {beside} MILLISECOND"
    match kind:
        case "time":
            return f"__publishTime {operator} CAST({moment} AS TIMESTAMP)"
        case "between":
            other = choose.choice(rows)["at"]
            low, high = sorted([str(row["at"]), str(other)])
            return f"__publishTime BETWEEN TIMESTAMP'{low}' AND TIMESTAMP'{high}'"
        case "in":
            some = ", ".join(f"TIMESTAMP'{one['at']}'" for one in choose.sample(rows, 3))
            return f"__publishTime IN ({some})"
        case "ledger":
            return f"__ledgerId {operator} {row['__ledgerId'] + beside}"
        case "entry":
            return f"__entryId {operator} {row['__entryId'] + beside}"
        case "partition":
            return f"__partition {operator} {row['__partition']}"
        case _:
            return f"id {operator} {row['id'] + beside}"


@pytest.mark.long
@pytest.mark.timeout(900)  # 120 queries: more than 300 s on a machine that is busy
def test_filters_give_what_a_full_read_gives(
    lake: PulsarLake, orders: Orders, rows: list[Row]
) -> None:
    choose = random.Random(20_261_121)
    spark = lake.spark
    columns = ", ".join(COLUMNS)
    # The oracle has no segment to skip: the same rows, as local data.
    spark.createDataFrame(rows).createOrReplaceTempView("all_of_them")
    everything = "(SELECT *, CAST(at AS TIMESTAMP) AS __publishTime FROM all_of_them)"
    kept = []
    for _ in range(FILTERS):
        terms = [comparison(rows, choose) for _ in range(choose.choice([1, 1, 2, 3]))]
        terms = [f"NOT ({one})" if choose.random() < 0.2 else f"({one})" for one in terms]
        where = choose.choice([" AND ", " AND ", " OR "]).join(terms)
        names = ", ".join((*KEYS, "id", "at"))
        expected = spark.sql(f"SELECT {names} FROM {everything} WHERE {where}").collect()
        found = spark.sql(f"SELECT {columns} FROM {orders.table} WHERE {where}").collect()
        assert sorted(found) == sorted(expected), where
        assert spark.sql(f"SELECT count(*) FROM {orders.table} WHERE {where}").collect() == [
            Row(**{"count(1)": len(expected)})
        ], where
        kept.append(len(expected))
    assert min(kept) < TOTAL // 10 < TOTAL // 2 < max(kept), "narrow and wide ones"
