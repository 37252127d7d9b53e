"""Spark's pushed-down filters, as the shim hands them over (``Filters.java``), for pruning.

What is not understood here is left out: that only prunes less, since Spark evaluates every filter
again on the rows.
"""

from collections.abc import Iterable, Sequence

from reader.model.row_kinds import KIND_COLUMN
from reader.plan import AllOf, AnyOf, Filter, NullTest, Predicate, Unequal
from spark_ext.planner.protocol import Expression

_MIRRORED = {"=": "=", "<=>": "<=>", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
# Spark's internal values that mean the same in a Predicate.
_TYPES = {"byte", "short", "integer", "long", "timestamp"}
_FILE_TYPES = {*_TYPES, "date", "timestamp_ntz"}


def predicates_of(filters: Iterable[Expression]) -> list[Predicate]:
    """Return the conjuncts that compare one column with integers or times (µs)."""
    return [one for node in filters for one in _conjuncts(node)]


def filters_of(filters: Iterable[Expression]) -> list[Filter]:
    """Return the filters that say something of integers, dates (days), times (µs) or NULL."""
    return [one for node in filters if (one := _filter(node)) is not None]


# -- conjuncts -------------------------------------------------------------------------------------


def _conjuncts(node: Expression) -> list[Predicate]:
    if node.op == "AND":
        return [one for argument in node.args for one in _conjuncts(argument)]
    found = _predicate(node.op, node.args, _TYPES)
    return [found] if found is not None else []


def _predicate(
    op: str | None, arguments: Sequence[Expression], types: set[str]
) -> Predicate | None:
    """A column's comparison with literals of ``types``; None for anything else."""
    if op == "IN" and len(arguments) > 1:
        column, literals, op = arguments[0], arguments[1:], "in"
    elif op in _MIRRORED and len(arguments) == 2:
        column, literals = arguments[0], arguments[1:]
        if not column.column:
            column, literals, op = arguments[1], arguments[:1], _MIRRORED[op]
    else:
        return None
    if column.column == (KIND_COLUMN,) and types is _FILE_TYPES:
        types = {"string"}
    values = tuple(
        one.value
        for one in literals
        if one.type in types and isinstance(one.value, str if one.type == "string" else int)
    )
    if op == "<>" or len(column.column) != 1 or len(values) < len(literals):
        return None
    return Predicate(column.column[0], "=" if op == "<=>" else op, values)


# -- whole filters ---------------------------------------------------------------------------------


def _filter(node: Expression, negated: bool = False) -> Filter | None:
    """Return what the node, or NOT of it, says of a row; None: nothing that is understood."""
    op, arguments = node.op, node.args
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
            names = arguments[0].column
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


def _unequal(op: str, arguments: Sequence[Expression], negated: bool) -> Filter | None:
    found = _predicate(op, arguments, _FILE_TYPES)
    if found is None or not negated:
        return found
    others = AllOf(tuple(Unequal(found.column, value) for value in found.values))
    # NOT (column <=> value) is true for NULL as well.
    return AnyOf((NullTest(found.column, True), others)) if op == "<=>" else others


# -- filters for Spark -----------------------------------------------------------------------------


def expression_of(where: Filter) -> Expression:
    """Return a filter as Spark's expression, which the shim makes a condition of."""
    match where:
        case AllOf(filters):
            return _call("AND", *map(expression_of, filters))
        case AnyOf(filters):
            return _call("OR", *map(expression_of, filters))
        case NullTest(column, null):
            return _call("IS_NULL" if null else "IS_NOT_NULL", _column(column))
        case Unequal(column, value):
            return _call("<>", _column(column), _literal(value))
    values = map(_literal, where.values)
    return _call("IN" if where.op == "in" else where.op, _column(where.column), *values)


def _call(op: str, *args: Expression) -> Expression:
    return Expression(op, args, (), None, None)


def _column(name: str) -> Expression:
    return Expression(None, (), (name,), None, None)


def _literal(value: int | str) -> Expression:
    return Expression(None, (), (), "string" if isinstance(value, str) else "long", value)
