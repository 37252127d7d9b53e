"""One Protobuf payload to column values.

Unknown fields are dropped first; a message that then serializes to its payload again has lost
nothing. Of any other, `unknown_fields` says what is lost.
"""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

from reader.payload.budget import UNBOUNDED, OutputBudget, json_text_bytes
from reader.payload.column_types import (
    DOUBLE,
    NUMBER,
    TEXT,
    UNSIGNED,
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Missing,
    Struct,
    accepts,
    arrow_type,
    inner_path,
    label,
    mismatch,
)
from reader.payload.protobuf.schema import MESSAGES, ProtobufSchema, enum_of, field_file, message_of
from reader.payload.protobuf.unknown_fields import lost_data
from reader.payload.protobuf.wire_size import IN_PYTHON, VALUE_BYTES, WireSizes
from reader.payload.remembered.conversions import exact_number

# An enum's name takes more bytes as text than its number does in a message.
MAX_TEXT = 1 << 26
_TOGETHER = 1 << 16
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
        budget: OutputBudget = UNBOUNDED,
    ) -> None:
        self._version = version
        self._budget = budget
        self._made = 0
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
        self._sizes = WireSizes(self._descriptor, self._widths)
        # What is not wanted is read as well if it may be a problem; in order, so that the first
        # problem does not depend on what is wanted.
        self._reads = [
            (column if column in wanted else None, read)
            for column, (read, risky) in columns
            if risky or column in wanted
        ]

    def read(self, payload: bytes) -> tuple[dict[str, Any] | None, str | None, int]:
        """Return (values by column, problem, about how many bytes the values take).

        The values are None if nothing could be read, and the problem is None if there is none.
        """
        most = self._budget.message // 2
        if len(payload) > most:  # it is parsed, serialized, and text takes up to four times more
            return None, f"more than {most} bytes", 0
        limit = min(self._budget.of_message(len(payload)), self._budget.message // IN_PYTHON)
        if self._sizes.exceeds(payload, limit):
            return None, f"more than {limit} bytes of values", 0
        message = self._message()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            return None, f"malformed Protobuf: {error}", 0
        message.DiscardUnknownFields()
        self._problems = []
        if message.SerializePartialToString(deterministic=True) != payload:
            problem = lost_data(payload, self._descriptor)
            if problem is not None:
                self._problems.append(problem)
        self._made = len(self._reads)
        values = [(column, read(message)) for column, read in self._reads]
        shown = {column: value for column, value in values if column is not None}
        weight = IN_PYTHON * VALUE_BYTES * self._made + 2 * len(payload)
        return shown, self._problems[0] if self._problems else None, weight

    def _fail(self, path: str, what: str) -> Any:
        """NULL, and a problem."""
        self._problems.append(f"field {path!r} {what}")

    def _columns(
        self, descriptor: Descriptor, natural: Struct, layout: Struct, path: str
    ) -> list[tuple[str, Read]]:
        """How to read each field, and the column that takes it."""
        found = []
        members = layout.by_name()
        for field, own in zip(descriptor.fields, natural.members, strict=True):
            member = members.get(own.name)
            target = Missing("has no column") if member is None else member.layout
            where = inner_path(path, own.name)
            column = own.column if member is None else member.column
            found.append((column, self._field(field, own.layout, target, where)))
        return found

    def _field(self, field: FieldDescriptor, natural: Layout, layout: Layout, path: str) -> Read:
        """Reads the field of a message; NULL where it is not present."""
        name = field.name
        if not _accepts(layout, natural):
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
                self._made += 2 * len(keys)
                return [(key(k), value(found[k])) for k in keys]

            return pairs, risky or risky_key
        if isinstance(natural, ListOf) and isinstance(layout, ListOf):
            item, risky = self._value(field, natural.item, layout.item, f"{path}[]")

            def items(message: Message) -> Any:
                found = getattr(message, name)
                self._made += len(found)
                return [item(v) for v in found]

            return items, risky
        convert, risky = self._value(field, natural, layout, path)
        if not field.has_presence:
            return lambda message: convert(getattr(message, name)), risky

        def optional(message: Message) -> Any:
            return convert(getattr(message, name)) if message.HasField(name) else None

        return optional, risky

    def _misfit(
        self, field: FieldDescriptor, natural: Layout, layout: Layout, path: str
    ) -> Convert:
        """Reads a field whose values its column does not hold.

        Without presence, a field that is not on the wire has a value: 0, "", false or no items.
        NULL in the column would be wrong without a problem; a field without a column shows nothing.
        """
        name, what = field.name, mismatch(layout, natural, self._version)
        shown = not pa.types.is_null(arrow_type(layout))

        def misfit(message: Message) -> None:
            if field.has_presence:
                lost = message.HasField(name)
            else:
                lost = shown or bool(getattr(message, name))
            if lost:
                self._fail(path, what)

        return misfit

    def _value(self, field: FieldDescriptor, natural: Layout, layout: Layout, path: str) -> Read:
        """Reads one value of the field."""
        if field.type in MESSAGES:
            return self._message_value(message_of(field), natural, layout, path)
        if not _accepts(layout, natural):
            what = mismatch(layout, natural, self._version)
            return lambda value: self._fail(path, what), True
        if field.type == FieldDescriptor.TYPE_ENUM:
            return self._enum(field, path)
        if field.type == FieldDescriptor.TYPE_STRING:
            return self._text(path), field_file(field) not in self._proto3
        if field.type == FieldDescriptor.TYPE_BOOL and layout == TEXT:
            return lambda value: "true" if value else "false", False
        if natural != layout and isinstance(layout, Leaf):
            return self._exact(layout, path), True
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
        size = len(reads) + 2

        def members(message: Message) -> dict[str, Any]:
            self._made += size
            return {c: value for c, read in reads if (value := read(message)) is not None}

        return members, any(risky for _, (_, risky) in columns)

    def _json(self, path: str) -> Convert:
        """ProtoJSON, with the definition's field names, sorted."""

        def text(message: Message) -> Any:
            try:
                value = json_format.MessageToDict(message, preserving_proto_field_name=True)
                if 24 * message.ByteSize() > 2 * MAX_TEXT and _text_bytes(value) > 2 * MAX_TEXT:
                    return self._fail(path, "is too long as JSON")
                found = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
                found.isascii() or found.encode()
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

    def _exact(self, layout: Leaf, path: str) -> Convert:
        """A number of another kind than its column."""

        def exact(value: int | float) -> Any:
            found = exact_number(value, layout)
            if found is None:
                return self._fail(path, "is out of the range of its column")
            return found

        return exact


def _accepts(layout: Layout, natural: Layout) -> bool:
    """Return whether the column holds values of a field: all, or those that it holds exactly."""
    return accepts(layout, natural) or (layout == UNSIGNED and natural in (NUMBER, DOUBLE))


def _width(layout: Layout) -> int:
    """How many values a struct has in one row; more in its lists and maps."""
    if isinstance(layout, Struct):
        return 1 + sum(_width(member.layout) for member in layout.members)
    return 1


def _text_bytes(value: object) -> int:
    """About what the strings of ``value`` take in Python as one JSON text."""
    return json_text_bytes(_strings(value))


def _strings(value: object) -> Iterator[bytes]:
    """All keys and strings in ``value`` as UTF-8, short ones together."""
    todo: list[object] = [value]
    some, size = list[str](), 0
    while todo:
        match todo.pop():
            case str() as text:
                some.append(text)
                size += len(text)
                if size > _TOGETHER:
                    yield "".join(some).encode()
                    some, size = [], 0
            case dict() as members:
                todo += members.values()
                todo += members
            case list() as items:
                todo += items
    yield "".join(some).encode()
