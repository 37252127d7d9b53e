"""Values of one schema version in columns that an earlier version has given their type.

A value that the column's type holds exactly is in the column, also if another version wrote it.
`column_types.accepts` says between which kinds that is possible; each format checks the value.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa

from reader.payload import avro_schema, column_types
from reader.payload.remembered.union_members import union_member, union_targets


def read_as(node: avro_schema.Node, layout: column_types.Layout) -> avro_schema.Node:
    """Return the type by which the text of a number is read for the column ``layout``.

    It is the column's own type, because the text says the number exactly. A decimal of Kafka
    Connect may be bytes instead, whose scale only its own type has.
    """
    if not isinstance(node, avro_schema.Fixed | avro_schema.Primitive):
        return node
    natural = column_types.layout_of(node)
    if natural == layout:
        return node
    if isinstance(node, avro_schema.Primitive) and node.connect:
        return node
    if not isinstance(layout, column_types.Leaf) or not column_types.accepts(layout, natural):
        return node
    if isinstance(node, avro_schema.Primitive) and node.json_form == "character":
        return avro_schema.Primitive("string")  # "5" is the character's number 53, and no 5
    if layout == column_types.NUMBER:
        return avro_schema.Primitive("long")
    if layout == column_types.DOUBLE:
        return avro_schema.Primitive("double")
    if pa.types.is_decimal128(layout.type):
        return avro_schema.Primitive("bytes", "decimal", layout.type.precision, layout.type.scale)
    return replace(node, precision=max(node.precision, column_types.TEXT_DIGITS))


def takes(layout: column_types.Layout, node: avro_schema.Node) -> bool:
    """Return whether the column holds values of ``node``. See ``accepts``.

    The layout of a list, a map or a record is built without its members or items, which do not
    count: for each node of a tree all that is below it would be built again.
    """
    natural: column_types.Layout
    match node:
        case avro_schema.Array():
            natural = column_types.ListOf(column_types.JSON_TEXT)
        case avro_schema.Map():
            natural = column_types.MapOf(column_types.JSON_TEXT)
        case avro_schema.Record(fields=[_, *_]):
            natural = column_types.Struct(())
        case _:
            natural = column_types.layout_of(node)
    return column_types.accepts(layout, natural)


def expanded(
    node: avro_schema.Node, layout: column_types.Layout, records: Mapping[str, avro_schema.Record]
) -> avro_schema.Node:
    """Return a type with the records in place of their names, as far as the column has members.

    The column may have been created by a schema that was cut at a lower level (`parse_schema`).
    """
    if isinstance(node, avro_schema.Union):
        return _expanded_union(node, layout, records)
    if isinstance(layout, column_types.Struct) and layout.union:
        member = union_member(layout, node)
        return node if member is None else expanded(node, member.layout, records)
    if isinstance(node, avro_schema.Ref) and isinstance(layout, column_types.Struct):
        node = records[node.name]
    match node, layout:
        case avro_schema.Record(), column_types.Struct():
            members = layout.by_name()
            fields = tuple(
                (name, expanded(field, members[name].layout, records) if name in members else field)
                for name, field in node.fields
            )
            return replace(node, fields=fields)
        case avro_schema.Array(), column_types.ListOf():
            return avro_schema.Array(expanded(node.items, layout.item, records))
        case avro_schema.Map(), column_types.MapOf():
            return avro_schema.Map(expanded(node.values, layout.value, records))
    return node


def _expanded_union(
    union: avro_schema.Union, layout: column_types.Layout, records: Mapping[str, avro_schema.Record]
) -> avro_schema.Union:
    """Return a union with each branch expanded for the member that takes its values."""
    targets: list[column_types.Member | column_types.Layout | None] = [layout]
    if len(column_types.mapped_union(union)) > 1:
        natural = column_types.layout_of(union)
        assert isinstance(natural, column_types.Struct)
        targets = list(union_targets(layout, natural))
    branches = avro_schema.non_null(union)
    if len(targets) != len(branches):  # two numbers that share a column
        return union
    expansions = (
        branch
        if to is None
        else expanded(branch, to.layout if isinstance(to, column_types.Member) else to, records)
        for branch, to in zip(branches, targets, strict=True)
    )
    return avro_schema.Union(
        tuple(
            branch
            if isinstance(branch, avro_schema.Primitive) and branch.kind == "null"
            else next(expansions)
            for branch in union.branches
        )
    )


def exact_number(
    value: int | float, layout: column_types.Leaf
) -> int | float | str | Decimal | None:
    """Return ``value`` as the very number in the column ``layout``, or None if it has no such."""
    if isinstance(value, float) and not value.is_integer():  # NaN, too
        return None
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return None
    number = int(value)
    if layout == column_types.DOUBLE:
        return float(number) if number == int(float(number)) else None
    if layout == column_types.NUMBER:
        return number if -(1 << 63) <= number < 1 << 63 else None
    if layout == column_types.UNSIGNED:
        return str(number) if 0 <= number < 1 << 64 else None
    precision, scale = layout.type.precision, layout.type.scale
    return Decimal(number) if abs(number) * 10**scale < 10**precision else None


def exact_array(numbers: pa.Array, layout: column_types.Leaf) -> pa.Array:
    """Return numbers as the very numbers in the column ``layout``, and NULL for all others."""
    values = [
        None if value is None else exact_number(value, layout) for value in numbers.to_pylist()
    ]
    return pa.array(values, layout.type)
