"""Spark's pushed-down filters, as the shim writes them (``Filters.java``), for pruning.

What is not understood here is left out: that only prunes less, since Spark evaluates every filter
again on the rows.
"""

from __future__ import annotations

import json
from typing import Any

from reader.model.row_kinds import KIND_COLUMN
from reader.plan import AllOf, AnyOf, Filter, NullTest, Predicate, Unequal

__all__ = ["parse_filters", "parse_predicates"]

_MIRRORED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# Spark's internal values that mean the same in a Predicate.
_TYPES = {"byte", "short", "integer", "long", "timestamp"}
_FILE_TYPES = {*_TYPES, "date", "timestamp_ntz"}


def parse_predicates(text: str) -> list[Predicate]:
    """The conjuncts of a filter that compare one column with integers or times (µs)."""
    found: list[Predicate] = []
    for node in json.loads(text):
        found += _conjuncts(node)
    return found


def parse_filters(text: str) -> list[Filter]:
    """The filters that say something of integers, dates (days), times (µs) or NULL."""
    return [one for node in json.loads(text) if (one := _filter(node)) is not None]


# -- conjuncts -------------------------------------------------------------------------------------


def _conjuncts(node: dict[str, Any]) -> list[Predicate]:
    op, arguments = node.get("op"), node.get("args", [])
    if op == "AND":
        return [one for argument in arguments for one in _conjuncts(argument)]
    found = _predicate(op, arguments, _TYPES)
    return [found] if found is not None else []


def _predicate(
    op: str | None, arguments: list[dict[str, Any]], types: set[str]
) -> Predicate | None:
    """A column's comparison with literals of ``types``; None for anything else."""
    if op == "IN" and len(arguments) > 1:
        column, literals, op = arguments[0], arguments[1:], "in"
    elif op in _MIRRORED and len(arguments) == 2:
        column, literals = arguments[0], arguments[1:]
        if "column" not in column:
            column, literals, op = arguments[1], arguments[:1], _MIRRORED[op]
    else:
        return None
    names = column.get("column", [])
    if names == [KIND_COLUMN] and types is _FILE_TYPES:
        types = {"string"}
    usable = all(one.get("type") in types for one in literals)
    values = tuple(one.get("value") for one in literals)
    if op == "<>" or len(names) != 1 or not usable or any(value is None for value in values):
        return None
    return Predicate(names[0], "=" if op == "<=>" else op, values)


# -- whole filters ---------------------------------------------------------------------------------


def _filter(node: dict[str, Any], negated: bool = False) -> Filter | None:
    """What the node, or NOT of it, says of a row; None: nothing that is understood."""
    op, arguments = node.get("op"), node.get("args", [])
    match op:
        case "NOT" if len(arguments) == 1:
            return _filter(arguments[0], not negated)
        case "AND" | "OR":
            parts = [_filter(one, negated) for one in arguments]
            known = tuple(one for one in parts if one is not None)
            if (op == "AND") is not negated:
                return AllOf(known)
            return AnyOf(known) if len(known) == len(parts) else None
        case "IS_NULL" | "IS_NOT_NULL" if len(arguments) == 1:
            names = arguments[0].get("column", [])
            return NullTest(names[0], (op == "IS_NULL") is not negated) if len(names) == 1 else None
        case "ALWAYS_TRUE" | "ALWAYS_FALSE":
            return AllOf(()) if (op == "ALWAYS_TRUE") is not negated else AnyOf(())
        case "<>":
            return _unequal("=", arguments, not negated)
        case "=" | "<=>" | "IN":
            return _unequal(op, arguments, negated)
    if negated and op in _NEGATED:
        op = _NEGATED[op]
    return _predicate(op, arguments, _FILE_TYPES)


def _unequal(op: str, arguments: list[dict[str, Any]], negated: bool) -> Filter | None:
    found = _predicate(op, arguments, _FILE_TYPES)
    if found is None or not negated:
        return found
    others = AllOf(tuple(Unequal(found.column, value) for value in found.values))
    # NOT (column <=> value) is true for NULL as well.
    return AnyOf((NullTest(found.column, True), others)) if op == "<=>" else others
