"""Right rows for every way to use a topic twice; plain filter pushdown gets these wrong."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest
from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import Message, json_schema, publish
from tests.spark.conftest import COLD, TOTAL, Orders, order

Values = Callable[[str], list[tuple[object, ...]]]
Sql = Callable[[str], DataFrame]


@pytest.fixture
def view(lake: PulsarLake, orders: Orders) -> Iterator[str]:
    """A temporary view over the topic."""
    lake.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW recent AS SELECT * FROM {orders.table}")
    yield "recent"
    lake.spark.sql("DROP VIEW recent")


def test_a_temporary_view_of_a_data_frame_is_its_snapshot(
    lake: PulsarLake, orders: Orders, values: Values
) -> None:
    """Spark loads the view's tables again by their names, the hot one's and the cold one's."""
    lake.spark.table(orders.table).createOrReplaceTempView("kept")
    try:
        assert values("SELECT count(*), sum(id) FROM kept") == [(TOTAL, sum(range(TOTAL)))]
        assert values("SELECT count(*) FROM kept WHERE id >= 10") == [(TOTAL - 10,)]
    finally:
        lake.spark.catalog.dropTempView("kept")


@pytest.mark.journey
def test_every_message_is_one_row(orders: Orders, values: Values) -> None:
    found = values(f"SELECT id, customer, amount FROM {orders.table} ORDER BY id")
    assert found == [tuple(order(number).values()) for number in range(TOTAL)]


def test_rows_are_identified_by_their_position(orders: Orders, values: Values) -> None:
    key = "struct(__partition, __ledgerId, __entryId, __batchIndex)"
    text = f"SELECT count(DISTINCT {key}), count(__error), count(*) FROM {orders.table}"
    assert values(text) == [(TOTAL, 0, TOTAL)]


@pytest.mark.journey
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("id >= 0", TOTAL),
        ("id < 10", 10),
        (f"id BETWEEN {COLD - 5} AND {COLD + 4}", 10),
        ("id IN (1, 299, 300, 449, 1000)", 4),
        ("customer = 'c3' AND amount > 100", 35),
        ("customer LIKE 'c%' AND NOT id = 7", TOTAL - 1),
        ("id = 1 OR id = 444", 2),
        ("__publishTime > TIMESTAMP '2020-01-01'", TOTAL),
        ("__publishTime < TIMESTAMP '2020-01-01'", 0),
        ("CAST(__publishTime AS DATE) > DATE '2020-01-01'", TOTAL),
        ("__ledgerId < 0", 0),
        ("__partition IN (0, 1)", TOTAL),
        ("__partition = 5", 0),
        ("__eventTime IS NULL", TOTAL),
        ("__messageProperties['x'] IS NULL", TOTAL),
    ],
)
def test_filters(condition: str, count: int, orders: Orders, values: Values) -> None:
    assert values(f"SELECT count(*) FROM {orders.table} WHERE {condition}") == [(count,)]


def test_filtered_and_unfiltered_references(orders: Orders, values: Values) -> None:
    t = orders.table
    assert values(
        f"SELECT (SELECT count(*) FROM {t} WHERE id < 10), (SELECT count(*) FROM {t})"
    ) == [(10, TOTAL)]
    union = f"SELECT id FROM {t} WHERE id < 10 UNION ALL SELECT id FROM {t} WHERE id >= 400"
    assert values(f"SELECT count(*) FROM ({union})") == [(60,)]


def test_a_reused_dataframe(orders: Orders, lake: PulsarLake) -> None:
    frame = lake.spark.table(orders.table)
    assert frame.where("id < 10").count() == 10
    assert frame.count() == TOTAL
    assert frame.where("id < 10").union(frame).count() == TOTAL + 10
    assert frame.where("id < 10").union(frame.where("id >= 400")).count() == 60


def test_a_temporary_view_twice_in_one_statement(view: str, values: Values) -> None:
    assert values(
        f"SELECT (SELECT count(*) FROM {view} WHERE id < 10), (SELECT count(*) FROM {view})"
    ) == [(10, TOTAL)]


def test_a_persistent_view(orders: Orders, values: Values) -> None:
    values(f"CREATE VIEW spark_catalog.default.big AS SELECT * FROM {orders.table} WHERE id > 9")
    try:
        assert values("SELECT count(*) FROM big") == [(TOTAL - 10,)]
        assert values("SELECT count(*) FROM big WHERE id < 20") == [(10,)]
    finally:
        values("DROP VIEW spark_catalog.default.big")


@pytest.mark.journey
def test_self_join(orders: Orders, values: Values) -> None:
    t = orders.table
    text = (
        f"SELECT count(*), sum(b.id) FROM {t} a JOIN {t} b ON a.id = b.id + 300 "
        "WHERE b.customer = 'c1'"
    )
    ids = [number for number in range(TOTAL - 300) if number % 7 == 1]
    assert values(text) == [(len(ids), sum(ids))]


def test_correlated_subquery_and_cte(orders: Orders, values: Values) -> None:
    t = orders.table
    text = (
        f"WITH late AS (SELECT * FROM {t} WHERE id >= 400) SELECT count(*) FROM {t} a "
        "WHERE EXISTS (SELECT 1 FROM late WHERE late.id = a.id + 100)"
    )
    assert values(text) == [(50,)]


def test_aggregates_over_both_halves(orders: Orders, values: Values) -> None:
    found = values(
        f"SELECT customer, count(*), sum(amount) FROM {orders.table} GROUP BY 1 ORDER BY 1"
    )
    groups = [[n for n in range(TOTAL) if n % 7 == rest] for rest in range(7)]
    assert found == [(f"c{i}", len(g), sum(g) * 0.5) for i, g in enumerate(groups)]


def test_limit_and_order(orders: Orders, values: Values) -> None:
    assert len(values(f"SELECT * FROM {orders.table} LIMIT 5")) == 5
    assert values(f"SELECT id FROM {orders.table} ORDER BY id DESC LIMIT 2") == [(449,), (448,)]


def test_a_cached_table(orders: Orders, lake: PulsarLake) -> None:
    frame = lake.spark.table(orders.table).where("id >= 290").cache()
    try:
        assert frame.count() == TOTAL - 290
        assert frame.where("id < 310").count() == 20
    finally:
        frame.unpersist()


def test_a_dataframe_is_one_snapshot(
    lake: PulsarLake, topic_name: str, lake_config: object
) -> None:
    url = lake.config.pulsar.service_url
    publish(url, topic_name, [b"a", b"b"])
    frame = lake.table(topic_name)
    temporary = "snapshot_of_a_moment"
    lake.spark.sql(f"CREATE TEMPORARY VIEW {temporary} AS SELECT * FROM {_name(topic_name)}")
    assert frame.count() == 2
    publish(url, topic_name, [b"c"])
    assert frame.count() == 2
    assert sorted(bytes(row.value) for row in frame.collect()) == [b"a", b"b"]
    # A view is looked at anew by every query.
    assert lake.spark.sql(f"SELECT * FROM {temporary}").count() == 3
    lake.spark.sql(f"DROP VIEW {temporary}")


def _name(topic: str) -> str:
    tenant, namespace, name = topic.removeprefix("persistent://").split("/")
    return f"pulsar.`{tenant}/{namespace}`.`{name}`"


def test_a_topic_without_messages(lake: PulsarLake, topic_name: str, admin: object) -> None:
    publish(lake.config.pulsar.service_url, topic_name, [])
    frame = lake.table(topic_name)
    assert frame.count() == 0
    assert frame.where("__publishTime IS NOT NULL").collect() == []
    assert "__key" in frame.columns


def test_eight_queries_at_once(orders: Orders, values: Values) -> None:
    def run(number: int) -> list[tuple[object, ...]]:
        return values(f"SELECT count(*) FROM {orders.table} WHERE id >= {number}")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(8))) == [[(TOTAL - n,)] for n in range(8)]


def test_another_session_has_the_catalog_too(orders: Orders, lake: PulsarLake) -> None:
    other = lake.spark.newSession()
    assert other.sql(f"SELECT count(*) FROM {orders.table}").collect()[0][0] == TOTAL


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York"])
def test_the_sessions_time_zone_does_not_move_rows(
    zone: str, orders: Orders, lake: PulsarLake, values: Values
) -> None:
    [(low, high)] = values(
        f"SELECT unix_micros(min(__publishTime)), unix_micros(max(__publishTime)) "
        f"FROM {orders.table}"
    )
    lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        between = f"__publishTime BETWEEN timestamp_micros({low}) AND timestamp_micros({high})"
        assert values(f"SELECT count(*) FROM {orders.table} WHERE {between}") == [(TOTAL,)]
        outside = f"__publishTime > timestamp_micros({high})"
        assert values(f"SELECT count(*) FROM {orders.table} WHERE {outside}") == [(0,)]
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_collect_has_no_year_that_python_lacks(
    lake: PulsarLake, cluster: Cluster, admin: Admin, orders: Orders, offload: Callable[[str], None]
) -> None:
    """Of payloads and of metadata, hot and offloaded; the edges of the range stay what they are."""
    fields = [
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ]
    day, ten_thousand = 86_400_000, 253_402_300_800_000
    values = [  # date, time and event time
        (2_932_896, ten_thousand - 2 * day, ten_thousand - 2 * day),
        (2_932_897, ten_thousand, ten_thousand),
        (-719_162, -62_135_596_800_000 + 2 * day, None),
        (-719_163, -62_135_596_800_001, None),
    ]
    topic = admin.create_topic(f"{orders.namespace}/years")
    publish(
        cluster.service_url,
        topic,
        [Message({"d": d, "t": t}, event_time=event) for d, t, event in values],
        schema=json_schema({"type": "record", "name": "Y", "fields": fields}),
    )
    admin.seal(topic)
    for _ in ("hot", "offloaded"):
        rows = lake.table(topic).sort("__ledgerId", "__entryId").collect()
        assert [row["d"] for row in rows] == [date.max, None, date.min, None]
        assert [row["t"] is None for row in rows] == [False, True, False, True]
        assert [row["__eventTime"] is None for row in rows] == [False, True, True, True]
        assert [row["__error"] is None for row in rows] == [True, False, True, False]
        assert lake.segments(topic)
        offload(topic)
    assert "offloaded" in {segment.state for segment in lake.segments(topic)}
