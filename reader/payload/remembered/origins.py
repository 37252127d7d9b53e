"""The field and the kind that each column stands for, kept in the metadata of the column itself.

A name alone does not say it: ``value`` may be the payload as a whole or a field of a record, and
``name_2`` may be the field ``name`` beside ``Name``. So a Delta column (and a struct member, at any
depth) that is not plainly the field of its own name has this metadata:

| key | value |
| --- | --- |
| ``pulsarlake.field`` | the name of the field, as a JSON text |
| ``pulsarlake.origin`` | ``payload``, ``bytes``, ``key`` or ``value``, of what is no field |
| ``pulsarlake.kind`` | what the values mean, if their type alone does not say it |

The metadata is created in the commit that adds the column, and never changes.
"""

import json
from collections.abc import Iterable, Mapping

import pyarrow as pa

from reader.model.columns import TIMESTAMP
from reader.payload import column_types

_FIELD, _ORIGIN, _KIND = b"pulsarlake.field", b"pulsarlake.origin", b"pulsarlake.kind"
_ORIGINS = {
    column_types.PAYLOAD: b"payload",
    column_types.BARE: b"bytes",
    column_types.KEY: b"key",
    column_types.VALUE: b"value",
}
_LIST, _MAP, _UNION, _RECORD = "list of ", "map of ", "union", "record"
_PLAIN = {
    str(leaf.type): leaf.tag
    for leaf in (
        column_types.TEXT,
        column_types.BINARY,
        column_types.BOOLEAN,
        column_types.NUMBER,
        column_types.DOUBLE,
    )
}
_PLAIN[str(TIMESTAMP)] = "timestamp"
_FOREIGN = ""
"""The kind of a type that no column of ours has: an external writer has added the column."""


def fields_of(layout: column_types.Struct) -> list[pa.Field]:
    """Return the columns of ``layout``, each with its origin."""
    return [_field(member) for member in layout.members]


def layout_of_fields(fields: Iterable[pa.Field]) -> column_types.Struct:
    """Return the layout that columns stand for. A column without metadata is a plain field."""
    return _struct(fields)


def same_origins(one: pa.Field, other: pa.Field) -> bool:
    """Return whether two columns of one name stand for the same field, as far as both go."""
    return _agree(_member(one), _member(other))


def _agree(one: column_types.Member, other: column_types.Member) -> bool:
    return one.name == other.name and _agreeing(one.layout, other.layout)


def _agreeing(one: column_types.Layout, other: column_types.Layout) -> bool:
    match one, other:
        case column_types.Struct(), column_types.Struct():
            columns = {member.column: member for member in other.members}
            return one.union == other.union and all(
                _agree(member, columns[member.column])
                for member in one.members
                if member.column in columns
            )
        case column_types.ListOf(), column_types.ListOf():
            return _agreeing(one.item, other.item)
        case column_types.MapOf(), column_types.MapOf():
            return _agreeing(one.value, other.value)
    return one == other


def _field(member: column_types.Member) -> pa.Field:
    real = _arrow_type(member.layout)
    metadata = {}
    if (origin := _ORIGINS.get(member.name)) is not None:
        metadata[_ORIGIN] = origin
    elif member.name != member.column:
        metadata[_FIELD] = json.dumps(member.name).encode()
    kind = _kind(member.layout)
    if kind != _natural_kind(real):
        metadata[_KIND] = kind.encode()
    return pa.field(member.column, real, metadata=metadata or None)


def _arrow_type(layout: column_types.Layout) -> pa.DataType:
    """Return the Arrow type of ``layout``; struct members have their origins."""
    match layout:
        case column_types.Leaf():
            return layout.type
        case column_types.ListOf():
            return pa.list_(_arrow_type(layout.item))
        case column_types.MapOf():
            return pa.map_(pa.string(), _arrow_type(layout.value))
        case column_types.Struct():
            return pa.struct(fields_of(layout))
        case column_types.Missing():
            return layout.type


def _kind(layout: column_types.Layout) -> str:
    """Return what values mean, down to the next struct, whose members have kinds of their own."""
    match layout:
        case column_types.Leaf():
            return layout.tag
        case column_types.ListOf():
            return _LIST + _kind(layout.item)
        case column_types.MapOf():
            return _MAP + _kind(layout.value)
        case column_types.Struct():
            if layout.union:
                return _UNION
            return f"{_RECORD} {layout.record}" if layout.record else _RECORD
        case column_types.Missing():
            return _FOREIGN


def _natural_kind(real: pa.DataType) -> str:
    if pa.types.is_struct(real):
        return _RECORD
    if pa.types.is_list(real):
        return _LIST + _natural_kind(real.value_type)
    if pa.types.is_map(real) and real.key_type == pa.string():
        return _MAP + _natural_kind(real.item_type)
    if pa.types.is_decimal128(real):
        return "decimal"
    if pa.types.is_date32(real):
        return "date"
    return _PLAIN.get(str(real), _FOREIGN)


def _struct(fields: Iterable[pa.Field], kind: str = _RECORD) -> column_types.Struct:
    members: dict[str, column_types.Member] = {}
    for field in fields:
        member = _member(field)
        if member.name in members:  # of an external writer: no field of a schema is called so
            member = column_types.Member(f"\0{member.column}", member.column, member.layout)
        members[member.name] = member
    if kind == _UNION:
        return column_types.Struct(tuple(members.values()), union=True)
    return column_types.Struct(tuple(members.values()), record=kind.removeprefix(_RECORD).strip())


def _member(field: pa.Field) -> column_types.Member:
    metadata = field.metadata or {}
    kind = metadata[_KIND].decode("utf-8", "replace") if _KIND in metadata else None
    layout = _layout(field.type, _natural_kind(field.type) if kind is None else kind)
    return column_types.Member(_member_name(field.name, metadata), field.name, layout)


def _member_name(column: str, metadata: Mapping[bytes, bytes]) -> str:
    for special, origin in _ORIGINS.items():
        if metadata.get(_ORIGIN) == origin:
            return special
    try:  # a snapshot token, which anybody can type, may have anything here
        name = json.loads(metadata.get(_FIELD, b""))
    except ValueError:
        return column
    return name if isinstance(name, str) else column


def _layout(real: pa.DataType, kind: str) -> column_types.Layout:
    if pa.types.is_struct(real):
        return _struct(real, kind)
    if pa.types.is_list(real):
        return column_types.ListOf(_layout(real.value_type, kind.removeprefix(_LIST)))
    if pa.types.is_map(real) and real.key_type == pa.string():
        return column_types.MapOf(_layout(real.item_type, kind.removeprefix(_MAP)))
    if kind == _FOREIGN:
        return column_types.Missing(f"does not fit its column of type {real}", real)
    return column_types.Leaf(real, kind)
