"""What the shim writes about filters, and what of it is used for pruning."""

from typing import Any

import pytest

from reader.plan.filters import AllOf, Predicate, Unequal
from spark_ext.planner.predicates import filters_of, predicates_of
from spark_ext.planner.protocol import Expression
from tests.unit.spark.planner.expressions import call, column, literal

TIME = column("__publishTime")
ID = column("__ledgerId")


def at(value: Any, kind: str = "timestamp") -> Expression:
    return literal(value, kind)


@pytest.mark.parametrize(
    ("node", "found"),
    [
        (call(">=", TIME, at(5)), [Predicate("__publishTime", ">=", (5,))]),
        (call(">", at(5), TIME), [Predicate("__publishTime", "<", (5,))]),
        (call("<=>", ID, at(3, "long")), [Predicate("__ledgerId", "=", (3,))]),
        (call("IN", ID, at(1, "long"), at(2, "long")), [Predicate("__ledgerId", "in", (1, 2))]),
        (
            call("AND", call(">", ID, at(1, "long")), call("<", ID, at(9, "long"))),
            [Predicate("__ledgerId", ">", (1,)), Predicate("__ledgerId", "<", (9,))],
        ),
        # A wrong use of any of these would lose rows.
        (call("OR", call("=", ID, at(1, "long")), call("=", TIME, at(2))), []),
        (call("NOT", call("=", ID, at(1, "long"))), []),
        (call("<>", ID, at(1, "long")), []),
        (call("IS_NOT_NULL", TIME), []),
        (call("=", column("a", "b"), at(1, "long")), []),
        (call("=", ID, at(None, "long")), []),
        (call("IN", ID, at(1, "long"), at(None, "long")), []),
        (call("IN", ID), []),
        (call("=", TIME, at(20_000, "date")), []),
        (call("=", TIME, at(20_000, "timestamp_ntz")), []),
        (call("=", column("x"), at("a", "string")), []),
        (call("=", ID, ID), []),
        (call("=", call(None, ID), at(1, "long")), []),
        (call(None), []),
    ],
)
def test_one_filter(node: Expression, found: list[Predicate]) -> None:
    assert predicates_of([node]) == found


def test_kinds_of_rows_prune_files() -> None:
    kind = column("__kind")
    wanted = [
        call("=", kind, at("message", "string")),
        call("NOT", call("=", kind, at("x", "string"))),
    ]
    found = [Predicate("__kind", "=", ("message",)), AllOf((Unequal("__kind", "x"),))]
    assert filters_of(wanted) == found
    assert predicates_of(wanted) == [], "hot segments are not pruned by them"


def test_conjuncts_are_added_up() -> None:
    both = [call(">", TIME, at(1)), call("IS_NOT_NULL", TIME), call("<", TIME, at(9))]
    assert [one.op for one in predicates_of(both)] == [">", "<"]
    assert predicates_of([]) == []
