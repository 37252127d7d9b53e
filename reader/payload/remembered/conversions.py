"""Values of one schema version in columns that an earlier version has given their type.

A value that the column's type holds exactly is in the column, whatever version wrote it.
`column_types.accepts` says between which kinds that is possible; each format checks the value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from reader.payload.avro_schema import (
    Array,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Ref,
    Union,
    non_null,
)
from reader.payload.column_types import (
    DOUBLE,
    NUMBER,
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Struct,
    accepts,
    layout_of,
)

__all__ = ["exact_array", "exact_number", "expanded", "read_as"]

_WIDE = 39
"""The least precision of a decimal whose column is text."""


def read_as(node: Node, layout: Layout) -> Node:
    """Return the type by which the text of a number is read for the column ``layout``.

    It is the column's own type, because the text says the number exactly. Kafka Connect's decimals
    are bytes, so they keep their scale.
    """
    natural = layout_of(node)
    if natural == layout or not isinstance(node, Fixed | Primitive):
        return node
    if not isinstance(layout, Leaf) or not accepts(layout, natural):
        return node
    if layout == NUMBER:
        return Primitive("long")
    if layout == DOUBLE:
        return Primitive("double")
    if pa.types.is_decimal128(layout.type):
        precision, scale = layout.type.precision, layout.type.scale
        if isinstance(node, Primitive) and node.connect:
            return replace(node, precision=precision) if node.scale == scale else node
        return Primitive("bytes", "decimal", precision, scale)
    return replace(node, precision=max(node.precision, _WIDE))


def expanded(node: Node, layout: Layout, records: Mapping[str, Record]) -> Node:
    """Return a type with the records in place of their names, as far as the column has members.

    The column may have been created by a schema that was cut at a lower level (`parse_schema`).
    """
    if isinstance(node, Ref) and isinstance(layout, Struct):
        node = records[node.name]
    match node, layout:
        case Record(), Struct():
            members = layout.by_name()
            fields = tuple(
                (name, expanded(field, members[name].layout, records) if name in members else field)
                for name, field in node.fields
            )
            return replace(node, fields=fields)
        case Array(), ListOf():
            return Array(expanded(node.items, layout.item, records))
        case Map(), MapOf():
            return Map(expanded(node.values, layout.value, records))
        case Union(), _ if len(non_null(node)) == 1:
            return Union(tuple(expanded(branch, layout, records) for branch in node.branches))
    return node


def exact_number(value: int | float, layout: Leaf) -> int | float | Decimal | None:
    """Return ``value`` as the very number in the column ``layout``, or None if it has no such."""
    if isinstance(value, float) and not value.is_integer():  # NaN, too
        return None
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return None
    number = int(value)
    if layout == DOUBLE:
        return float(number) if number == int(float(number)) else None
    if layout == NUMBER:
        return number if -(1 << 63) <= number < 1 << 63 else None
    precision, scale = layout.type.precision, layout.type.scale
    return Decimal(number) if abs(number) * 10**scale < 10**precision else None


def exact_array(numbers: pa.Array, layout: Leaf) -> pa.Array:
    """Return numbers as the very numbers in the column ``layout``, and NULL for all others."""
    values = [
        None if value is None else exact_number(value, layout) for value in numbers.to_pylist()
    ]
    return pa.array(values, layout.type)
