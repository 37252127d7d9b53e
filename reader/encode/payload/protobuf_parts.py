"""PROTOBUF_NATIVE: columns to parts of messages. A message is a block: its length stands before it.

Fields are in the order of their numbers, as Google's serializer writes them. What has no presence
is left out where it is the default. Source: protobuf.dev, "Encoding", "Field Presence".
"""

import numpy as np
import pyarrow as pa
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import EncodeError

from reader.encode.payload.arrow_columns.elements import Elements
from reader.encode.payload.arrow_columns.json_column import converted, parsed_object
from reader.encode.payload.arrow_columns.maps import entries
from reader.encode.payload.arrow_columns.matching import members_of, missing_column
from reader.encode.payload.protobuf_scalars import DELIMITED, Scalar, field_type, map_key, scalar
from reader.encode.payload.row_writer import kernel as k
from reader.encode.payload.row_writer.blocks import Block, Spans
from reader.kernels.array_types import Bytes
from reader.payload.column_types import Layout, ListOf, MapOf, Struct, arrow_type, inner_path
from reader.payload.protobuf.schema import is_map, message_of
from reader.wire import varint

_START_GROUP, _END_GROUP = 3, 4


class ProtobufParts:
    """Messages of any descriptor."""

    def record(
        self, block: Block, descriptor: Descriptor, layout: Struct, elements: Elements
    ) -> None:
        """All fields, of elements that are present."""
        found = members_of(elements, layout, elements.present())
        numbered = zip(descriptor.fields, layout.members, strict=True)
        for field, member in sorted(numbered, key=lambda pair: pair[0].number):
            if field.name in found:
                some = found[field.name].typed(arrow_type(member.layout))
                self._field(block, field, member.layout, some)
                found[field.name] = some
            elif field.is_required:
                path = inner_path(elements.path, member.column)
                raise missing_column(path, f"required {field_type(field)}")
        _one_of_each(descriptor, found)

    def root(
        self, block: Block, descriptor: Descriptor, layout: Layout, elements: Elements
    ) -> None:
        """A value that is a payload as a whole."""
        if isinstance(layout, Struct):
            _need_struct(elements, layout, descriptor.full_name)
            self.record(block, descriptor, layout, elements)
        else:
            block.add(k.SPAN, _from_json(descriptor, elements))

    def _field(
        self, block: Block, field: FieldDescriptor, layout: Layout, elements: Elements
    ) -> None:
        if isinstance(layout, MapOf | ListOf):
            some = "a map" if is_map(field) else f"repeated {field_type(field)}"
            elements.require(some, "use an empty one for NULL")
            if isinstance(layout, MapOf):
                spans, packed = self._map(field, layout, elements), False
            else:
                spans, packed = self._repeated(field, layout, elements)
            tag = _tag(field, DELIMITED) if packed else b""
            valid = (spans.ends > spans.starts).astype(np.uint8)
            kind = k.SIZED if packed else k.SPAN
            block.add(kind, spans, guard=elements.live, valid=valid, prefix=tag)
            return
        if field.is_required or not field.has_presence:
            hint = "give each row a value" if field.is_required else "use its default for NULL"
            name = "required" if field.is_required else "a field without presence:"
            elements.require(f"{name} {field_type(field)}", hint)
        self._value(block, field, layout, elements, implicit=not field.has_presence)

    def _value(
        self, block: Block, field: FieldDescriptor, layout: Layout, elements: Elements,
        *, implicit: bool = False, tagged: bool = True,
    ) -> None:  # fmt: skip
        """One value, with its tag; ``implicit``: nothing where it is the default."""
        valid, end = elements.valid(), b""
        if field.message_type is None:
            found = scalar(field, elements)
            if implicit:
                valid = found.set().astype(np.uint8)
            prefix = _tag(field, found.wire) if tagged else b""
        else:
            group = field.type == FieldDescriptor.TYPE_GROUP
            found = self._message(message_of(field), layout, elements, group=group)
            prefix = _tag(field, _START_GROUP if group else DELIMITED)
            end = _tag(field, _END_GROUP) if group else b""
        block.add(found.kind, found.values, guard=elements.live, valid=valid, prefix=prefix)
        if end:
            block.add(k.CONSTANT, guard=elements.live, valid=valid, prefix=end)

    def _message(
        self, descriptor: Descriptor, layout: Layout, elements: Elements, *, group: bool
    ) -> Scalar:
        kind = k.SPAN if group else k.SIZED
        if not isinstance(layout, Struct):
            return Scalar(kind, DELIMITED, _from_json(descriptor, elements))
        _need_struct(elements, layout, descriptor.full_name)
        inner = Block(len(elements), elements.present())
        self.record(inner, descriptor, layout, elements)
        return Scalar(kind, DELIMITED, inner.write().spans)

    def _repeated(
        self, field: FieldDescriptor, layout: ListOf, elements: Elements
    ) -> tuple[Spans, bool]:
        """(the items of each list, whether they are packed: without a tag of their own)."""
        if not (pa.types.is_list(elements.type) or pa.types.is_large_list(elements.type)):
            raise elements.refuse(f"repeated {field_type(field)}", arrow_type(layout))
        items, offsets = elements.items()
        items = items.typed(arrow_type(layout.item))
        items.require(f"an item of {field_type(field)}")
        inner = Block(len(items), items.live)
        packed = bool(field.is_packed)
        self._value(inner, field, layout.item, items, tagged=not packed)
        return inner.write().groups(offsets), packed

    def _map(self, field: FieldDescriptor, layout: MapOf, elements: Elements) -> Spans:
        """The entries of each map; an entry is a message of key and value, both written."""
        parts = message_of(field).fields_by_name
        keys, values, offsets = entries(elements, "map", arrow_type(layout))
        values = values.typed(arrow_type(layout.value))
        values.require(f"a map's value of {field_type(parts['value'])}")
        entry = Block(len(values), values.live)
        key = map_key(parts["key"], keys)
        entry.add(key.kind, key.values, guard=values.live, prefix=_tag(parts["key"], key.wire))
        self._value(entry, parts["value"], layout.value, values)
        inner = Block(len(values), values.live)
        inner.add(k.SIZED, entry.write().spans, prefix=_tag(field, DELIMITED))
        return inner.write().groups(offsets)


def _tag(field: FieldDescriptor, wire: int) -> bytes:
    return varint(field.number << 3 | wire)


def _need_struct(elements: Elements, layout: Struct, name: str) -> None:
    if not pa.types.is_struct(elements.type):
        raise elements.refuse(f"message {name}", arrow_type(layout))


def _one_of_each(descriptor: Descriptor, found: dict[str, Elements]) -> None:
    """Raises ConfigurationError where two members of a oneof are set."""
    for oneof in descriptor.oneofs:
        if len(oneof.fields) < 2:
            continue
        before: list[tuple[str, Bytes]] = []
        for field in oneof.fields:
            member = found.get(field.name)
            if member is None:
                continue
            for other, is_set in before:
                why = f"is set, as is {other!r}, and oneof {oneof.name!r} takes one of them"
                member.fail_if(is_set != 0, why)
            present = member.present()
            some = np.ones(len(member), np.uint8) if present is None else present
            before.append((field.name, some))


def _from_json(descriptor: Descriptor, elements: Elements) -> Spans:
    made = message_factory.GetMessageClass(descriptor)
    known = descriptor.full_name.startswith("google.protobuf.")

    def written(value: str) -> bytes:
        message = made()
        if not known:
            parsed_object(value)  # the parser takes [] for a message, too
        try:
            json_format.Parse(value, message)
            return message.SerializeToString(deterministic=True)
        except (json_format.Error, EncodeError) as error:
            raise ValueError(" ".join(str(error).split())) from error

    return converted(elements, written)
