"""``format("pulsar")``: the catalog's relation of a topic, pinned when loaded."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from reader.errors import ConfigurationError
from spark_ext import PulsarLake
from spark_ext.session.builder import catalog_settings
from spark_ext.session.errors import error_of
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
    wider = reader.schema("AMOUNT STRING, __partition LONG").load()
    assert wider.dtypes == [("AMOUNT", "string"), ("__partition", "bigint")]
    assert wider.selectExpr("sum(AMOUNT)").collect()[0][0] == sum(range(TOTAL)) * 0.5
    with pytest.raises(PySparkException, match="`nope` cannot be resolved"):
        reader.schema("nope INT").load()
    with pytest.raises(PySparkException, match="CANNOT_UP_CAST"):
        reader.schema("amount INT").load()


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


def test_its_plan_is_that_of_the_catalog(orders: Orders, lake: PulsarLake) -> None:
    def plan(frame: DataFrame) -> str:
        found = frame.where("id < 10").select("amount")._jdf.queryExecution()
        return re.sub(r"#\d+L?", "", found.executedPlan().toString())

    ours = plan(load(lake, topic=orders.topic))
    assert ours == plan(lake.table(orders.topic))
    assert "PushedFilters: [IsNotNull(id), LessThan(id,10)]" in ours
    assert "PushedPredicates: [id IS NOT NULL, id < 10]" in ours
    (shown,) = lake.query_plans(load(lake, topic=orders.topic))
    assert str(shown) == str(lake.query_plans(lake.table(orders.topic))[0])


def test_it_works_in_any_thread(orders: Orders, lake: PulsarLake) -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(lambda: load(lake, topic=orders.topic).count()).result() == TOTAL


def test_a_topic_that_looks_like_a_view(lake: PulsarLake, topic_name: str) -> None:
    """The option is the topic's own name, whatever a table of that name would be."""
    url = lake.config.pulsar.service_url
    publish(url, topic_name, [b"a"])
    publish(url, f"{topic_name}$compacted", [b"b"])
    frame = load(lake, topic=f"{topic_name}$compacted")
    assert [bytes(row.value) for row in frame.collect()] == [b"b"]


def test_temporary_views(orders: Orders, lake: PulsarLake) -> None:
    options = f"OPTIONS (topic '{orders.topic}', tiers 'parquet')"
    lake.spark.sql(f"CREATE TEMPORARY VIEW by_format USING pulsar {options}")
    assert lake.spark.table("by_format").count() == COLD
    lake.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW by_format (id BIGINT) USING pulsar {options}")
    assert lake.spark.table("by_format").columns == ["id"]
    lake.spark.catalog.dropTempView("by_format")


def test_options(orders: Orders, lake: PulsarLake) -> None:
    with pytest.raises(PySparkException, match="has no option topics") as caught:
        load(lake, topic=orders.topic, topics="a,b")
    error = error_of(caught.value)
    assert isinstance(error, ConfigurationError)
    assert error.hint == "one of topic, tiers, config"
    with pytest.raises(PySparkException, match="has no option path"):
        lake.spark.read.format("pulsar").option("topic", orders.topic).load("/somewhere")
    assert lake.spark.read.format("pulsar").options(TOPIC=orders.topic, tiers=None).load().columns
    with pytest.raises(PySparkException, match="the catalog spark_catalog has no topics"):
        load(lake, topic=orders.topic, catalog="spark_catalog")


def test_no_option_names_settings(orders: Orders, lake: PulsarLake) -> None:
    catalog = lake.spark._jsparkSession.sessionState().catalogManager().catalog("pulsar")  # noqa: SLF001
    assert catalog_settings(lake.spark, "pulsar") == lake.config
    assert load(lake, topic=orders.topic, config=catalog.config()).columns
    for name in ("config", "CONFIG"):
        with pytest.raises(PySparkException, match="cannot be chosen by an option"):
            load(lake, topic=orders.topic, **{name: "/evil.toml"})
