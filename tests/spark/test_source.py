"""``format("pulsar")``: all tiers through Python, pinned when loaded."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from spark_ext import PulsarLake
from testbed.publish import publish
from tests.spark.conftest import COLD, TOTAL, Orders


def load(lake: PulsarLake, **options: str) -> DataFrame:
    return lake.spark.read.format("pulsar").options(**options).load()


def test_it_gives_what_the_catalog_gives(orders: Orders, lake: PulsarLake) -> None:
    frame = load(lake, topic=orders.topic)
    table = lake.table(orders.topic)
    assert frame.columns == table.columns
    assert frame.schema == table.schema
    ours = {str(row) for row in frame.collect()}
    assert ours == {str(row) for row in table.collect()}
    assert len(ours) == TOTAL


def test_reuse_with_and_without_a_filter(orders: Orders, lake: PulsarLake) -> None:
    frame = load(lake, topic=orders.topic)
    assert frame.where("id < 10").count() == 10
    assert frame.count() == TOTAL
    assert frame.where("id < 10").union(frame).count() == TOTAL + 10


def test_tiers(orders: Orders, lake: PulsarLake) -> None:
    frame = load(lake, topic=orders.topic, tiers="parquet")
    assert sorted(row.id for row in frame.select("id").collect()) == list(range(COLD))


def test_a_schema_of_the_users(orders: Orders, lake: PulsarLake) -> None:
    reader = lake.spark.read.format("pulsar").options(topic=orders.topic)
    frame = reader.schema("amount DOUBLE, __partition INT").load()
    assert frame.selectExpr("sum(amount)").collect()[0][0] == sum(range(TOTAL)) * 0.5
    with pytest.raises(PySparkException, match="has no column nope"):
        reader.schema("nope INT").load().collect()


def test_it_is_pinned_when_loaded(lake: PulsarLake, topic_name: str) -> None:
    url = lake.config.pulsar.service_url
    publish(url, topic_name, [b"a"])
    frame = load(lake, topic=topic_name)
    publish(url, topic_name, [b"b"])
    assert [bytes(row.value) for row in frame.collect()] == [b"a"]


def test_an_empty_topic(lake: PulsarLake, topic_name: str) -> None:
    publish(lake.config.pulsar.service_url, topic_name, [])
    assert load(lake, topic=topic_name).collect() == []


def test_without_a_topic(lake: PulsarLake) -> None:
    with pytest.raises(PySparkException, match="needs a topic"):
        load(lake)
