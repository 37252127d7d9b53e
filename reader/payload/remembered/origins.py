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
from reader.payload.column_types import (
    BARE,
    BINARY,
    BOOLEAN,
    DOUBLE,
    KEY,
    NUMBER,
    PAYLOAD,
    TEXT,
    VALUE,
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Member,
    Missing,
    Struct,
)

_FIELD, _ORIGIN, _KIND = b"pulsarlake.field", b"pulsarlake.origin", b"pulsarlake.kind"
_ORIGINS = {PAYLOAD: b"payload", BARE: b"bytes", KEY: b"key", VALUE: b"value"}
_LIST, _MAP, _UNION, _RECORD = "list of ", "map of ", "union", "record"
_PLAIN = {str(leaf.type): leaf.tag for leaf in (TEXT, BINARY, BOOLEAN, NUMBER, DOUBLE)}
_PLAIN[str(TIMESTAMP)] = "timestamp"
_FOREIGN = ""
"""The kind of a type that no column of ours has: an external writer has added the column."""


def fields_of(layout: Struct) -> list[pa.Field]:
    """Return the columns of ``layout``, each with its origin."""
    return [_field(member) for member in layout.members]


def layout_of_fields(fields: Iterable[pa.Field]) -> Struct:
    """Return the layout that columns stand for. A column without metadata is a plain field."""
    return _struct(fields)


def same_origins(one: pa.Field, other: pa.Field) -> bool:
    """Return whether two columns of one name stand for the same field, as far as both go."""
    return _agree(_member(one), _member(other))


def _agree(one: Member, other: Member) -> bool:
    return one.name == other.name and _agreeing(one.layout, other.layout)


def _agreeing(one: Layout, other: Layout) -> bool:
    match one, other:
        case Struct(), Struct():
            columns = {member.column: member for member in other.members}
            return one.union == other.union and all(
                _agree(member, columns[member.column])
                for member in one.members
                if member.column in columns
            )
        case ListOf(), ListOf():
            return _agreeing(one.item, other.item)
        case MapOf(), MapOf():
            return _agreeing(one.value, other.value)
    return one == other


def _field(member: Member) -> pa.Field:
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


def _arrow_type(layout: Layout) -> pa.DataType:
    """Return the Arrow type of ``layout``; struct members have their origins."""
    match layout:
        case Leaf():
            return layout.type
        case ListOf():
            return pa.list_(_arrow_type(layout.item))
        case MapOf():
            return pa.map_(pa.string(), _arrow_type(layout.value))
        case Struct():
            return pa.struct(fields_of(layout))
        case Missing():
            return layout.type


def _kind(layout: Layout) -> str:
    """Return what values mean, down to the next struct, whose members have kinds of their own."""
    match layout:
        case Leaf():
            return layout.tag
        case ListOf():
            return _LIST + _kind(layout.item)
        case MapOf():
            return _MAP + _kind(layout.value)
        case Struct():
            if layout.union:
                return _UNION
            return f"{_RECORD} {layout.record}" if layout.record else _RECORD
        case Missing():
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


def _struct(fields: Iterable[pa.Field], kind: str = _RECORD) -> Struct:
    members: dict[str, Member] = {}
    for field in fields:
        member = _member(field)
        if member.name in members:  # of an external writer: no field of a schema is called so
            member = Member(f"\0{member.column}", member.column, member.layout)
        members[member.name] = member
    if kind == _UNION:
        return Struct(tuple(members.values()), union=True)
    return Struct(tuple(members.values()), record=kind.removeprefix(_RECORD).strip())


def _member(field: pa.Field) -> Member:
    metadata = field.metadata or {}
    kind = metadata[_KIND].decode("utf-8", "replace") if _KIND in metadata else None
    layout = _layout(field.type, _natural_kind(field.type) if kind is None else kind)
    return Member(_member_name(field.name, metadata), field.name, layout)


def _member_name(column: str, metadata: Mapping[bytes, bytes]) -> str:
    for special, origin in _ORIGINS.items():
        if metadata.get(_ORIGIN) == origin:
            return special
    try:  # a snapshot token, which anybody can type, may have anything here
        name = json.loads(metadata.get(_FIELD, b""))
    except ValueError:
        return column
    return name if isinstance(name, str) else column


def _layout(real: pa.DataType, kind: str) -> Layout:
    if pa.types.is_struct(real):
        return _struct(real, kind)
    if pa.types.is_list(real):
        return ListOf(_layout(real.value_type, kind.removeprefix(_LIST)))
    if pa.types.is_map(real) and real.key_type == pa.string():
        return MapOf(_layout(real.item_type, kind.removeprefix(_MAP)))
    if kind == _FOREIGN:
        return Missing(f"does not fit its column of type {real}", real)
    return Leaf(real, kind)
