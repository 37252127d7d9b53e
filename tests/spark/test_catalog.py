"""What SHOW, DESCRIBE and USE say of topics, and what the catalog refuses."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException

from reader.model import Topic
from reader.storage import open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from tests.spark.conftest import COLD, TOTAL, Orders

Values = Callable[[str], list[tuple[object, ...]]]


@pytest.fixture
def in_pulsar(lake: PulsarLake, orders: Orders) -> Iterator[None]:
    """The topic's namespace is the current one, for a while."""
    lake.spark.sql(f"USE pulsar.`{orders.namespace}`")
    yield
    lake.spark.sql("USE spark_catalog.default")


def test_the_catalog_is_listed(orders: Orders, values: Values) -> None:
    values("SHOW NAMESPACES IN pulsar")
    assert ("pulsar",) in values("SHOW CATALOGS")


def test_namespaces(orders: Orders, values: Values) -> None:
    assert (f"`{orders.namespace}`",) in values("SHOW NAMESPACES IN pulsar")
    assert values(f"SHOW NAMESPACES IN pulsar.`{orders.namespace}`") == []


def test_topics(orders: Orders, values: Values) -> None:
    [row] = values(f"SHOW TABLES IN pulsar.`{orders.namespace}`")
    assert row[1:] == ("orders", False)
    [row] = values(f"SHOW VIEWS IN pulsar.`{orders.namespace}`")
    assert row[1] == "orders"


def test_columns(orders: Orders, values: Values) -> None:
    found = {name: kind for name, kind, _ in values(f"DESCRIBE {orders.table}")}
    assert list(found)[:4] == ["id", "customer", "amount", "__topic"]
    assert found["id"] == "bigint"
    assert found["__publishTime"] == "timestamp"
    assert found["__messageProperties"] == "map<string,string>"
    assert found["__rescued"] == "binary"
    assert ("customer",) in values(f"SHOW COLUMNS IN {orders.table}")


def test_extended_description_has_no_secret(orders: Orders, lake: PulsarLake) -> None:
    text = str(lake.spark.sql(f"DESCRIBE EXTENDED {orders.table}").collect())
    assert orders.topic in text
    for name, value in lake.config.storage.options.items():
        assert "key" not in name or f"'{value}'" not in text


def test_a_namespace_that_does_not_exist(values: Values, orders: Orders) -> None:
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        values("SHOW TABLES IN pulsar.`public/no-such`")
    with pytest.raises(AnalysisException, match="SCHEMA_NOT_FOUND"):
        values("SHOW TABLES IN pulsar.nonsense")


def test_a_topic_that_does_not_exist(values: Values, orders: Orders, lake: PulsarLake) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        values(f"SELECT * FROM pulsar.`{orders.namespace}`.nope")
    assert not lake.spark.catalog.tableExists(f"pulsar.`{orders.namespace}`.nope")
    assert lake.spark.catalog.tableExists(orders.table)


def test_names_are_case_sensitive(values: Values, orders: Orders) -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        values(f"SELECT * FROM pulsar.`{orders.namespace}`.ORDERS")


@pytest.mark.usefixtures("in_pulsar")
def test_names_within_the_current_namespace(orders: Orders, values: Values) -> None:
    assert values("SELECT count(*) FROM orders") == [(TOTAL,)]


@pytest.mark.usefixtures("in_pulsar")
def test_delta_paths_resolve_in_the_current_catalog(
    orders: Orders, values: Values, lake: PulsarLake
) -> None:
    storage = open_storage(lake.config.storage)
    path = storage.spark_uri(f"{storage.root}/{orders.namespace}/orders")
    assert values(f"SELECT count(*) FROM delta.`{path}`") == [(COLD,)]


def test_time_travel_reads_the_archive_alone(
    orders: Orders, values: Values, lake: PulsarLake
) -> None:
    table = TopicTable.open(open_storage(lake.config.storage), Topic.parse(orders.topic))
    assert table is not None
    text = f"SELECT count(*), max(id) FROM {orders.table} VERSION AS OF"
    assert values(f"{text} {table.version}") == [(COLD, COLD - 1)]


def test_time_travel_in_a_namespace_without_backticks(orders: Orders, values: Values) -> None:
    tenant, namespace = orders.namespace.split("/")
    name = f"pulsar.{tenant}.`{namespace}`.orders"
    assert values(f"SELECT count(*), max(id) FROM {name}") == [(TOTAL, TOTAL - 1)]
    assert values(f"SELECT count(*) FROM {name} VERSION AS OF 1") == values(
        f"SELECT count(*) FROM {orders.table} VERSION AS OF 1"
    )


def test_time_travel_by_time(orders: Orders, values: Values, lake: PulsarLake) -> None:
    text = f"SELECT count(*), max(id) FROM {orders.table} TIMESTAMP AS OF"
    assert values(f"{text} now()") == [(COLD, COLD - 1)]
    with pytest.raises(AnalysisException, match="no version that is as old"):
        values(f"{text} '2020-01-01'")


def test_a_version_that_is_none(orders: Orders, values: Values) -> None:
    with pytest.raises(AnalysisException, match="is a number, not 'first'"):
        values(f"SELECT * FROM {orders.table} VERSION AS OF 'first'")
    with pytest.raises(AnalysisException, match=r"cannot read the table.*version"):
        values(f"SELECT * FROM {orders.table} VERSION AS OF 999")


def test_time_travel_needs_a_table(orders: Orders, values: Values, lake: PulsarLake) -> None:
    with pytest.raises(AnalysisException, match=r"has no table yet.*pulsar-lake offload"):
        values(f"SELECT * FROM pulsar.`{orders.namespace}`.nope VERSION AS OF 0")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("CREATE TABLE pulsar.`{0}`.orders (a INT)", "already exists"),
        ("CREATE VIEW pulsar.`{0}`.x AS SELECT 1 AS a", "does not make views"),
        ("DROP VIEW pulsar.`{0}`.orders", "which is not allowed"),
        ("ALTER VIEW pulsar.`{0}`.orders RENAME TO pulsar.`{0}`.x", "does not rename topics"),
        ("CREATE NAMESPACE pulsar.`public/x`", "does not make namespaces"),
        ("DROP NAMESPACE pulsar.`{0}`", "does not delete namespaces"),
        ("INSERT INTO pulsar.`{0}`.orders SELECT * FROM pulsar.`{0}`.orders", "too many data"),
    ],
)
def test_what_is_refused(statement: str, said: str, orders: Orders, values: Values) -> None:
    with pytest.raises(AnalysisException, match=said):
        values(statement.format(orders.namespace))
    assert values(f"SELECT count(*) FROM {orders.table}") == [(TOTAL,)]
