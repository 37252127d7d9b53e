"""What of a query reaches the hot reader and the cold scan: columns and filters, one read."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from tests.spark.conftest import COLD, TOTAL, Orders

Sql = Callable[[str], DataFrame]


def plan(frame: DataFrame) -> str:
    """The physical plan; the final one after the query has run."""
    return str(frame._jdf.queryExecution().executedPlan().toString())


def hot_columns(frame: DataFrame) -> list[str]:
    """The columns of the only hot scan."""
    [found] = re.findall(r"BatchScan orders \(hot\)\[(.*?)\]", plan(frame))
    return re.findall(r"(\w+)#", found)


def tasks(frame: DataFrame) -> int:
    """How many tasks the hot scan has."""
    scans = [
        node
        for node in _nodes(frame._jdf.queryExecution().sparkPlan())
        if "orders (hot)" in node.simpleString(100)
    ]
    [scan] = scans
    return int(scan.inputPartitions().size())


def _nodes(root: Any) -> list[Any]:
    children = root.children()
    below = [_nodes(children.apply(i)) for i in range(children.size())]
    return [root, *(node for nodes in below for node in nodes)]


def test_only_the_columns_that_are_needed(orders: Orders, sql: Sql) -> None:
    frame = sql(f"SELECT sum(amount) FROM {orders.table} WHERE id > 5")
    assert hot_columns(frame) == ["id", "amount"]
    assert frame.collect()[0][0] == sum(range(6, TOTAL)) * 0.5


def test_count_needs_no_column(orders: Orders, sql: Sql) -> None:
    frame = sql(f"SELECT count(*) FROM {orders.table}")
    assert hot_columns(frame) == []
    assert frame.collect()[0][0] == TOTAL


def test_filters_reach_both_halves(orders: Orders, sql: Sql) -> None:
    frame = sql(
        f"SELECT customer FROM {orders.table} WHERE id = 5 AND __publishTime > '2020-01-01'"
    )
    text = plan(frame)
    assert re.search(r"PushedPredicates: \[.*id = 5.*__publishTime > 1577836800000000", text)
    assert re.search(r"PushedFilters: \[.*EqualTo\(id,5\)", text)


def test_the_cold_half_stays_sparks_own(orders: Orders, sql: Sql) -> None:
    frame = sql(f"SELECT sum(amount) FROM {orders.table}")
    frame.collect()
    text = plan(frame)
    assert re.search(r"FileScan parquet.*Batched: true.*ReadSchema: struct<amount:double>", text)
    assert re.search(r"\*\(1\) ColumnarToRow", text)


def test_dataframes_are_pruned_alike(orders: Orders, lake: PulsarLake) -> None:
    frame = lake.table(orders.topic).where("id = 449").select("customer")
    assert hot_columns(frame) == ["id", "customer"]
    assert [row.customer for row in frame.collect()] == ["c1"]


@pytest.mark.parametrize(
    "condition", ["__partition = 7", "__ledgerId < 0", "__ledgerId IN (-1, -2)"]
)
def test_a_filter_that_excludes_all_segments_starts_no_task(
    condition: str, orders: Orders, sql: Sql
) -> None:
    frame = sql(f"SELECT id FROM {orders.table} WHERE {condition}")
    assert tasks(frame) == 0
    assert frame.collect() == []


def test_one_segment_by_its_ledger(orders: Orders, sql: Sql, lake: PulsarLake) -> None:
    hot = [one for one in lake.segments(orders.topic) if one.tier != "parquet"]
    one = hot[0]
    frame = sql(f"SELECT id FROM {orders.table} WHERE __ledgerId = {one.ledger_id}")
    assert tasks(frame) == 1
    ids = {row.id for row in frame.collect()}
    assert ids
    assert all(number >= COLD for number in ids)


def test_hot_rows_are_read_once_for_equal_sides(orders: Orders, sql: Sql) -> None:
    totals = f"SELECT customer, sum(amount) AS s FROM {orders.table} GROUP BY customer"
    frame = sql(
        f"SELECT /*+ MERGE(a, b) */ count(*) FROM ({totals}) a JOIN ({totals}) b "
        "ON a.customer = b.customer AND a.s = b.s"
    )
    assert frame.collect()[0][0] == 7
    assert "ReusedExchange" in plan(frame)


def test_a_plan_shows_no_secret(orders: Orders, sql: Sql, lake: PulsarLake) -> None:
    frame = sql(f"SELECT * FROM {orders.table}")
    text = str(frame._jdf.queryExecution().toString())
    secret = lake.config.storage.options["secret_access_key"]
    assert not re.search(rf"\b{secret}\b", text)


def test_statistics_guide_joins(orders: Orders, lake: PulsarLake) -> None:
    frame = lake.table(orders.topic, tiers="bookkeeper")
    statistics = frame._jdf.queryExecution().optimizedPlan().stats()
    assert 0 < int(str(statistics.sizeInBytes())) < 10_000_000
