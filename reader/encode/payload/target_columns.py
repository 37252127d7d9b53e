"""The columns that rows for a topic may have: those that its readers see, in their order."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from reader.model import SchemaInfo
from reader.model.column_names import ColumnNames
from reader.payload import payload_fields
from reader.payload.column_types import Layout, ListOf, MapOf, Member, Struct, arrow_type
from reader.payload.registry import registry_of
from reader.payload.remembered.origins import layout_of_fields
from reader.payload.remembered.union_members import member_pairs


@dataclass(frozen=True, slots=True)
class TargetColumns:
    """The columns of a write.

    ``layout``: the newest schema's fields, in the schema's order, with the names of their columns.
    ``columns``: all columns in the order in which the topic is read. A column of a field has the
    type that the newest schema gives it. ``removed``: the columns that no field of the newest
    schema fills. Rows have NULL in them.
    """

    layout: Struct
    columns: pa.Schema
    removed: frozenset[str]


def target_columns(schema: SchemaInfo | None, read: pa.Schema | None = None) -> TargetColumns:
    """Return the columns of a write by ``schema``, the topic's newest.

    read: payload columns with which the topic is read, None if it has no other version and no table
    """
    own = [] if schema is None else [schema]
    read = payload_fields(own) if read is None else read
    layout = _renamed(registry_of(own).layout, layout_of_fields(read))
    columns = pa.schema(_ordered(layout, list(read), keep=True))
    filled = {member.column for member in layout.members}
    return TargetColumns(layout, columns, frozenset(set(columns.names) - filled))


def _renamed(written: Struct, read: Struct) -> Struct:
    """Return ``written`` with the columns that its fields have in ``read``, at any depth."""

    def renamed(layout: Layout, other: Layout) -> Layout:
        match layout, other:
            case Struct(union=a), Struct(union=b) if a == b:
                return _renamed(layout, other)
            case ListOf(), ListOf():
                return ListOf(renamed(layout.item, other.item))
            case MapOf(), MapOf():
                return MapOf(renamed(layout.value, other.value))
        return layout

    names = ColumnNames(member.column for member in read.members)
    members = []
    for member, other in member_pairs(read.by_name(), written):
        if other is None:
            member = Member(member.name, names.add(member.column), member.layout)
        else:
            layout = renamed(member.layout, other.layout)
            member = Member(member.name, other.column, layout)
        members.append(member)
    return Struct(tuple(members), written.union)


def _ordered(layout: Struct, read: Sequence[pa.Field], *, keep: bool) -> list[pa.Field]:
    """Return the fields of ``layout`` in the order of ``read``, at any depth.

    keep: whether a field of ``read`` that has no member stays. Below the top it does not, because
    Spark requires every member of a struct that is written by name.
    """

    def ordered(layout: Layout, read: pa.DataType) -> pa.DataType:
        if isinstance(layout, Struct) and pa.types.is_struct(read):
            return pa.struct(_ordered(layout, list(read), keep=False))
        if isinstance(layout, ListOf) and pa.types.is_list(read):
            return pa.list_(ordered(layout.item, read.value_type))
        if isinstance(layout, MapOf) and pa.types.is_map(read):
            return pa.map_(pa.string(), ordered(layout.value, read.item_type))
        return arrow_type(layout)

    remaining = {member.column: member.layout for member in layout.members}
    fields = []
    for field in read:
        inner = remaining.pop(field.name, None)
        if inner is not None:
            fields.append(pa.field(field.name, ordered(inner, field.type)))
        elif keep:
            fields.append(field)
    return fields + [pa.field(name, arrow_type(inner)) for name, inner in remaining.items()]
