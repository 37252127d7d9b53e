"""A query asks the planner twice: once when it is analysed, once when it is planned."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spark_ext import PulsarLake
from tests.spark.conftest import TOTAL, Orders

Values = Callable[[str], list[tuple[object, ...]]]


@contextmanager
def questions(lake: PulsarLake, most: int) -> Iterator[None]:
    """Check that so many questions are asked inside."""

    def asked() -> int:
        manager = lake.spark._jsparkSession.sessionState().catalogManager()  # noqa: SLF001
        return int(manager.catalog("pulsar").planner().planner().asked())

    before = asked()
    yield
    assert asked() - before == most


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, amount FROM {0} WHERE id BETWEEN 250 AND 420",
        "SELECT count(*), max(id) FROM {0}",
        "SELECT customer, sum(amount) FROM {0} GROUP BY customer",
        "SELECT count(*) FROM {0} a JOIN {0} b ON a.id = b.id WHERE b.id > 300",
        "SELECT count(*) FROM {0} WHERE id = (SELECT max(id) FROM {0} WHERE amount < 100)",
        "SELECT count(*) FROM {0} WHERE id IN (SELECT id FROM {0} WHERE customer = 'c1')",
        "WITH t AS (SELECT * FROM {0} WHERE id > 10) SELECT * FROM t UNION ALL SELECT * FROM t",
        "SELECT count(*), min(__ledgerId), max(id) FROM {1}",
    ],
)
def test_a_query(lake: PulsarLake, orders: Orders, values: Values, text: str) -> None:
    cold = orders.table.replace("orders", "`orders$tiers=parquet`")
    with questions(lake, 2):
        assert values(text.format(orders.table, cold))


def test_a_data_frame_is_analysed_once(lake: PulsarLake, orders: Orders) -> None:
    with questions(lake, 1):
        found = lake.spark.table(orders.table)
    with questions(lake, 1):
        assert found.count() == TOTAL
    with questions(lake, 1):
        assert found.where("id < 10").count() == 10
    with questions(lake, 1):  # Spark plans what is cached at once
        cached = found.where("id > 300").cache()
    try:
        with questions(lake, 0):
            assert cached.count() == TOTAL - 301
        with questions(lake, 0):
            assert cached.where("id > 310").count() == TOTAL - 311
    finally:
        cached.unpersist()


def test_a_read_by_format(lake: PulsarLake, orders: Orders) -> None:
    with questions(lake, 1):
        found = lake.spark.read.format("pulsar").option("topic", orders.topic).load()
    with questions(lake, 1):
        assert found.where("id < 10").count() == 10


def test_two_topics_have_a_question_each_when_they_are_analysed(
    lake: PulsarLake, orders: Orders, values: Values
) -> None:
    compacted = orders.table.replace("orders", "`orders$compacted`")
    with questions(lake, 3):
        values(f"SELECT count(*) FROM {orders.table} a JOIN {compacted} b ON a.id = b.id")


def test_explain(lake: PulsarLake, orders: Orders, values: Values) -> None:
    with questions(lake, 2):
        values(f"EXPLAIN SELECT * FROM {orders.table} WHERE id > 3")


def test_a_micro_batch(lake: PulsarLake, orders: Orders, tmp_path: Path) -> None:
    """Where it begins and ends, what lies there, what it reads of that; and what is behind it."""
    stream = lake.spark.readStream.option("startingPosition", "earliest").table(orders.table)
    rows = stream.where("id >= 100").select("id", "customer")
    query = (
        rows.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    # The end and bounds, once a query; a batch, what is read of it; metrics; no more.
    with questions(lake, 6):
        running = query.start()
        running.awaitTermination()
