"""A stream over all tiers gives what a query gives, each row once."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import json_schema, publish
from tests.spark.conftest import COLD, OPEN, ORDER, SEALED, TOTAL, Orders, order
from tests.spark.stream.runs import ids, reader, run, running


def test_all_tiers_once(lake: PulsarLake, orders: Orders, tmp_path: Path) -> None:
    batches = run(reader(lake).table(orders.table), tmp_path)
    batch = lake.table(f"{orders.namespace}/orders").collect()
    assert sorted(map(str, batches[0])) == sorted(map(str, batch))
    assert ids(batches) == list(range(TOTAL))


def test_ways_in(lake: PulsarLake, orders: Orders, tmp_path: Path) -> None:
    ways: dict[str, Callable[[], DataFrame]] = {
        "sql": lambda: lake.spark.sql(f"SELECT * FROM STREAM {orders.table}"),
        "format": lambda: reader(lake).format("pulsar").option("topic", orders.topic).load(),
        "pattern": lambda: (
            reader(lake)
            .format("pulsar")
            .option("topicsPattern", f"{orders.namespace}/ord.*")
            .load()
        ),
    }
    for name, way in ways.items():
        assert ids(run(way(), tmp_path / name)) == list(range(TOTAL)), name


def test_batches_of_limited_size(lake: PulsarLake, orders: Orders, tmp_path: Path) -> None:
    most = 120
    stream = reader(lake, maxMessagesPerTrigger=most).table(orders.table)
    batches = run(stream, tmp_path)
    assert ids(batches) == list(range(TOTAL))
    assert all(len(one) <= most for one in batches)
    latest = None
    for one in batches:
        times = [row["__publishTime"] for row in one]
        # More than the limit may be of one millisecond.
        assert latest is None or min(times) >= latest
        latest = max(times)


def test_columns_and_filters_reach_both_halves(
    lake: PulsarLake, orders: Orders, tmp_path: Path
) -> None:
    stream = reader(lake).table(orders.table).where("id >= 290 AND id < 410").select("id")
    assert ids(run(stream, tmp_path)) == list(range(290, 410))


def test_a_wrong_option_is_told(lake: PulsarLake, orders: Orders) -> None:
    with pytest.raises(Exception, match="a stream has no option startingOffsets"):
        reader(lake, startingOffsets="latest").table(orders.table)
    with pytest.raises(Exception, match="cannot be streamed: a compacted view"):
        reader(lake).table(orders.table[:-6] + "`orders$compacted`")


def test_the_start_is_kept_with_the_checkpoint(
    lake: PulsarLake, orders: Orders, tmp_path: Path
) -> None:
    run(reader(lake).table(orders.table), tmp_path)
    kept = json.loads((tmp_path / "sources" / "0" / "bounds").read_text())
    assert (json.loads(kept["start"])["format"], kept["ending"]) == (1, None)
    assert run(lake.spark.readStream.table(orders.table), tmp_path) == []


def test_the_progress_tells_rows_of_each_tier(
    lake: PulsarLake, orders: Orders, tmp_path: Path
) -> None:
    query = (
        reader(lake)
        .table(orders.table)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    [source] = query.recentProgress[0]["sources"]
    read = {name: int(n) for name, n in source["metrics"].items() if name.startswith("rowsFrom")}
    wanted = {"rowsFromParquet": COLD, "rowsFromBookKeeper": SEALED + OPEN}
    wanted |= {"rowsFromTieredStorage": 0, "rowsFromBroker": 0}
    assert read == wanted
    assert source["numInputRows"] == TOTAL


def test_two_streams_of_a_topic_in_one_query(
    lake: PulsarLake, orders: Orders, tmp_path: Path
) -> None:
    """Spark reads once for equal sides of a join: these are not, though of one topic."""
    rows = lake.spark.table(orders.table).where(f"id < {COLD}").collect()
    first = {}
    for part in (0, 1):
        places = sorted((r["__ledgerId"], r["__entryId"]) for r in rows if r["__partition"] == part)
        first[part] = places[len(places) // 2]
    at = json.dumps({str(part): f"{ledger}:{entry}" for part, (ledger, entry) in first.items()})
    later = {
        row.id for row in rows if (row["__ledgerId"], row["__entryId"]) >= first[row["__partition"]]
    }
    every = reader(lake).table(orders.table).where(f"id < {COLD}").select("id")
    some = reader(lake, startingPosition=at).table(orders.table).where(f"id < {COLD}").select("id")
    assert ids(run(every.join(some, "id"), tmp_path)) == sorted(later)


def test_a_subscription_shows_where_the_stream_is(
    lake: PulsarLake, admin: Admin, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    topic = admin.create_topic(f"{namespace}/shown", partitions=2)

    def send(first: int) -> None:
        numbers = range(first, first + 20)
        publish(cluster.service_url, topic, map(order, numbers), schema=json_schema(ORDER), batch=5)

    def is_read() -> bool:
        parts = admin.partitions(topic)
        there = all(name in admin.subscriptions(part) for part in parts)
        return there and not any(admin.backlog(part, name) for part in parts)

    name = "read by spark"
    send(0)
    stream = reader(lake, topic=f"{namespace}/shown", subscription=name).format("pulsar").load()
    with running(stream, tmp_path):
        wait_until("all is read", is_read)
        admin.seal(topic)
        send(20)
        wait_until("the rest is read", is_read)
    send(40)
    assert not is_read()
    with running(stream, tmp_path):  # which knows the subscription for a stream's
        wait_until("what came since is read", is_read)


def test_the_subscription_of_somebody_else_is_refused(
    lake: PulsarLake, admin: Admin, orders: Orders, tmp_path: Path
) -> None:
    """The offloader's, by which Pulsar keeps what is in no table."""
    part, *_ = admin.partitions(f"{orders.namespace}/orders")
    stream = reader(lake, subscription="pulsar-lake").table(orders.table)
    with pytest.raises(StreamingQueryException, match="is there already, and not a stream's"):
        run(stream, tmp_path)
    assert admin.backlog(part, "pulsar-lake") > 0


def test_a_temporary_view_comes_before_a_topic(lake: PulsarLake, orders: Orders) -> None:
    spark = lake.spark
    spark.readStream.format("rate").load().createOrReplaceTempView("orders")
    spark.sql(f"USE pulsar.`{orders.namespace}`")
    try:
        assert "timestamp" in spark.readStream.table("orders").columns
        assert "amount" in spark.readStream.table(orders.table).columns
        spark.catalog.dropTempView("orders")
        assert "amount" in spark.readStream.table("orders").columns
    finally:
        spark.sql("USE spark_catalog.default")


@pytest.mark.parametrize("name", ["startingPosition", "endingPosition"])
def test_a_time_that_has_not_come_is_refused(
    lake: PulsarLake, orders: Orders, tmp_path: Path, name: str
) -> None:
    """It would be the end that there is now."""
    later = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).isoformat()
    stream = reader(lake, **{name: later}).table(orders.table)
    with pytest.raises(StreamingQueryException, match="a time that has not come yet"):
        run(stream, tmp_path)
