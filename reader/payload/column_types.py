"""Which column each type becomes: the mapping of docs/types.md.

A *layout* is an Arrow type that also knows what its values mean (``tag``) and which field of the
payload each member comes from. How the layouts of several versions become the columns of a topic
is in ``remembered``. A field that has no column is a `Missing` there: its value is a problem
of its row.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from reader.model.column_names import ColumnNames
from reader.model.columns import TIMESTAMP
from reader.payload import avro_schema

# Delta refuses these in column names unless column mapping is on; Arrow's C interface ends a name
# at NUL.
_FORBIDDEN = str.maketrans(dict.fromkeys(" ,;{}()\n\t=\0", "_"))

_LONGEST_NAME, _LONGEST_PATH = 200, 800

# Names of members that are not fields: a payload as a whole, plain bytes without a schema, and the
# two halves of a KeyValue. No field of a schema has such a name.
PAYLOAD, BARE, KEY, VALUE = "", "\0bytes", "\0key", "\0value"
_NO_FIELDS = {PAYLOAD: "value", BARE: "value", KEY: "key", VALUE: "value"}


LIFE = 1 << 40
"""What the number of a schema definition has above its version, for each life of the registry
that has begun since (``remembered.lives``)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """``tag`` distinguishes what one Arrow type may mean: bigint is a number or microseconds."""

    type: pa.DataType
    tag: str


@dataclass(frozen=True, slots=True)
class Member:
    """``name`` in the payload, ``column`` in the table."""

    name: str
    column: str
    layout: Layout


@dataclass(frozen=True, slots=True)
class Struct:
    """A record, or (``union``) a union with one member for each branch that is not null.

    The ``name`` of a union's member is that of the branch (`branch_name`). ``record``: the full
    name of the record that the column had first.
    """

    members: tuple[Member, ...]
    union: bool = False
    record: str = field(default="", compare=False)

    def member(self, name: str) -> Member | None:
        """For one; in a loop `by_name`, because there may be thousands."""
        return next((member for member in self.members if member.name == name), None)

    def by_name(self) -> dict[str, Member]:
        return {member.name: member for member in self.members}


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Layout


@dataclass(frozen=True, slots=True)
class MapOf:
    value: Layout


@dataclass(frozen=True, slots=True)
class Missing:
    """No column takes this value, because of ``reason``; ``type`` is the column's, if any."""

    reason: str
    type: pa.DataType = pa.null()  # noqa: RUF009 - a value


Layout = Leaf | Struct | ListOf | MapOf | Missing

TEXT = Leaf(pa.string(), "text")
BINARY = Leaf(pa.binary(), "binary")
JSON_TEXT = Leaf(pa.string(), "json")
BOOLEAN = Leaf(pa.bool_(), "boolean")
NUMBER = Leaf(pa.int64(), "number")
DOUBLE = Leaf(pa.float64(), "number")
UNSIGNED = Leaf(pa.string(), "unsigned 64")

TEXT_DIGITS = 39
"""The least precision of a decimal whose column is text."""
_PRIMITIVES = {
    "null": TEXT,
    "boolean": BOOLEAN,
    "int": NUMBER,
    "long": NUMBER,
    "float": DOUBLE,
    "double": DOUBLE,
    "bytes": BINARY,
    "string": TEXT,
}
_LOGICAL = {
    "date": Leaf(pa.date32(), "date"),
    "time-millis": Leaf(pa.int64(), "time of day in us"),
    "time-micros": Leaf(pa.int64(), "time of day in us"),
    "timestamp-millis": Leaf(TIMESTAMP, "timestamp"),
    "timestamp-micros": Leaf(TIMESTAMP, "timestamp"),
    "timestamp-nanos": Leaf(pa.int64(), "timestamp in ns"),
    "local-timestamp-millis": Leaf(pa.int64(), "local timestamp in us"),
    "local-timestamp-micros": Leaf(pa.int64(), "local timestamp in us"),
    "local-timestamp-nanos": Leaf(pa.int64(), "local timestamp in ns"),
    "uuid": TEXT,
}


def column_name(name: str) -> str:
    """Return the name of the column of member ``name``, if no other column has it."""
    return _NO_FIELDS.get(name) or name.translate(_FORBIDDEN)


def label(name: str) -> str:
    """How a problem names the member ``name``."""
    return "the value" if name in (PAYLOAD, BARE) else _NO_FIELDS.get(name, name)


def inner_path(path: str, name: str) -> str:
    """The path of member ``name`` of what is at ``path``, as problems name it.

    Cut where it is long: each of thousands of nodes has its own.
    """
    if len(name) > _LONGEST_NAME:
        name = name[:_LONGEST_NAME] + "..."
    if len(path) > _LONGEST_PATH:
        path = path[:_LONGEST_PATH] + "..."
    return f"{path}.{name}" if path else name


def mapped_union(union: avro_schema.Union) -> tuple[avro_schema.Node, ...]:
    """The branches that need a member each; one or none if a plain column can hold the union.

    Two branches of one width (int and long, float and double) share the plain column.
    """
    branches = avro_schema.non_null(union)
    kinds = {
        b.kind if isinstance(b, avro_schema.Primitive) and b.logical is None else ""
        for b in branches
    }
    if len(branches) == 2 and kinds in ({"int", "long"}, {"float", "double"}):
        return (avro_schema.Primitive("long" if "long" in kinds else "double"),)
    return branches


def layout_of(node: avro_schema.Node) -> Layout:
    """The column that holds every value of ``node``."""
    match node:
        case avro_schema.Primitive(logical="decimal") | avro_schema.Fixed(logical="decimal"):
            if node.precision < TEXT_DIGITS:
                return Leaf(pa.decimal128(node.precision, node.scale), "decimal")
            return Leaf(pa.string(), "decimal")
        case avro_schema.Primitive():
            return _LOGICAL[node.logical] if node.logical else _PRIMITIVES[node.kind]
        case avro_schema.Fixed():
            return TEXT if node.logical == "uuid" else BINARY
        case avro_schema.Enum():
            return TEXT
        case avro_schema.Array():
            return ListOf(layout_of(node.items))
        case avro_schema.Map():
            return MapOf(layout_of(node.values))
        case avro_schema.Ref():
            return JSON_TEXT
        case avro_schema.Record():
            # Neither Parquet nor Delta has a struct without members.
            return _struct(node) if node.fields else JSON_TEXT
        case avro_schema.Union():
            branches = mapped_union(node)
            if not branches:
                return TEXT
            if len(branches) == 1:
                return layout_of(branches[0])
            return _union(branches)


def branch_name(node: avro_schema.Node) -> str:
    """Return how Avro names a branch of a union: by its full name, or else by its kind."""
    match node:
        case avro_schema.Record() | avro_schema.Enum() | avro_schema.Fixed() | avro_schema.Ref():
            return node.name
        case avro_schema.Array():
            return "array"
        case avro_schema.Map():
            return "map"
        case avro_schema.Primitive():
            return node.kind
        case avro_schema.Union():
            return "union"


def _union(branches: Iterable[avro_schema.Node]) -> Struct:
    members: dict[str, Member] = {}
    for i, branch in enumerate(branches):
        name = unused_name(branch_name(branch), members)
        members[name] = Member(name, f"member{i}", layout_of(branch))
    return Struct(tuple(members.values()), union=True)


def unused_name(name: str, used: Container[str]) -> str:
    """Return the name of a branch, or "name 2", "name 3", … if another member has it."""
    number, found = 1, name
    while found in used:
        number += 1
        found = f"{name} {number}"
    return found


def _struct(record: avro_schema.Record) -> Struct:
    columns = ColumnNames()
    members = [
        Member(name, columns.add(column_name(name)), layout_of(node))
        for name, node in record.fields
    ]
    return Struct(tuple(members), record=record.name)


def arrow_type(layout: Layout) -> pa.DataType:
    """The Arrow type of ``layout``; every member, item and map value is nullable."""
    match layout:
        case Leaf():
            return layout.type
        case ListOf():
            return pa.list_(arrow_type(layout.item))
        case MapOf():
            return pa.map_(pa.string(), arrow_type(layout.value))
        case Struct():
            return pa.struct([(m.column, arrow_type(m.layout)) for m in layout.members])
        case Missing():
            return layout.type


def accepts(layout: Layout, natural: Layout) -> bool:
    """Return whether the column holds values of ``natural``: all, or those that it holds exactly.

    Members and items are asked one by one.
    """
    match layout, natural:
        case Leaf(), Leaf():
            return natural == layout or _is_exact_for_some(natural, layout)
        case Struct(), Struct():
            return layout.union == natural.union
        case Leaf(), Struct():
            # Text of a record takes any record.
            return layout == JSON_TEXT and not natural.union
    return type(layout) is type(natural)


def _is_exact_for_some(natural: Leaf, layout: Leaf) -> bool:
    """Return whether a number of one kind may be the very number in a column of the other."""
    if natural in (NUMBER, UNSIGNED):
        return layout in (NUMBER, DOUBLE) or pa.types.is_decimal128(layout.type)
    if natural == DOUBLE:
        return layout == NUMBER
    return natural.tag == "decimal" and (layout.tag == "decimal" or layout == NUMBER)


def mismatch(layout: Layout, natural: Layout, number: int) -> str:
    """Return why a field's value of ``natural`` is not in its column: "field x …".

    ``number``: of the message's schema definition.
    """
    version = number % LIFE
    if isinstance(layout, Missing):
        return f"of schema version {version} {layout.reason}"
    real = arrow_type(layout)
    if arrow_type(natural) == real:
        return f"is another kind of {real} in schema version {version} than in its column"
    return f"is {arrow_type(natural)} in schema version {version}, its column is {real}"
