"""The cold half of a topic is Spark's own Parquet scan, with all that Spark does for one."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from spark_ext import PulsarLake
from tests.spark.conftest import COLD, TOTAL, Orders

Values = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def cold(orders: Orders) -> str:
    """The rows of the table alone."""
    return orders.table.replace(".orders", ".`orders$tiers=parquet`")


def _plan(lake: PulsarLake, query: str) -> str:
    return str(lake.spark.sql(query)._jdf.queryExecution().executedPlan().toString())


def _jobs(lake: PulsarLake, query: str) -> int:
    """How many jobs Spark runs for a query."""
    context = lake.spark.sparkContext
    group = f"jobs-of-{abs(hash(query))}"
    context.setJobGroup(group, query)
    try:
        lake.spark.sql(query).collect()
        return len(context.statusTracker().getJobIdsForGroup(group))
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def test_columns_and_filters_reach_a_vectorised_scan(lake: PulsarLake, cold: str) -> None:
    text = _plan(lake, f"SELECT id FROM {cold} WHERE amount > 10 AND __ledgerId >= 0")
    [scan] = re.findall(r"FileScan parquet .*", text)
    assert "Batched: true" in scan
    assert "ReadSchema: struct<id:bigint,amount:double,__ledgerId:bigint>" in scan
    assert "GreaterThan(amount,10.0)" in scan
    assert re.search(r"\*\(1\) ColumnarToRow", text), text


def test_nothing_is_run_to_plan(lake: PulsarLake, orders: Orders) -> None:
    """Delta replays its log in tasks of Spark; here there is the query's own job and no other."""
    assert _jobs(lake, f"SELECT sum(id) FROM {orders.table} WHERE __partition >= 0") <= 2
    frame = lake.spark.sql(f"SELECT id FROM {orders.table} WHERE __partition >= 0")
    context = lake.spark.sparkContext
    context.setJobGroup("planning", "planning")
    try:
        frame._jdf.queryExecution().executedPlan()
        assert not context.statusTracker().getJobIdsForGroup("planning")
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT count(*) FROM {}", (COLD,)),
        ("SELECT count(1) + 1, 'x' FROM {}", (COLD + 1, "x")),
        ("SELECT min(__entryId), max(__partition) AS p FROM {}", (0, 1)),
        ("SELECT min(i) FROM (SELECT __entryId AS i, amount FROM {})", (0,)),
    ],
)
def test_what_the_log_knows_needs_no_file(
    lake: PulsarLake, cold: str, values: Values, query: str, expected: tuple[Any, ...]
) -> None:
    assert values(query.format(cold)) == [expected]
    assert "FileScan" not in _plan(lake, query.format(cold))


@pytest.mark.parametrize(
    "what",
    [
        "count(*) FROM {} WHERE id >= 0",
        "count(id) FROM {}",
        "count(DISTINCT __partition) FROM {}",
        "count(*) FILTER (WHERE id > 5) FROM {}",
        "max(__publishTime) FROM {}",
        "max(amount) FROM {}",
        "max(id + 1) FROM {}",
        "count(*) FROM (SELECT * FROM {} LIMIT 5)",
    ],
)
def test_what_it_does_not_know_is_read(
    lake: PulsarLake, cold: str, orders: Orders, values: Values, what: str
) -> None:
    query = f"SELECT {what.format(cold)}"
    assert "FileScan" in _plan(lake, query)
    below = f"(SELECT * FROM {orders.table} WHERE id < {COLD})"
    if "LIMIT" not in what:
        assert values(query) == values(f"SELECT {what.format(below)}")


def test_an_aggregate_in_a_subquery(lake: PulsarLake, cold: str, values: Values) -> None:
    query = f"SELECT count(*) FROM {cold} WHERE __ledgerId = (SELECT max(__ledgerId) FROM {cold})"
    last = values(f"SELECT max(__ledgerId) FROM {cold}")[0][0]
    assert values(query) == values(f"SELECT count_if(__ledgerId = {last}) FROM {cold}")
    assert len(re.findall("FileScan", _plan(lake, query))) == 1


def test_equal_sides_of_a_join_are_read_once(lake: PulsarLake, cold: str) -> None:
    one = f"(SELECT id % 10 AS k, count(*) AS n FROM {cold} WHERE id > 5 GROUP BY 1)"
    query = f"SELECT /*+ MERGE(a, b) */ count(*) FROM {one} a JOIN {one} b USING (k)"
    frame = lake.spark.sql(query)
    frame.collect()
    assert "Reused" in str(frame._jdf.queryExecution().executedPlan().toString())


def test_a_join_is_planned_by_the_files_that_are_left(lake: PulsarLake, cold: str) -> None:
    frame = lake.spark.sql(f"SELECT * FROM {cold} WHERE __ledgerId < 0")
    whole = lake.spark.sql(f"SELECT * FROM {cold}")
    none, every = (
        int(str(one._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
        for one in (frame, whole)
    )
    assert none <= 1 < 1_000 < every


@pytest.mark.parametrize(
    "where", ["{} < 0", "{0} IS NOT NULL AND {0} < 0", "{0} IN (-5, -6) AND {0} > -9"]
)
def test_a_column_in_another_case_prunes_as_well(
    lake: PulsarLake, orders: Orders, cold: str, where: str
) -> None:
    """True of no file, by the log. Without a view between, the query's spelling is the scan's."""
    for table in (cold, f"{orders.table} VERSION AS OF 1"):
        for name in ("__ledgerId", "__LEDGERID", "`__ledgerid`"):
            frame = lake.spark.sql(f"SELECT id FROM {table} WHERE {where.format(name)}")
            assert frame.inputFiles() == [], (table, name)


def test_runtime_filters_reach_the_scan(lake: PulsarLake, cold: str, values: Values) -> None:
    settings = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
    }
    query = (
        f"SELECT count(*) FROM {cold} a JOIN {cold} b ON a.id = b.id "
        "WHERE b.customer = 'c3' AND b.amount > 10"
    )
    before = values(query)
    try:
        for key, value in settings.items():
            lake.spark.conf.set(key, value)
        assert "might_contain" in _plan(lake, query)
        assert values(query) == before
    finally:
        for key in settings:
            lake.spark.conf.unset(key)


def test_a_frame_that_was_cached_is_found_again(lake: PulsarLake, cold: str) -> None:
    frame = lake.spark.sql(f"SELECT id, amount FROM {cold} WHERE id > 5").cache()
    try:
        assert frame.count() == COLD - 6
        assert "InMemoryTableScan" in _plan(lake, f"SELECT id, amount FROM {cold} WHERE id > 5")
    finally:
        frame.unpersist()


def test_the_same_rows_without_the_rule(lake: PulsarLake, orders: Orders, values: Values) -> None:
    """A session that has the catalog and not the extension: files are asked for as it runs."""
    rule = "io.pulsarlake.spark.rules.TopicScans"
    query = f"SELECT count(*), sum(id), max(__ledgerId) FROM {orders.table}"
    ruled = values(query)
    assert ruled[0][0] == TOTAL
    lake.spark.conf.set("spark.sql.optimizer.excludedRules", rule)
    try:
        assert values(query) == ruled
        filtered = f"SELECT count(*) FROM {orders.table} WHERE __partition = 1 AND id < 100"
        without = values(filtered)
    finally:
        lake.spark.conf.unset("spark.sql.optimizer.excludedRules")
    assert values(filtered) == without


def test_nobody_can_name_files(lake: PulsarLake, orders: Orders) -> None:
    """What Spark asks for the relation takes a table of the catalog, and no path."""
    reader = lake.spark.read.format("io.pulsarlake.spark.reads.ColdTable").schema("a INT")
    with pytest.raises(Exception, match="key not found: catalog"):
        reader.option("path", "/etc").load().collect()
