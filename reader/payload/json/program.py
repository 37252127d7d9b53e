"""Record schemas to tables for the one loop of `kernel`.

A node is (kind, slot, group, a, b, c, bytes, least). ``bytes`` are of an item of ARRAY or MAP in
columns. ``least`` is the least value of INTEGER:

| kind | takes | a | b | c |
| --- | --- | --- | --- | --- |
| ANY | any JSON: the value of an unknown field, or (node TEXT_PART) a part of JSON text, without NaN | | | |
| DEFER | null; everything else is deferred to Python | | | |
| OBJECT | an object with members a … a+b-1 | first member | members | |
| JSON | any JSON as text; with a, objects alone | objects alone | | |
| ARRAY | an array | node of the items | | inner group |
| PAIRS | as ARRAY, of objects with two members; or an object with any keys | node of the items | | inner group |
| MAP | an object with any keys | node of the values | slot of the keys | inner group |
| STRING | a string | | | LITERALS, FRACTIONS: numbers as well |
| BASE64 | a string | | | 1: it may be text |
| BOOLEAN | a boolean | | | |
| INTEGER | an integer literal | factor | greatest value | CHARACTER, or a kind of time |
| DOUBLE | a number | | | |
| DECIMAL | a number | precision | scale | 1: text is base64 |

Every kind takes null, and leaves take the other forms that `forms` reads. A kind of time is DATE,
TIME, INSTANT or LOCAL, and NANOS more if the column counts nanoseconds.

A member is (start of its name in ``names``, length, node, place, start of its key, length, place).
In ``names`` the name has quotes, its `name_key` has none, and 16 bytes follow the last. The places of an
object's members are their order by length and name: place i is the index of the i-th. A key that
two members have is too long for any name.
"""  # noqa: E501

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.budget import value_bytes
from reader.payload.column_types import (
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Missing,
    Struct,
    inner_path,
    label,
    mapped_union,
)
from reader.payload.json.member_names import member_names, pair_members
from reader.payload.json.scalars import FACTORS, bounds
from reader.payload.json.time_forms import time_form
from reader.payload.remembered.conversions import read_as, takes
from reader.payload.slots import Output

ANY, DEFER, OBJECT, JSON, ARRAY, PAIRS, MAP = range(7)
STRING, BASE64, BOOLEAN, INTEGER, DOUBLE, DECIMAL = range(7, 13)
TEXT_PART = 1
"""The node of what is inside of JSON text."""
LITERALS, FRACTIONS = 1, 2
CHARACTER, DATE, TIME, INSTANT, LOCAL = range(1, 6)
NANOS = 8
# Longer literals are deferred to Python, so that the kernel's arithmetic cannot overflow.
MOST_DIGITS = 18
_AS_IT_IS = re.compile(r'[^"\\\x00-\x1f]*')
_NEVER = 1 << 40
_KINDS = {"date": DATE, "time": TIME, "instant": INSTANT, "local": LOCAL}


@dataclass(frozen=True, slots=True)
class JsonProgram:
    """``nodes`` is (n, 8) int64 and nodes 0 and 1 are ANY, ``members`` (m, 7), ``names`` UTF-8.

    ``entries`` is the root node of each version, ``paths`` the field of each node.
    """

    nodes: npt.NDArray[np.int64]
    members: npt.NDArray[np.int64]
    names: npt.NDArray[np.uint8]
    entries: Mapping[int, int]
    paths: tuple[str, ...]


def compile_json(
    roots: Iterable[tuple[int, Node]],
    layout: Struct,
    columns: Mapping[str, Output],
    member_name: str | None = None,
) -> JsonProgram:
    """The program of ``roots`` (version, type) for the wanted ``columns``.

    Without a ``member_name`` they are records whose fields are members of ``layout``; otherwise
    each payload is that member.
    """
    compiler = _Compiler()
    entries: dict[int, int] = {}
    made: dict[Node, int] = {}
    for version, root in roots:
        if root not in made:
            made[root] = compiler.root(root, layout, columns, member_name)
        entries[version] = made[root]
    return JsonProgram(
        np.array(compiler.nodes, np.int64),
        np.array(compiler.members, np.int64).reshape(-1, 7),
        np.frombuffer(bytes(compiler.names) + bytes(16), np.uint8),
        entries,
        tuple(compiler.paths),
    )


class _Compiler:
    def __init__(self) -> None:
        self.nodes: list[list[int]] = [[ANY, -1, 0, 0, 0, 0, 0, 0], [ANY, -1, 0, 0, 0, 0, 0, 0]]
        self.paths = ["", ""]
        self.members: list[list[int]] = []
        self.names = bytearray()

    def emit(
        self, kind: int, path: str, out: Output | None, a: int = 0, b: int = 0, c: int = 0,
        least: int = 0,
    ) -> int:  # fmt: skip
        slot, group = (out.slot, out.group) if out is not None else (-1, 0)
        size = sum(value_bytes(child.type) for child in out.children) if out is not None else 0
        self.nodes.append([kind, slot, group, a, b, c, max(size, 8), least])
        self.paths.append(path)
        return len(self.nodes) - 1

    def root(
        self, node: Node, layout: Struct, columns: Mapping[str, Output], member_name: str | None
    ) -> int:
        known = {member.name: member for member in layout.members}
        if member_name is not None:
            member = known[member_name]
            return self.value(node, member.layout, columns.get(member.column), label(member_name))
        # A record whose members are columns of their own needs no slot itself.
        assert isinstance(node, Record)
        children = []
        for name, child in node.fields:
            member = known[name]
            out = columns.get(member.column)
            path = inner_path("", name)
            children.append((name, self.value(child, member.layout, out, path)))
        return self.object("", None, children)

    def object(self, path: str, out: Output | None, children: list[tuple[str, int]]) -> int:
        first = len(self.members)
        keys = {name: key for key, name in member_names(n for n, _ in children).keys.items()}
        for name, child in children:
            member = [
                *self._name(f'"{name}"', name),
                child,
                0,
                *self._name(keys.get(name), name),
                0,
            ]
            self.members.append(member)
        for start, place in ((0, 3), (4, 6)):
            order = sorted(range(len(children)), key=self._order(first, start))
            for i, index in enumerate(order):
                self.members[first + i][place] = index
        return self.emit(OBJECT, path, out, first, len(children))

    def _name(self, text: str | None, name: str) -> tuple[int, int]:
        """Keep ``text`` in ``names``; return its start and length.

        A name that JSON has to escape never occurs unescaped: its length is one that no text has.
        """
        if text is None or not _AS_IT_IS.fullmatch(name):
            return 0, _NEVER
        start, encoded = len(self.names), text.encode("utf-8", "replace")
        self.names += encoded
        return start, len(encoded)

    def _order(self, first: int, column: int) -> Callable[[int], tuple[int, bytes]]:
        """The key by which members from ``first`` on are ordered."""

        def key(index: int) -> tuple[int, bytes]:
            start, length = self.members[first + index][column : column + 2]
            return length, bytes(self.names[start : start + min(length, len(self.names))])

        return key

    def value(self, node: Node, layout: Layout, out: Output | None, path: str) -> int:
        if isinstance(node, Union):
            branches = mapped_union(node)
            if len(branches) == 1:
                return self.value(branches[0], layout, out, path)
            return self.emit(DEFER, path, None)
        node = read_as(node, layout)
        if isinstance(layout, Missing) or not takes(layout, node):
            return self.emit(DEFER, path, None)
        match node, layout:
            case Record(), Struct():
                members = layout.by_name()
                children = []
                for name, child in node.fields:
                    member = members.get(name)
                    if member is None:
                        children.append((name, self.emit(DEFER, inner_path(path, name), None)))
                        continue
                    inner_out = None
                    if out is not None:
                        inner_out = out.children[out.type.get_field_index(member.column)]
                    inner = self.value(child, member.layout, inner_out, inner_path(path, name))
                    children.append((name, inner))
                return self.object(path, out, children)
            case Array(), ListOf():
                inner_out = out.children[0] if out is not None else None
                item = self.value(node.items, layout.item, inner_out, f"{path}[]")
                pairs = pair_members(node) is not None and self.nodes[item][0] == OBJECT
                kind = PAIRS if pairs else ARRAY
                return self.emit(kind, path, out, item, 0, -1 if out is None else out.inner)
            case Map(), MapOf():
                inner_out = out.children[1] if out is not None else None
                item = self.value(node.values, layout.value, inner_out, f"{path}[]")
                key = -1 if out is None else out.children[0].slot
                return self.emit(MAP, path, out, item, key, -1 if out is None else out.inner)
            case _, Leaf():
                return self.leaf(node, layout, out, path)
        return self.emit(DEFER, path, None)

    def leaf(self, node: Node, layout: Leaf, out: Output | None, path: str) -> int:
        form = node.json_form if isinstance(node, Primitive) else ""
        match node:
            case Record() | Ref():
                objects_alone = isinstance(node, Ref) or bool(node.fields)
                return self.emit(JSON, path, out, objects_alone)
            case Enum():
                return self.emit(STRING, path, out, c=LITERALS)
            case Primitive(kind="string") | Fixed(logical="uuid"):
                literals = {"integer": LITERALS, "number": FRACTIONS}
                return self.emit(STRING, path, out, c=literals.get(form, 0))
            case Primitive(logical="decimal") | Fixed(logical="decimal"):
                real = layout.type
                if not pa.types.is_decimal128(real) or real.scale != node.scale:
                    return self.emit(DEFER, path, None)
                connect = isinstance(node, Primitive) and node.connect
                return self.emit(DECIMAL, path, out, real.precision, real.scale, connect)
            case Primitive(kind="bytes", json_form="text"):
                return self.emit(STRING, path, out)
            case Primitive(kind="bytes") | Fixed():
                return self.emit(BASE64, path, out, c=node == Primitive("bytes"))
            case Primitive(kind="boolean"):
                return self.emit(BOOLEAN, path, out)
            case Primitive(kind="int" | "long" | "float" | "double"):
                if layout.tag == "number" and str(layout.type) == "double":
                    return self.emit(DOUBLE, path, out)
                return self._integer(node, out, path)
        return self.emit(DEFER, path, None)

    def _integer(self, node: Primitive, out: Output | None, path: str) -> int:
        factor = FACTORS.get(node.logical or "", 1)
        least, greatest = bounds(node)
        least, greatest = -(-least // factor), greatest // factor
        time = time_form(node)
        form = CHARACTER if node.json_form == "character" else 0
        if time is not None:
            form = _KINDS[time.kind] + (NANOS if time.unit == 1 else 0)
        return self.emit(INTEGER, path, out, factor, greatest, form, least)
