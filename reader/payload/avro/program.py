"""Avro schemas to a program for the one loop of `kernel`.

All versions of a topic are compiled into one table of instructions; a message starts at the entry
of its own version. Every value is read and checked, and written only where its column is wanted, so
pruning never changes which rows have problems. See `instructions` for the instructions.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from reader.payload.avro import instructions as ops
from reader.payload.avro import text as avro_text
from reader.payload.avro_schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Ref,
    Schema,
    Union,
)
from reader.payload.budget import value_bytes
from reader.payload.column_types import (
    DOUBLE,
    NUMBER,
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Member,
    Missing,
    Struct,
    inner_path,
    label,
    layout_of,
    mapped_union,
    mismatch,
)
from reader.payload.remembered.conversions import expanded, takes
from reader.payload.remembered.union_members import union_member, union_targets
from reader.payload.slots import Output

_READS = {
    "boolean": ops.BOOL,
    "int": ops.INT,
    "long": ops.LONG,
    "float": ops.FLOAT,
    "double": ops.DOUBLE,
    "bytes": ops.BYTES,
    "string": ops.STRING,
}
# The time of an instruction, as bytes of columns.
_STEP_BYTES = 8
_YEARS = {"date": ops.AS_DATE, "timestamp": ops.AS_TIMESTAMP}
_FACTORS = {"time-millis": 1000, "timestamp-millis": 1000, "local-timestamp-millis": 1000}


@dataclass(frozen=True, slots=True)
class AvroProgram:
    """Instructions. ``code`` is (n, 8) int64, ``entries`` the start of each version in it.

    ``paths[pc]`` is the field that an instruction belongs to; ``messages`` are the problems that
    PROBLEM and others name by number (0: no problem). ``side`` holds the enums' symbols.
    ``texts``: the versions with records that become JSON text.
    """

    code: npt.NDArray[np.int64]
    table: npt.NDArray[np.int64]
    entries: Mapping[int, int]
    paths: tuple[str, ...]
    messages: tuple[str, ...]
    side: npt.NDArray[np.uint8]
    converters: tuple[Callable[[bytes], bytes], ...]
    texts: frozenset[int]


def compile_avro(
    schemas: Iterable[tuple[int, Schema]], layout: Struct, columns: Mapping[str, Output]
) -> AvroProgram:
    """The program of ``schemas`` (version, schema of a record) for the wanted ``columns``."""
    compiler = _Compiler()
    entries = {}
    for version, schema in schemas:
        entries[version] = len(compiler.code)
        compiler.version(version, schema, layout, columns)
    return AvroProgram(
        np.array(compiler.code, np.int64).reshape(-1, 8),
        np.array([*compiler.table, 0], np.int64),
        entries,
        tuple(compiler.paths),
        tuple(compiler.messages),
        np.frombuffer(bytes(compiler.side) + b"\0", np.uint8),
        tuple(compiler.converters),
        frozenset(compiler.texts),
    )


class _Compiler:
    def __init__(self) -> None:
        self.code: list[list[int]] = []
        self.paths: list[str] = []
        self.table: list[int] = []
        self.messages = [""]
        self.side = bytearray()
        self.converters: list[Callable[[bytes], bytes]] = [lambda value: value]
        self.texts: set[int] = set()
        self.number = 0
        self.schema: Schema
        self.calls: list[tuple[int, str]] = []
        self.text_sizes: dict[str, int] = {}

    def version(
        self, number: int, schema: Schema, layout: Struct, columns: Mapping[str, Output]
    ) -> None:
        self.number, self.schema, self.calls, self.text_sizes = number, schema, [], {}
        root = expanded(schema.root, layout, schema.records)
        assert isinstance(root, Record)
        members = {member.name: member for member in layout.members}
        for name, node in root.fields:
            member = members[name]
            self.value(node, member.layout, columns.get(member.column), inner_path("", label(name)))
        self.emit(ops.END, "the end")
        self._subroutines()

    def _subroutines(self) -> None:
        """The records that are called, each read without writing; they may call others."""
        known: dict[str, int] = {}
        while self.calls:
            pc, name = self.calls.pop()
            if name not in known:
                known[name] = len(self.code)
                record = self.schema.records[name]
                self.value(record, None, None, inner_path("", name))
                self.emit(ops.RETURN, name)
                steps = len(self.code) - known[name]
                self.text_sizes[name] = max(_STEP_BYTES * steps, avro_text.text_bytes(record))
            self.code[pc][3] = known[name]
            self.code[pc][7] = self.text_sizes[name]

    def emit(
        self, op: int, path: str, out: Output | None = None, a: int = 0, b: int = 0, c: int = 0,
        d: int = 0, size: int = 0,
    ) -> int:  # fmt: skip
        slot, group = (out.slot, out.group) if out is not None else (-1, 0)
        self.code.append([op, slot, group, a, b, c, d, size])
        self.paths.append(path)
        return len(self.code) - 1

    def message(self, text: str) -> int:
        self.messages.append(text)
        return len(self.messages) - 1

    def value(self, node: Node, layout: Layout | None, out: Output | None, path: str) -> None:
        """Read a value; without a layout nothing is written, and only its form is checked."""
        if isinstance(node, Union):
            self.union(node, layout, out, path)
            return
        if isinstance(node, Primitive) and node.kind == "null":
            return
        if layout is not None and not takes(layout, node):
            member = union_member(layout, node)
            if member is not None:
                self.member(node, member, out, path)
                return
            self.problem(layout, node, path)
            layout, out = None, None
        match node:
            case Record():
                self.record(node, layout, out, path)
            case Array():
                item = layout.item if isinstance(layout, ListOf) else None
                self.repeated(ops.ARRAY, node.items, item, out, path)
            case Map():
                value = layout.value if isinstance(layout, MapOf) else None
                self.repeated(ops.MAP, node.values, value, out, path)
            case Enum():
                self.enum(node, out, path)
            case Ref():
                self.calls.append((self.emit(ops.CALL, path, out, c=self.text(node)), node.name))
            case Fixed():
                self.fixed(node, layout, out, path)
            case Primitive():
                self.primitive(node, layout, out, path)

    def problem(self, layout: Layout, node: Node, path: str) -> None:
        why = mismatch(layout, layout_of(node), self.number)
        self.emit(ops.PROBLEM, path, a=self.message(f"field {path!r} {why}"))

    def text(self, node: Node) -> int:
        """A converter that turns the bytes of ``node`` to JSON text."""
        schema = self.schema
        self.texts.add(self.number)
        self.converters.append(lambda value: avro_text.to_json(value, node, schema.records))
        return len(self.converters) - 1

    def record(self, node: Record, layout: Layout | None, out: Output | None, path: str) -> None:
        if isinstance(layout, Leaf) and node.fields:
            self.calls.append((self.emit(ops.CALL, path, out, c=self.text(node)), node.name))
            return
        if isinstance(layout, Leaf):
            self.emit(ops.CONVERT, path, out, a=0, c=self.text(node), size=2)
            return
        members = layout.by_name() if isinstance(layout, Struct) else {}
        missing = None if layout is None else Missing("has no column")
        if out is not None and out.slot >= 0:
            self.emit(ops.MARK, path, out)
        for name, child in node.fields:
            member = members.get(name)
            inner = member.layout if member is not None else missing
            inner_out = _child(out, member.column) if member is not None else None
            self.value(child, inner, inner_out, inner_path(path, name))

    def union(self, node: Union, layout: Layout | None, out: Output | None, path: str) -> None:
        first = len(self.table)
        self.table += [0] * len(node.branches)
        self.emit(ops.UNION, path, a=first, b=len(node.branches))
        wide = mapped_union(node)
        targets: list[Member | Layout | None] = []
        if len(wide) > 1:
            natural = layout_of(node)
            assert isinstance(natural, Struct)
            targets = union_targets(layout, natural)
        jumps, nulls, member = [], [], 0
        for index, branch in enumerate(node.branches):
            self.table[first + index] = len(self.code)
            if isinstance(branch, Primitive) and branch.kind == "null":
                nulls.append(first + index)
                continue
            if targets:
                self.branch(wide[member], targets[member], layout, out, path)
            else:
                self.value(branch, layout, out, path)
            member += 1
            jumps.append(self.emit(ops.JUMP, path))
        for jump in jumps:
            self.code[jump][3] = len(self.code)
        for entry in nulls:
            self.table[entry] = len(self.code)

    def branch(
        self,
        node: Node,
        target: Member | Layout | None,
        layout: Layout | None,
        out: Output | None,
        path: str,
    ) -> None:
        """Read a branch of a union of several into its member, or into the column itself."""
        if isinstance(target, Member):
            self.member(node, target, out, path)
        elif target is not None:
            self.value(node, target, out, path)
        else:
            if layout is not None:
                self.problem(layout, node, path)
            self.value(node, None, None, path)

    def member(self, node: Node, member: Member, out: Output | None, path: str) -> None:
        """Read a value into a member of the column of a union."""
        if out is not None and out.slot >= 0:
            self.emit(ops.MARK, path, out)
        self.value(node, member.layout, _child(out, member.column), f"{path}.{member.column}")

    def repeated(
        self, op: int, node: Node, layout: Layout | None, out: Output | None, path: str
    ) -> None:
        if layout is None:
            out = None
        inner = out.inner if out is not None else -1
        size = avro_text.text_bytes(node)
        if out is not None:
            size = sum(value_bytes(child.type) for child in out.children)
        least = _least_size(node) + (op == ops.MAP)
        start = self.emit(op, path, out, b=least, c=inner)
        if op == ops.MAP:
            self.emit(ops.KEY, path, out.children[0] if out is not None else None)
        self.value(node, layout, out.children[-1] if out is not None else None, f"{path}[]")
        self.emit(ops.NEXT, path)
        self.code[start][3] = len(self.code)
        self.code[start][7] = max(_STEP_BYTES * (len(self.code) - start), size)

    def enum(self, node: Enum, out: Output | None, path: str) -> None:
        first = len(self.table)
        for symbol in node.symbols:
            encoded = symbol.encode("utf-8", "replace")
            self.table += [len(self.side), len(encoded)]
            self.side += encoded
        self.emit(ops.ENUM, path, out, a=first, b=len(node.symbols))

    def fixed(self, node: Fixed, layout: Layout | None, out: Output | None, path: str) -> None:
        if node.logical == "decimal" and isinstance(layout, Leaf):
            self.decimal(node, node.size, layout, out, path)
        elif node.logical == "uuid" and layout is not None:
            self.converters.append(avro_text.uuid_text)
            self.emit(ops.CONVERT, path, out, a=16, c=len(self.converters) - 1, size=36)
        else:
            self.emit(ops.FIXED, path, out, a=node.size)

    def primitive(
        self, node: Primitive, layout: Layout | None, out: Output | None, path: str
    ) -> None:
        read = _READS[node.kind]
        if node.logical == "decimal" and isinstance(layout, Leaf):
            self.decimal(node, -1, layout, out, path)
        elif not isinstance(layout, Leaf):
            self.emit(read, path, out, a=1)
        elif node.kind in ("int", "long"):
            factor, kind, scale = _FACTORS.get(node.logical or "", 1), 0, 0
            if layout == DOUBLE:
                kind = ops.AS_OTHER
            elif layout.tag == "decimal":
                kind, scale = layout.type.precision, layout.type.scale
            elif layout.tag in _YEARS:
                kind = _YEARS[layout.tag]
            problem = 0
            if factor > 1 or kind:
                problem = self.message(f"field {path!r} is out of the range of its column")
            self.emit(read, path, out, a=factor, b=problem, c=kind, d=scale)
        elif node.kind in ("float", "double") and layout == NUMBER:
            problem = self.message(f"field {path!r} is not an integer of 64 bits")
            self.emit(read, path, out, b=problem, c=ops.AS_OTHER)
        else:
            self.emit(read, path, out)

    def decimal(
        self, node: Primitive | Fixed, size: int, layout: Leaf, out: Output | None, path: str
    ) -> None:
        if layout == NUMBER:
            problem = self.message(f"field {path!r} is not an integer of 64 bits")
            self.emit(ops.DECIMAL, path, out, a=size, b=problem, c=ops.AS_OTHER, d=-node.scale)
            return
        if layout.tag == "decimal" and layout.type != pa.string():
            precision, scale = layout.type.precision, layout.type.scale
            what = f"is not a decimal of {precision} digits"
            if scale != node.scale:
                what += f", {scale} after the point"
            problem = self.message(f"field {path!r} {what}")
            self.emit(ops.DECIMAL, path, out, a=size, b=problem, c=precision, d=scale - node.scale)
            return
        problem = self.message(f"field {path!r} is not a decimal of {node.precision} digits")
        scale = node.scale
        self.converters.append(lambda value: avro_text.decimal_text(value, scale))
        # One digit takes log2(10) bits; a longer number would cost too much to write as text.
        most = node.precision * 3322 // 8000 + 2
        self.emit(
            ops.CONVERT, path, out, a=size, b=problem, c=len(self.converters) - 1, d=most,
            size=node.precision + 3,
        )  # fmt: skip


def _child(out: Output | None, column: str) -> Output | None:
    if out is None:
        return None
    index: int = out.type.get_field_index(column)
    return out.children[index]


def _least_size(node: Node) -> int:
    """Fewest bytes that a value can take."""
    match node:
        case Primitive():
            return {"null": 0, "float": 4, "double": 8}.get(node.kind, 1)
        case Fixed():
            return node.size
        case Record():
            return sum(_least_size(child) for _, child in node.fields)
        case Ref():
            return 0
    return 1
