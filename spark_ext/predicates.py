"""Spark's pushed-down filters, as the shim writes them (``Filters.java``), for pruning.

What is not understood here is left out: that only prunes less, since Spark evaluates every filter
again on the rows.
"""

from __future__ import annotations

import json
from typing import Any

from reader.plan import Predicate

__all__ = ["parse_predicates"]

_COMPARISONS = {"=": "=", "<=>": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Spark's internal values that mean the same in a Predicate.
_TYPES = {"byte", "short", "integer", "long", "timestamp"}


def parse_predicates(text: str) -> list[Predicate]:
    """The conjuncts of a filter that compare one column with integers or times (µs)."""
    found: list[Predicate] = []
    for node in json.loads(text):
        found += _conjuncts(node)
    return found


def _conjuncts(node: dict[str, Any]) -> list[Predicate]:
    op, arguments = node.get("op"), node.get("args", [])
    if op == "AND":
        return [one for argument in arguments for one in _conjuncts(argument)]
    if op == "IN" and len(arguments) > 1:
        return _predicate("in", arguments[0], arguments[1:])
    if op in _COMPARISONS and len(arguments) == 2:
        left, right = arguments
        if "column" in left:
            return _predicate("=" if op == "<=>" else op, left, [right])
        return _predicate(_COMPARISONS[op], right, [left])
    return []


def _predicate(op: str, column: dict[str, Any], literals: list[dict[str, Any]]) -> list[Predicate]:
    names = column.get("column", [])
    usable = all(one.get("type") in _TYPES for one in literals)
    values = tuple(one.get("value") for one in literals)
    if len(names) != 1 or not usable or any(value is None for value in values):
        return []
    return [Predicate(names[0], op, values)]
