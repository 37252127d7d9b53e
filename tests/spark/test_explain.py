"""What ``sql --explain`` finds in a query."""

from __future__ import annotations

import pytest

from offloader.cli.explain import predicates, topics_of
from reader.model import Topic
from reader.plan.pruning import Predicate
from spark_ext import PulsarLake
from tests.spark.conftest import Orders


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM pulsar.`public/default`.orders", [Topic("public", "default", "orders")]),
        (
            "SELECT * FROM Pulsar.`a/b`.`x-y` JOIN pulsar . `a/b` . z$tiers",
            [Topic("a", "b", "x-y"), Topic("a", "b", "z")],
        ),
    ],
)
def test_topics_of_a_query(query: str, expected: list[Topic]) -> None:
    assert topics_of(query) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 3", []),
        (
            "__publishTime >= TIMESTAMP '2020-01-01 00:00:00.5' AND id > 3",
            [Predicate("__publishTime", ">=", (1_577_836_800_500_000,))],
        ),
        ("__publishTime > TIMESTAMP '2020-01-01' OR id > 3", []),
        ("NOT (__publishTime > TIMESTAMP '2020-01-01' AND id > 3)", []),
    ],
)
def test_publish_times_of_a_plan(
    where: str, expected: list[Predicate], orders: Orders, lake: PulsarLake
) -> None:
    assert predicates(lake.spark.sql(f"SELECT * FROM {orders.table} WHERE {where}")) == expected
