"""JSON: columns to parts, as Jackson writes them for Pulsar's ``JSONSchema``.

A member that is NULL is left out, an item or a value of a map is null; bytes are base64, enums
their names, unions have no wrapper, what is no number of JSON is a string. An object is a block.

Times are ISO 8601 text, because Jackson reads an integer under an ``Instant`` as seconds. A client
that counts integers fails on text, and takes no other value for it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reader.encode.payload.arrow_columns import leaves, unions
from reader.encode.payload.arrow_columns.decimals import decimal_bytes, decimal_fixed, decimal_text
from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.iso_times import iso_texts
from reader.encode.payload.arrow_columns.json_column import converted, parsed
from reader.encode.payload.arrow_columns.maps import entries, no_key_twice
from reader.encode.payload.arrow_columns.matching import members_of, missing_column
from reader.encode.payload.defaults import has_default
from reader.encode.payload.json_datum import JsonDatum, has_text_form, is_object
from reader.encode.payload.row_writer import kernel as k
from reader.encode.payload.row_writer.blocks import Block, Spans
from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.column_types import (
    Layout,
    ListOf,
    MapOf,
    Struct,
    arrow_type,
    inner_path,
    mapped_union,
)


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a value goes: what is written before it, and instead of NULL."""

    block: Block
    prefix: bytes
    absent: bytes

    def add(self, kind: int, elements: Elements, values: Spans | np.ndarray | None,
            brackets: bytes = b"") -> None:  # fmt: skip
        self.block.add(
            kind, values, guard=elements.live, valid=elements.valid(), prefix=self.prefix,
            absent=self.absent, brackets=brackets,
        )  # fmt: skip


class JsonParts:
    """``records``: what a `Ref` of the schema names; ``numbers``: whether times are numbers."""

    def __init__(self, records: Mapping[str, Record], *, numbers: bool = False) -> None:
        self._numbers = numbers
        self._datum = JsonDatum(records, numbers=numbers)
        # Unions of several branches within which a value is written.
        self._inside_unions = 0

    def record(self, block: Block, node: Record, layout: Struct, elements: Elements) -> None:
        """All fields, of elements that are present, into a block of members."""
        live = elements.present()
        found = members_of(elements, layout, live)
        for (name, field), member in zip(node.fields, layout.members, strict=True):
            prefix = b"," + json.dumps(name, ensure_ascii=False).encode() + b":"
            if name in found:
                self.value(_Slot(block, prefix, b""), field, member.layout, found[name])
                continue
            path = inner_path(elements.path, member.column)
            if has_default(node, name, field):
                default = self._datum.default(field, node.defaults[name], path)
                block.add(k.CONSTANT, prefix=prefix + default)
            elif unions.null_index(field) is None:
                raise missing_column(path, unions.type_name(field))

    def root(self, block: Block, node: Node, layout: Layout, elements: Elements) -> None:
        """A value that is a payload as a whole."""
        self.value(_Slot(block, b"", b"null"), node, layout, elements)

    def value(self, slot: _Slot, node: Node, layout: Layout, elements: Elements) -> None:
        elements = elements.typed(arrow_type(layout))
        branches = mapped_union(node) if isinstance(node, Union) else (node,)
        if not branches or unions.null_index(branches[0]) == 0:
            unions.only_null(elements)
            slot.add(k.CONSTANT, elements, None)
            return
        null = unions.null_index(node)
        if len(branches) == 1:
            if null is None:
                elements.require(unions.type_name(node))
            self._branch(slot, branches[0], layout, elements)
            return
        assert isinstance(layout, Struct)
        members, unset = unions.chosen_members(elements, layout, null is not None)
        if unset is not None and slot.absent:
            slot.block.add(k.CONSTANT, guard=unset, prefix=slot.absent)
        self._inside_unions += 1
        for member, branch in zip(layout.members, branches, strict=True):
            if member.name in members:
                self._branch(slot, branch, member.layout, members[member.name])
        self._inside_unions -= 1

    def _branch(self, slot: _Slot, node: Node, layout: Layout, elements: Elements) -> None:
        """A value of no union; NULL is what the slot says."""
        match node, layout:
            case Record(), Struct():
                if not pa.types.is_struct(elements.type):
                    raise elements.refuse(unions.type_name(node), arrow_type(layout))
                inner = Block(len(elements), elements.present(), members=True)
                self.record(inner, node, layout, elements)
                slot.add(k.SPAN, elements, inner.write().spans)
            case Array(), ListOf():
                if not (pa.types.is_list(elements.type) or pa.types.is_large_list(elements.type)):
                    raise elements.refuse(unions.type_name(node), arrow_type(layout))
                pairs = None if self._inside_unions else is_object(node)
                if pairs is not None and isinstance(layout.item, Struct):
                    self._java_map(slot, pairs, layout.item, elements)
                    return
                items, offsets = elements.items()
                inner = Block(len(items), items.live, suffix=b",")
                self.value(_Slot(inner, b"", b"null"), node.items, layout.item, items)
                slot.add(k.ITEMS_TEXT, elements, inner.write().groups(offsets), b"[]")
            case Map(), MapOf():
                keys, values, offsets = entries(
                    elements, unions.type_name(node), arrow_type(layout)
                )
                inner = Block(len(values), values.live, suffix=b",")
                inner.add(k.TEXT, keys.spans(), guard=values.live)
                self.value(_Slot(inner, b":", b":null"), node.values, layout.value, values)
                slot.add(k.ITEMS_TEXT, elements, inner.write().groups(offsets), b"{}")
            case Record(fields=()), _ if not self._inside_unions:
                slot.add(k.SPAN, elements, converted(elements, _any_json))
            case ((Record() | Ref()), _):
                inside = self._inside_unions
                slot.add(
                    k.SPAN,
                    elements,
                    converted(elements, partial(self._datum.of_text, node, inside_unions=inside)),
                )
            case ((Primitive() | Fixed() | Enum()), _):
                numbers = self._numbers or self._inside_unions > 0
                slot.add(*_leaf(node, elements, numbers=numbers))
            case _:
                raise AssertionError(f"{node} is not {layout}")

    def _java_map(self, slot: _Slot, pairs: Record, layout: Struct, elements: Elements) -> None:
        """Write an array of key and value as the object that Jackson has for a Java map."""
        items, offsets = elements.items()
        items = items.typed(arrow_type(layout))
        items.require(unions.type_name(pairs))
        if not pa.types.is_struct(items.type):
            raise items.refuse(unions.type_name(pairs), arrow_type(layout))
        found = members_of(items, layout, items.present())
        (key, key_node), (value, value_node) = pairs.fields
        inner = Block(len(items), items.live, suffix=b",")
        for (name, node), member in zip(pairs.fields, layout.members, strict=True):
            if name not in found and (name == key or unions.null_index(node) is None):
                raise missing_column(inner_path(items.path, member.column), unions.type_name(node))
        keys = found[key].typed(arrow_type(layout.members[0].layout))
        keys.require(unions.type_name(key_node))
        assert isinstance(key_node, Primitive | Enum)
        texts = _key_texts(key_node, keys)
        no_key_twice(elements, texts, offsets)
        inner.add(k.TEXT, texts, guard=items.live)
        if value in found:
            to = _Slot(inner, b":", b":null")
            self.value(to, value_node, layout.members[1].layout, found[value])
        else:
            inner.add(k.CONSTANT, guard=items.live, prefix=b":null")
        slot.add(k.ITEMS_TEXT, elements, inner.write().groups(offsets), b"{}")


def _any_json(value: str) -> bytes:
    """As it is. Raises ValueError if it is not JSON, or null, which would be no value."""
    if parsed(value) is None:
        raise ValueError("null is no value")
    return value.strip().encode()


def _key_texts(node: Primitive | Enum, elements: Elements) -> Spans:
    """Return the keys of a Java map, as Jackson reads them."""
    field = unions.type_name(node)
    if isinstance(node, Enum):
        leaves.indices(elements, list(node.symbols), field)
        return elements.spans()
    if node.kind == "string":
        return leaves.text(elements, field)
    if node.logical:
        return iso_texts(leaves.column_units(elements, node.logical), node.logical)
    if node.kind in ("float", "double"):
        return _double_text(elements, field, quote="")
    if node.kind == "boolean":
        return Elements(
            pa.array(leaves.booleans(elements, field) != 0).cast(pa.string()), ""
        ).spans()
    if node.json_form != "character":
        values = leaves.integers(elements, field, *leaves.limits(32 if node.kind == "int" else 64))
        return Elements(pa.array(values).cast(pa.string()), "").spans()
    letters = leaves.integers(elements, field, 0, (1 << 16) - 1)
    halves = (letters >= 0xD800) & (letters < 0xE000)
    elements.fail_if(halves, lambda i: f"{letters[i]} is half of a character")
    letters = np.where(halves | (letters < 0) | (letters >= 1 << 16), 0, letters)
    return Elements(pa.array([chr(letter) for letter in letters], pa.string()), "").spans()


def _leaf(
    node: Primitive | Fixed | Enum, elements: Elements, *, numbers: bool
) -> tuple[int, Elements, Spans | np.ndarray]:
    field = unions.type_name(node)
    match node:
        case Enum():
            leaves.indices(elements, list(node.symbols), field)
            return k.TEXT, elements, elements.spans()
        case Fixed(logical="uuid") | Primitive(kind="string", logical="uuid"):
            return k.TEXT, elements, leaves.uuid_text(elements)
        case Primitive(logical="decimal", connect=True):
            return k.BASE64, elements, decimal_bytes(elements, node)
        case Primitive(logical="decimal") | Fixed(logical="decimal"):
            if isinstance(node, Fixed):
                decimal_fixed(elements, node)  # for its range
            return k.SPAN, elements, decimal_text(elements, node)
        case Fixed():
            return k.BASE64, elements, leaves.binary(elements, field, node.size)
        case Primitive(kind="int" | "long"):
            bits = 32 if node.kind == "int" else 64
            if node.logical and has_text_form(node) and not numbers:
                return (
                    k.TEXT,
                    elements,
                    iso_texts(leaves.column_units(elements, node.logical), node.logical),
                )
            if node.logical:
                return k.INTEGER_TEXT, elements, leaves.scaled(elements, node.logical)
            return k.INTEGER_TEXT, elements, leaves.integers(elements, field, *leaves.limits(bits))
        case Primitive(kind="float" | "double"):
            if node.kind == "float":
                leaves.floats(elements, field)  # for its range
            return k.DOUBLE_TEXT, elements, _double_text(elements, field)
        case Primitive(kind="boolean"):
            return k.BOOLEAN_TEXT, elements, leaves.booleans(elements, field)
        case Primitive(kind="string"):
            return k.TEXT, elements, leaves.text(elements, field)
        case Primitive(kind="bytes", json_form="text"):
            return k.TEXT, elements, leaves.text_of_bytes(elements, field)
    return k.BASE64, elements, leaves.binary(elements, field)


def _double_text(elements: Elements, field: str, quote: str = '"') -> Spans:
    """Return the shortest texts that are the same doubles again; ``quote`` is around names."""
    values = leaves.doubles(elements, field)
    found = pa.array(values).cast(pa.string())
    if not np.isfinite(values).all():
        for value, name in ((np.inf, "Infinity"), (-np.inf, "-Infinity")):
            found = pc.if_else(pa.array(values == value), quote + name + quote, found)
        found = pc.if_else(pa.array(np.isnan(values)), quote + "NaN" + quote, found)
    return Elements(found, "").spans()
