"""One Protobuf payload to column values.

Unknown fields are dropped first; a message that then serializes to its payload again has lost
nothing. Of any other, `unknown_fields` says what is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from reader.payload.column_types import (
    DOUBLE,
    NUMBER,
    TEXT,
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Missing,
    Struct,
    accepts,
    label,
    mismatch,
)
from reader.payload.protobuf.schema import (
    MESSAGES,
    ProtobufSchema,
    enum_of,
    field_file,
    is_map,
    message_of,
)
from reader.payload.protobuf.unknown_fields import lost_data

__all__ = ["ProtobufReader"]

# A message without fields takes two bytes in a list, but a value of every member in a column.
MAX_VALUES = 1 << 23
# An enum's name takes more bytes as text than its number does in a message.
MAX_TEXT = 1 << 26
_NO_JSON = (json_format.Error, TypeError, ValueError, KeyError, AttributeError, RecursionError)

Convert = Callable[[Any], Any]
# Reads a field of a message; and whether that can find a problem.
Read = tuple[Convert, bool]


class ProtobufReader:
    """Reads messages of one schema version."""

    def __init__(
        self,
        version: int,
        schema: ProtobufSchema,
        layout: Struct,
        wanted: Collection[str],
        member_name: str | None,
    ) -> None:
        self._version = version
        self._message = schema.message
        self._descriptor = schema.descriptor
        self._proto3 = schema.proto3
        self._problems: list[str] = []
        self._widths: dict[str, int] = {}
        columns: list[tuple[str, Read]] = []
        if member_name is not None:
            member = layout.member(member_name)
            assert member is not None
            read = self._message_value(
                self._descriptor, schema.layout, member.layout, label(member_name)
            )
            columns.append((member.column, read))
        elif isinstance(schema.layout, Struct):
            columns = self._columns(self._descriptor, schema.layout, layout, "")
        self._widest = max(self._widths.values(), default=1)
        # What is not wanted is read as well if it may be a problem; in order, so that the first
        # problem does not depend on what is wanted.
        self._reads = [
            (column if column in wanted else None, read)
            for column, (read, risky) in columns
            if risky or column in wanted
        ]

    def read(self, payload: bytes) -> tuple[dict[str, Any], str | None]:
        """(value by column, problem or None)."""
        message = self._message()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            return {}, f"malformed Protobuf: {error}"
        message.DiscardUnknownFields()
        self._problems = []
        if message.SerializePartialToString(deterministic=True) != payload:
            problem = lost_data(payload, self._descriptor)
            if problem is not None:
                self._problems.append(problem)
        if len(payload) * self._widest > MAX_VALUES and self._values(message) > MAX_VALUES:
            return {}, f"the message would be more than {MAX_VALUES} values"
        values = [(column, read(message)) for column, read in self._reads]
        shown = {column: value for column, value in values if column is not None}
        return shown, self._problems[0] if self._problems else None

    def _fail(self, path: str, what: str) -> Any:
        """NULL, and a problem."""
        self._problems.append(f"field {path!r} {what}")

    def _columns(
        self, descriptor: Descriptor, natural: Struct, layout: Struct, path: str
    ) -> list[tuple[str, Read]]:
        """How to read each field, and the column that takes it."""
        found = []
        for field, own in zip(descriptor.fields, natural.members, strict=True):
            member = layout.member(own.name)
            target = Missing("has no column") if member is None else member.layout
            where = f"{path}.{own.name}" if path else own.name
            column = own.column if member is None else member.column
            found.append((column, self._field(field, own.layout, target, where)))
        return found

    def _field(self, field: FieldDescriptor, natural: Layout, layout: Layout, path: str) -> Read:
        """Reads the field of a message; NULL where it is not present."""
        name = field.name
        if not accepts(layout, natural):
            return self._misfit(field, natural, layout, path), True
        if isinstance(natural, MapOf) and isinstance(layout, MapOf):
            entry = message_of(field).fields_by_name
            value, risky = self._value(entry["value"], natural.value, layout.value, f"{path}[]")
            key, risky_key = self._value(entry["key"], TEXT, TEXT, path)

            def pairs(message: Message) -> Any:
                found = getattr(message, name)
                keys = list(found)
                # The parser allows such keys in proto2, but gives no values for them.
                if bytes in map(type, keys):
                    return self._fail(path, "has a key that is not UTF-8")
                # Its order differs from process to process.
                keys.sort()
                return [(key(k), value(found[k])) for k in keys]

            return pairs, risky or risky_key
        if isinstance(natural, ListOf) and isinstance(layout, ListOf):
            item, risky = self._value(field, natural.item, layout.item, f"{path}[]")
            return lambda message: [item(v) for v in getattr(message, name)], risky
        convert, risky = self._value(field, natural, layout, path)
        if not field.has_presence:
            return lambda message: convert(getattr(message, name)), risky

        def optional(message: Message) -> Any:
            return convert(getattr(message, name)) if message.HasField(name) else None

        return optional, risky

    def _misfit(
        self, field: FieldDescriptor, natural: Layout, layout: Layout, path: str
    ) -> Convert:
        name, what = field.name, mismatch(layout, natural, self._version)

        def misfit(message: Message) -> None:
            if message.HasField(name) if field.has_presence else getattr(message, name):
                self._fail(path, what)

        return misfit

    def _value(self, field: FieldDescriptor, natural: Layout, layout: Layout, path: str) -> Read:
        """Reads one value of the field."""
        if field.type in MESSAGES:
            return self._message_value(message_of(field), natural, layout, path)
        if not accepts(layout, natural):
            what = mismatch(layout, natural, self._version)
            return lambda value: self._fail(path, what), True
        if field.type == FieldDescriptor.TYPE_ENUM:
            return self._enum(field, path)
        if field.type == FieldDescriptor.TYPE_STRING:
            return self._text(path), field_file(field) not in self._proto3
        if field.type == FieldDescriptor.TYPE_BOOL and layout == TEXT:
            return lambda value: "true" if value else "false", False
        if natural == NUMBER and layout == DOUBLE:
            return self._exact(path), True
        if isinstance(natural, Leaf) and natural.type == TEXT.type:
            return str, False
        return lambda value: value, False

    def _message_value(
        self, descriptor: Descriptor, natural: Layout, layout: Layout, path: str
    ) -> Read:
        if not accepts(layout, natural):
            what = mismatch(layout, natural, self._version)
            return lambda value: self._fail(path, what), True
        if not isinstance(natural, Struct) or not isinstance(layout, Struct):
            return self._json(path), True
        name = descriptor.full_name
        self._widths[name] = max(self._widths.get(name, 1), _width(natural))
        columns = self._columns(descriptor, natural, layout, path)
        reads = [(column, read) for column, (read, _) in columns]

        def members(message: Message) -> dict[str, Any]:
            return {c: value for c, read in reads if (value := read(message)) is not None}

        return members, any(risky for _, (_, risky) in columns)

    def _json(self, path: str) -> Convert:
        """ProtoJSON, with the definition's field names, sorted."""

        def text(message: Message) -> Any:
            try:
                value = json_format.MessageToDict(message, preserving_proto_field_name=True)
                found = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
                found.encode()
            except _NO_JSON as error:
                return self._fail(path, f"cannot be written as JSON: {error}")
            if len(found) > MAX_TEXT:
                return self._fail(path, "is too long as JSON")
            return found

        return text

    def _enum(self, field: FieldDescriptor, path: str) -> Read:
        enum, names = enum_of(field), dict[int, str]()
        for value in enum.values:
            names.setdefault(value.number, value.name)

        def name(number: int) -> str | None:
            found = names.get(number)
            if found is None:
                self._fail(path, f"is {number}, which its enum does not name")
            return found

        return name, not enum.is_closed

    def _text(self, path: str) -> Convert:
        def text(value: str | bytes) -> Any:
            # The parser gives bytes where proto2 allowed what is not UTF-8.
            return value if isinstance(value, str) else self._fail(path, "is not UTF-8")

        return text

    def _exact(self, path: str) -> Convert:
        def exact(value: int) -> Any:
            found = float(value)
            if int(found) != value:
                return self._fail(path, "is out of the range of its column")
            return found

        return exact

    def _values(self, message: Message) -> int:
        """About how many values the columns of ``message`` would have, as far as `MAX_VALUES`."""
        total, todo = 0, [message]
        while todo and total <= MAX_VALUES:
            for field, value in todo.pop().ListFields():
                if not field.is_repeated:
                    todo += [value] if field.type in MESSAGES else []
                    continue
                item = field.message_type
                if is_map(field):
                    item = message_of(field).fields_by_name["value"].message_type
                    value = [value[key] for key in value if type(key) is not bytes]
                total += len(value) * (self._widths.get(item.full_name, 1) if item else 1)
                if item is not None and total <= MAX_VALUES:
                    todo += value
        return total


def _width(layout: Layout) -> int:
    """How many values a struct has in one row; more in its lists and maps."""
    if isinstance(layout, Struct):
        return 1 + sum(_width(member.layout) for member in layout.members)
    return 1
