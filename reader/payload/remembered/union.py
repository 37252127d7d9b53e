"""Columns that grow by the fields of one schema version after the other.

The columns of the table come first. A field that has a column keeps it, whatever later versions
call their fields; a new field gets a column at the end, in its struct, at any depth. So does a
branch of a union that no member takes. The cost is in proportion to the fields that are added.
"""

from collections.abc import Iterable
from dataclasses import replace

from reader.model.column_names import ColumnNames
from reader.payload.column_types import (
    Layout,
    ListOf,
    MapOf,
    Member,
    Missing,
    Struct,
    column_name,
    unused_name,
)
from reader.payload.remembered.union_members import member_pairs, union_targets

MAX_COLUMNS = 20_000
"""The maximum number of columns of a topic, with all members, items and map values.

A field beyond it gets no column: its values are in ``__rescued``. A single schema that is supported
has no more.
"""

_NO_NAME = "\0"
"""The column of a member that has none; no column is called so."""


class ColumnUnion:
    """The columns of ``known``, and of each layout that is added.

    ``reserved``: names that no column may have. ``room``: how many more columns there may be.
    """

    def __init__(
        self, known: Struct, reserved: Iterable[str] = (), *, most: int = MAX_COLUMNS
    ) -> None:
        self._room = most - count_columns(known) + 1
        self._root = _GrowingStruct(known, reserved)

    def add(self, layout: Struct) -> None:
        """Add a column for each member of ``layout`` that has none yet."""
        self._room -= self._root.grow(layout, self._room)

    def layout(self) -> Struct:
        return self._root.frozen()


class _GrowingStruct:
    def __init__(self, known: Struct, reserved: Iterable[str] = ()) -> None:
        self._union, self._record = known.union, known.record
        self._columns = ColumnNames([*reserved, *(member.column for member in known.members)])
        self._members = known.by_name()
        self._growing: dict[str, _GrowingStruct] = {}

    def grow(self, layout: Struct, room: int) -> int:
        """Add members as far as there is ``room``; return how many columns they are."""
        used = 0
        for new, old in member_pairs(self._members, layout):
            if old is None:
                size = count_columns(new.layout)
                if size <= room - used:
                    self._add(new)
                    used += size
                continue
            inner, later = _struct_inside(old.layout, new.layout)
            if inner is None or later is None or inner == later:
                continue
            growing = self._growing.get(old.name)
            if growing is None:
                growing = self._growing[old.name] = _GrowingStruct(inner)
            used += growing.grow(later, room - used)
        return used

    def _add(self, new: Member) -> None:
        if self._union:
            name = unused_name(new.name, self._members)
            column = self._columns.add(f"member{len(self._members)}")
        else:
            name, column = new.name, self._columns.add(column_name(new.name))
        self._members[name] = Member(name, column, new.layout)

    def frozen(self) -> Struct:
        members = [
            Member(m.name, m.column, _replaced(m.layout, growing.frozen()))
            if (growing := self._growing.get(m.name)) is not None
            else m
            for m in self._members.values()
        ]
        return Struct(tuple(members), self._union, self._record)


def _struct_inside(one: Layout, other: Layout) -> tuple[Struct | None, Struct | None]:
    """Return the structs that two columns are, or that are the items of both.

    A record alone is that of a union's branch: it grows in the union's member, and the branch in
    the column that a record alone has.
    """
    match one, other:
        case Struct(union=True), Struct(union=False):
            return one, Struct((Member(other.record, "", other),), union=True)
        case Struct(union=False), Struct(union=True):
            pairs = zip(union_targets(one, other), other.members, strict=True)
            inside = (branch.layout for target, branch in pairs if target is one)
            return one, next((struct for struct in inside if isinstance(struct, Struct)), None)
        case Struct(), Struct():
            return one, other
        case ListOf(), ListOf():
            return _struct_inside(one.item, other.item)
        case MapOf(), MapOf():
            return _struct_inside(one.value, other.value)
    return None, None


def _replaced(layout: Layout, struct: Struct) -> Layout:
    match layout:
        case ListOf():
            return ListOf(_replaced(layout.item, struct))
        case MapOf():
            return MapOf(_replaced(layout.value, struct))
    return struct


def count_columns(layout: Layout) -> int:
    """Return the number of columns of a layout, with all members, items and map values."""
    match layout:
        case Struct():
            return 1 + sum(count_columns(member.layout) for member in layout.members)
        case ListOf():
            return 1 + count_columns(layout.item)
        case MapOf():
            return 2 + count_columns(layout.value)
    return 1


def with_missing(columns: Layout, natural: Layout) -> Layout:
    """Return ``columns``, with a `Missing` for each member of ``natural`` that has no column."""
    match columns, natural:
        case Struct(), Struct() if columns.union == natural.union:
            members = columns.by_name()
            for own, old in member_pairs(members, natural):
                if old is None:
                    if not columns.union:  # a branch without a member says so itself
                        members[own.name] = Member(own.name, _NO_NAME, Missing("has no column"))
                elif not isinstance(old.layout, Missing):
                    layout = with_missing(old.layout, own.layout)
                    if layout is not old.layout:
                        members[old.name] = Member(old.name, old.column, layout)
            unchanged = len(members) == len(columns.members) and all(
                members[member.name] is member for member in columns.members
            )
            return columns if unchanged else replace(columns, members=tuple(members.values()))
        case ListOf(), ListOf():
            item = with_missing(columns.item, natural.item)
            return columns if item is columns.item else ListOf(item)
        case MapOf(), MapOf():
            value = with_missing(columns.value, natural.value)
            return columns if value is columns.value else MapOf(value)
    return columns
