"""Whatever segments and entries a filter skips, hot or cold: the rows are those of a full read."""

import random

import pytest
from pyspark.sql import Row

from spark_ext import PulsarLake
from tests.spark.conftest import TOTAL, Orders

KEYS = ("__partition", "__ledgerId", "__entryId", "__batchIndex")
COLUMNS = (*KEYS, "id", "CAST(__publishTime AS TIMESTAMP_NTZ) AS at")
FILTERS = 40
AT_ONCE = 20


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


def expression(rows: list[Row], choose: random.Random) -> str:
    """One to three conditions."""
    terms = [comparison(rows, choose) for _ in range(choose.choice([1, 1, 2, 3]))]
    terms = [f"NOT ({one})" if choose.random() < 0.2 else f"({one})" for one in terms]
    return choose.choice([" AND ", " AND ", " OR "]).join(terms)


@pytest.mark.timeout(600)
def test_filters_give_what_a_full_read_gives(
    lake: PulsarLake, orders: Orders, rows: list[Row]
) -> None:
    choose = random.Random(20_261_121)
    spark = lake.spark
    filters = [expression(rows, choose) for _ in range(FILTERS)]
    # The oracle has no segment to skip: the same rows, as local data.
    spark.createDataFrame(rows).createOrReplaceTempView("all_of_them")
    tests = ", ".join(f"({one}) AS f{number}" for number, one in enumerate(filters))
    everything = "(SELECT *, CAST(at AS TIMESTAMP) AS __publishTime FROM all_of_them)"
    told = spark.sql(f"SELECT {', '.join(KEYS)}, id, at, {tests} FROM {everything}").collect()
    kept = []
    for first in range(0, FILTERS, AT_ONCE):
        some = list(enumerate(filters))[first : first + AT_ONCE]
        read = spark.sql(
            _union(f"SELECT {{}} AS n, {', '.join(COLUMNS)} FROM {orders.table}", some)
        )
        counted = spark.sql(_union(f"SELECT {{}} AS n, count(*) FROM {orders.table}", some))
        found = [tuple(row) for row in read.collect()]
        counts = dict(tuple(row) for row in counted.collect())
        for number, where in some:
            expected = sorted(tuple(row)[: len(COLUMNS)] for row in told if row[f"f{number}"])
            assert sorted(row[1:] for row in found if row[0] == number) == expected, where
            assert counts[number] == len(expected), where
            kept.append(len(expected))
    assert min(kept) < TOTAL // 10 < TOTAL // 2 < max(kept), "narrow and wide ones"


def _union(select: str, filters: list[tuple[int, str]]) -> str:
    """One query that reads by each filter."""
    parts = (f"{select.format(number)} WHERE {where}" for number, where in filters)
    return " UNION ALL ".join(parts)
