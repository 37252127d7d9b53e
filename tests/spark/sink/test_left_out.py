"""Columns that a statement leaves out, and those that it says are NULL."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import lit

from offloader.config import Config
from reader import open_topic
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.cluster import Cluster
from testbed.publish import avro_schema, publish
from tests.spark.sink.conftest import Target

Make = Callable[..., Target]

RECORD: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": "string", "default": "it's \\ new"},
        {"name": "size", "type": ["int", "null"], "default": 5},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "paid", "type": ["null", "boolean"], "default": None},
        {"name": "rate", "type": "double", "default": 0.1},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "open", "type": {"type": "int", "logicalType": "time-millis"}, "default": 3600000},
    ],
}
HOUR = 3_600_000_000  # µs
FIRST = {
    "id": 0,
    "name": "a",
    "size": None,
    "note": "n",
    "paid": True,
    "rate": 1.0,
    "tags": ["x"],
    "open": 1,
}
NEW = "it's \\ new"


@pytest.fixture
def target(cluster: Cluster, admin: Admin, lake_config: Config, namespace: str) -> Target:
    topic = admin.create_topic(f"{namespace}/orders", partitions=1)
    publish(cluster.service_url, topic, [FIRST], schema=avro_schema(RECORD))
    return Target(lake_config, namespace, "orders")


def rows(target: Target) -> dict[int, tuple[object, ...]]:
    names = [field["name"] for field in RECORD["fields"]]
    return {one[0]: one[1:] for one in target.rows(*names)}


def test_a_column_that_is_left_out_is_its_default(lake: PulsarLake, target: Target) -> None:
    spark = lake.spark
    spark.sql(f"INSERT INTO {target.table} (id) VALUES (1)")
    spark.sql(f"INSERT INTO {target.table} (id, paid) SELECT id, true FROM range(2, 3)")
    spark.sql(f"INSERT INTO {target.table} BY NAME SELECT id FROM range(3, 4) UNION ALL SELECT 4L")
    frame = spark.range(5, 6)
    frame.writeTo(target.table).append()
    spark.range(6, 7).write.format("pulsar").option("topic", target.topic).mode("append").save()
    expected: dict[int, tuple[object, ...]] = dict.fromkeys(
        range(1, 7), (NEW, 5, None, None, 0.1, [], HOUR)
    )
    expected[2] = (NEW, 5, None, True, 0.1, [], HOUR)
    assert rows(target) == {0: ("a", None, "n", True, 1.0, ["x"], 1000)} | expected


def test_a_null_is_a_null(lake: PulsarLake, target: Target) -> None:
    """Also where Spark folds it, and whatever the field's default."""
    spark = lake.spark
    spark.sql(f"INSERT INTO {target.table} (id, size) SELECT id, NULL FROM range(1, 2)")
    spark.sql(f"INSERT INTO {target.table} (id, size) VALUES (2, NULL)")
    spark.sql(
        f"INSERT INTO {target.table} SELECT id, 'x', CAST(NULL AS INT), NULL, NULL, 2, array(), 0 "
        "FROM range(3, 4)"
    )
    frame = spark.range(4, 5).withColumn("size", lit(None).cast("int"))
    frame.write.format("pulsar").option("topic", target.topic).mode("append").save()
    found = rows(target)
    assert [found[one][1] for one in range(1, 5)] == [None] * 4
    with pytest.raises(PySparkException, match=r"name.*is NULL"):
        spark.sql(
            f"INSERT INTO {target.table} (id, name) SELECT id, CAST(NULL AS STRING) FROM range(9)"
        )
    assert rows(target) == found


def test_null_values_of_a_topic_with_defaults(lake: PulsarLake, target: Target) -> None:
    """Spark fills the defaults in."""
    statement = f"INSERT INTO {target.table} (__key, __tombstone) "
    lake.spark.sql(statement + "VALUES ('a', true)")
    lake.spark.sql(statement + "SELECT CAST(id AS STRING), true FROM range(2)")
    with open_topic(lake.config, target.topic) as opened:
        found = opened.scan(columns=["__key", "__tombstone", "rate"]).read_all().to_pylist()
    nulls = [(row["__key"], row["rate"]) for row in found if row["__tombstone"]]
    assert sorted(nulls) == [("0", None), ("1", None), ("a", None)]
    with pytest.raises(PySparkException, match="a row has a value, and its __tombstone is true"):
        lake.spark.sql(f"INSERT INTO {target.table} (id, rate, __tombstone) VALUES (1, 0.2, true)")


def test_null_values_of_a_query(lake: PulsarLake, make: Make) -> None:
    """A topic\'s rows deleted by a query, as its compacted view shows."""
    target, spark = make(), lake.spark
    spark.sql(
        f"INSERT INTO {target.table} BY NAME SELECT id, CAST(id AS STRING) AS __key FROM range(6)"
    )
    spark.sql(
        f"INSERT INTO {target.table} (__key, __tombstone) "
        "SELECT CAST(id AS STRING), true FROM range(2)"
    )
    keys = spark.range(2, 4).selectExpr(
        "CAST(id AS STRING) AS __key", "true AS __tombstone", "CAST(NULL AS BIGINT) AS id"
    )
    keys.write.format("pulsar").option("topic", target.topic).mode("append").save()
    assert sorted(row.id for row in spark.sql(f"SELECT id FROM {target.compacted}").collect()) == [
        4,
        5,
    ]
    with pytest.raises(PySparkException, match="have no payload column"):
        frame = keys.select("__key", "__tombstone")
        frame.write.format("pulsar").option("topic", target.topic).mode("append").save()
