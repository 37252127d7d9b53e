"""What the shim writes about filters, and what of it is used for pruning."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reader.plan.filters import AllOf, Predicate, Unequal
from spark_ext.predicates import parse_filters, parse_predicates

TIME = {"column": ["__publishTime"]}
ID = {"column": ["__ledgerId"]}


def at(value: Any, kind: str = "timestamp") -> dict[str, Any]:
    return {"value": value, "type": kind}


def call(op: str | None, *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"op": op, "args": list(arguments)}


@pytest.mark.parametrize(
    ("node", "found"),
    [
        (call(">=", TIME, at(5)), [Predicate("__publishTime", ">=", (5,))]),
        (call(">", at(5), TIME), [Predicate("__publishTime", "<", (5,))]),
        (call("<=>", ID, at(3, "long")), [Predicate("__ledgerId", "=", (3,))]),
        (
            call("IN", ID, at(1, "long"), at(2, "long")),
            [Predicate("__ledgerId", "in", (1, 2))],
        ),
        (
            call("AND", call(">", ID, at(1, "long")), call("<", ID, at(9, "long"))),
            [Predicate("__ledgerId", ">", (1,)), Predicate("__ledgerId", "<", (9,))],
        ),
        # A wrong use of any of these would lose rows.
        (call("OR", call("=", ID, at(1, "long")), call("=", TIME, at(2))), []),
        (call("NOT", call("=", ID, at(1, "long"))), []),
        (call("<>", ID, at(1, "long")), []),
        (call("IS_NOT_NULL", TIME), []),
        (call("=", {"column": ["a", "b"]}, at(1, "long")), []),
        (call("=", ID, at(None, "long")), []),
        (call("IN", ID, at(1, "long"), at(None, "long")), []),
        (call("IN", ID), []),
        (call("=", TIME, at(20_000, "date")), []),
        (call("=", TIME, at(20_000, "timestamp_ntz")), []),
        (call("=", {"column": ["x"]}, at("a", "string")), []),
        (call("=", ID, ID), []),
        (call("=", call(None, ID), at(1, "long")), []),
        (call(None), []),
    ],
)
def test_one_filter(node: dict[str, Any], found: list[Predicate]) -> None:
    assert parse_predicates(json.dumps([node])) == found


def test_kinds_of_rows_prune_files() -> None:
    kind = {"column": ["__kind"]}
    wanted = [
        call("=", kind, at("message", "string")),
        call("NOT", call("=", kind, at("x", "string"))),
    ]
    found = [Predicate("__kind", "=", ("message",)), AllOf((Unequal("__kind", "x"),))]
    assert parse_filters(json.dumps(wanted)) == found
    assert parse_predicates(json.dumps(wanted)) == [], "hot segments are not pruned by them"


def test_conjuncts_are_added_up() -> None:
    both = [call(">", TIME, at(1)), call("IS_NOT_NULL", TIME), call("<", TIME, at(9))]
    assert [one.op for one in parse_predicates(json.dumps(both))] == [">", "<"]
    assert parse_predicates("[]") == []
