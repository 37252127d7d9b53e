"""Avro: columns to parts. What has no length of its own (records, unions) becomes parts of the row.

Source: Avro 1.12 specification, "Binary Encoding". An array or a map is one block.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from reader.encode.payload.arrow_columns import leaves, unions
from reader.encode.payload.arrow_columns.decimals import decimal_bytes, decimal_fixed
from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.json_column import converted
from reader.encode.payload.arrow_columns.maps import entries
from reader.encode.payload.arrow_columns.matching import members_of, missing_column
from reader.encode.payload.avro_datum import AvroDatum, zigzag
from reader.encode.payload.defaults import has_default
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
    """Where a value goes: what is written before it (a union's tag), and instead of NULL."""

    block: Block
    prefix: bytes = b""
    absent: bytes = b""


class AvroParts:
    """``records``: what a `Ref` of the schema names."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._datum = AvroDatum(records)

    def record(self, block: Block, node: Record, layout: Struct, elements: Elements) -> None:
        """All fields, of elements that are present."""
        live = elements.present()
        found = members_of(elements, layout, live)
        for (name, field), member in zip(node.fields, layout.members, strict=True):
            if name in found:
                self.value(_Slot(block), field, member.layout, found[name])
            else:
                path = inner_path(elements.path, member.column)
                block.add(k.CONSTANT, guard=live, prefix=self._missing(node, name, field, path))

    def _missing(self, record: Record, name: str, field: Node, path: str) -> bytes:
        """What is written for a field without a column."""
        null = unions.null_index(field)
        if has_default(record, name, field):
            return self._datum.default(field, record.defaults[name], path)
        if null is None:
            raise missing_column(path, unions.type_name(field))
        return zigzag(null) if isinstance(field, Union) else b""

    def root(self, block: Block, node: Node, layout: Layout, elements: Elements) -> None:
        """A value that is a payload as a whole."""
        self.value(_Slot(block), node, layout, elements)

    def value(self, slot: _Slot, node: Node, layout: Layout, elements: Elements) -> None:
        elements = elements.typed(arrow_type(layout))
        if isinstance(node, Union):
            self._union(slot, node, layout, elements)
        elif isinstance(node, Primitive) and node.kind == "null":
            unions.only_null(elements)
            slot.block.add(k.CONSTANT, guard=elements.live, prefix=slot.prefix)
        else:
            elements.require(unions.type_name(node))
            self._branch(slot, node, layout, elements)

    def _union(self, slot: _Slot, node: Union, layout: Layout, elements: Elements) -> None:
        null, branches = unions.null_index(node), mapped_union(node)
        absent = b"" if null is None else zigzag(null)
        if not branches:
            unions.only_null(elements)
            slot.block.add(k.CONSTANT, guard=elements.live, prefix=absent)
        elif len(branches) == 1:
            if null is None:
                elements.require(unions.type_name(node))
            branch = unions.branch_of(node, branches[0])
            inner = _Slot(slot.block, zigzag(branch), absent)
            self._branch(inner, node.branches[branch], layout, elements)
        else:
            assert isinstance(layout, Struct)
            members, unset = unions.chosen_members(elements, layout, null is not None)
            if unset is not None:
                slot.block.add(k.CONSTANT, guard=unset, prefix=absent)
            for member, branch_node in zip(layout.members, branches, strict=True):
                if member.name in members:
                    tag = zigzag(unions.branch_of(node, branch_node))
                    chosen = members[member.name]
                    self._branch(_Slot(slot.block, tag), branch_node, member.layout, chosen)

    def _branch(self, slot: _Slot, node: Node, layout: Layout, elements: Elements) -> None:
        """A value of no union; NULL is what the slot says."""
        match node, layout:
            case Record(), Struct():
                if not pa.types.is_struct(elements.type):
                    raise elements.refuse(unions.type_name(node), arrow_type(layout))
                if slot.prefix or slot.absent:
                    _add(slot, k.CONSTANT, None, elements)
                self.record(slot.block, node, layout, elements)
            case Array(), ListOf():
                self._array(slot, node, layout, elements)
            case Map(), MapOf():
                self._map(slot, node, layout, elements)
            case ((Record() | Ref()), _):
                spans = converted(elements, lambda value: self._datum.of_text(node, value))
                _add(slot, k.SPAN, spans, elements)
            case ((Primitive() | Fixed() | Enum()), _):
                _leaf(slot, node, elements)
            case _:
                raise AssertionError(f"{node} is not {layout}")

    def _array(self, slot: _Slot, node: Array, layout: ListOf, elements: Elements) -> None:
        if not (pa.types.is_list(elements.type) or pa.types.is_large_list(elements.type)):
            raise elements.refuse(unions.type_name(node), arrow_type(layout))
        items, offsets = elements.items()
        inner = Block(len(items), items.live)
        self.value(_Slot(inner), node.items, layout.item, items)
        _add_items(slot, inner, offsets, elements)

    def _map(self, slot: _Slot, node: Map, layout: MapOf, elements: Elements) -> None:
        keys, values, offsets = entries(elements, unions.type_name(node), arrow_type(layout))
        inner = Block(len(values), values.live)
        inner.add(k.ZIGZAG_SIZED, keys.spans())
        self.value(_Slot(inner), node.values, layout.value, values)
        _add_items(slot, inner, offsets, elements)


def _add(
    slot: _Slot, kind: int, values: Spans | np.ndarray | None, elements: Elements,
    counts: np.ndarray | None = None,
) -> None:  # fmt: skip
    slot.block.add(
        kind, values, guard=elements.live, valid=elements.valid(), prefix=slot.prefix,
        absent=slot.absent, counts=counts,
    )  # fmt: skip


def _add_items(slot: _Slot, inner: Block, offsets: np.ndarray, elements: Elements) -> None:
    _add(slot, k.COUNTED, inner.write().groups(offsets), elements, np.diff(offsets))


def _leaf(slot: _Slot, node: Primitive | Fixed | Enum, elements: Elements) -> None:
    field = unions.type_name(node)
    match node:
        case Enum():
            _add(slot, k.ZIGZAG, leaves.indices(elements, list(node.symbols), field), elements)
        case Fixed(logical="decimal"):
            _add(slot, k.RAW, decimal_fixed(elements, node), elements)
        case Fixed(logical="uuid"):
            _add(slot, k.RAW, leaves.uuid_bytes(elements), elements)
        case Fixed():
            _add(slot, k.SPAN, leaves.binary(elements, field, node.size), elements)
        case Primitive(logical="decimal"):
            _add(slot, k.ZIGZAG_SIZED, decimal_bytes(elements, node), elements)
        case Primitive(kind="int" | "long"):
            bits = 32 if node.kind == "int" else 64
            values = (
                leaves.scaled(elements, node.logical)
                if node.logical
                else leaves.integers(elements, field, *leaves.limits(bits))
            )
            _add(slot, k.ZIGZAG, values, elements)
        case Primitive(kind="float"):
            _add(slot, k.RAW, leaves.floats(elements, field), elements)
        case Primitive(kind="double"):
            _add(slot, k.RAW, leaves.doubles(elements, field), elements)
        case Primitive(kind="boolean"):
            _add(slot, k.RAW, leaves.booleans(elements, field), elements)
        case Primitive(kind="string", logical="uuid"):
            _add(slot, k.ZIGZAG_SIZED, leaves.uuid_text(elements), elements)
        case Primitive(kind="string"):
            _add(slot, k.ZIGZAG_SIZED, leaves.text(elements, field), elements)
        case _:
            _add(slot, k.ZIGZAG_SIZED, leaves.binary(elements, field), elements)
