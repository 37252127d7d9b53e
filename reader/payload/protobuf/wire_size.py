"""How much a Protobuf payload would become, before it is parsed.

A message within a message takes two bytes, but in Google's parser a place for each of its fields,
and in a column perhaps a value of each; an enum's name takes more bytes than its number.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from reader.payload.protobuf.schema import MESSAGES, enum_of, is_entry, message_of
from reader.wire import read_varint

# What a value takes in a column.
VALUE_BYTES = 16
# It takes so many times more in Python. What the parser takes is there once.
IN_PYTHON = 4
_VARINT, _I64, _LEN, _GROUP, _END_GROUP, _I32 = range(6)
_F = FieldDescriptor
_TEXTS = (_F.TYPE_STRING, _F.TYPE_BYTES)
_FIXED = {
    _F.TYPE_DOUBLE: 8, _F.TYPE_FIXED64: 8, _F.TYPE_SFIXED64: 8,
    _F.TYPE_FLOAT: 4, _F.TYPE_FIXED32: 4, _F.TYPE_SFIXED32: 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Field:
    """``size``: bytes each value takes; ``packed``: fewest bytes of one in a list, 0: in none."""

    size: int
    packed: int
    message: Descriptor | None


class WireSizes:
    """``widths``: by full name, how many values a message has in a row; 1 for any other.

    Whatever has a column, all of a payload is parsed.
    """

    def __init__(self, descriptor: Descriptor, widths: Mapping[str, int]) -> None:
        self._root = descriptor
        self._widths = widths
        self._parsed: dict[str, int] = {}
        self._fields: dict[str, dict[int, _Field]] = {}
        self._most = VALUE_BYTES
        todo, known = [descriptor], {descriptor.full_name}
        while todo:
            for field in self._of(todo.pop()).values():
                # A message takes two bytes, a value one.
                each = field.size // 2 if field.message is not None else field.size
                self._most = max(self._most, each)
                if field.message is not None and field.message.full_name not in known:
                    known.add(field.message.full_name)
                    todo.append(field.message)

    def exceeds(self, payload: bytes, limit: int) -> bool:
        """Whether the values of ``payload`` take more bytes than ``limit``, besides its own.

        Of one that is not a message, those before the error.
        """
        if len(payload) * self._most <= limit:
            return False
        try:
            return self._size(payload, limit) > limit
        except IndexError:
            return False

    def _size(self, data: bytes, limit: int) -> int:
        total, at = 0, 0
        # Fields, end, and number of the group, of each message that is being read.
        stack: list[tuple[dict[int, _Field], int, int]] = [(self._of(self._root), len(data), 0)]
        while stack and total <= limit:
            fields, end, group = stack[-1]
            if at >= end:
                stack.pop()
                continue
            tag, at = read_varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == _END_GROUP:
                if number != group:
                    break
                stack.pop()
                continue
            field = fields.get(number)
            inner = field.message if field is not None else None
            if field is not None and wire != _LEN:
                total += field.size
            if wire == _VARINT:
                _, at = read_varint(data, at)
            elif wire == _GROUP:
                stack.append((self._of(inner) if inner is not None else {}, end, number))
            elif wire == _LEN:
                size, at = read_varint(data, at)
                if size > end - at:
                    break
                if field is not None:
                    count = size // field.packed if field.packed else 1
                    total += field.size * count
                if inner is not None:
                    stack.append((self._of(inner), at + size, 0))
                else:
                    at += size
            elif wire in (_I64, _I32):
                at += 8 if wire == _I64 else 4
            else:
                break
        return total

    def _of(self, descriptor: Descriptor) -> dict[int, _Field]:
        found = self._fields.get(descriptor.full_name)
        if found is None:
            entry = is_entry(descriptor)
            found = {f.number: self._field(f, of_entry=entry) for f in descriptor.fields}
            self._fields[descriptor.full_name] = found
        return found

    def _message(self, message: Descriptor) -> int:
        """Bytes of one without any field; of a map's entry as well those of its value."""
        name = message.full_name
        if name not in self._parsed:
            self._parsed[name] = _parsed_bytes(message)
        size = max(VALUE_BYTES * self._widths.get(name, 1), self._parsed[name] // IN_PYTHON)
        if not is_entry(message):
            return size
        value = message.fields_by_name["value"]
        inner = self._message(message_of(value)) if value.type in MESSAGES else 0
        return size + VALUE_BYTES + inner

    def _field(self, field: FieldDescriptor, *, of_entry: bool) -> _Field:
        # In a text, the name stands with each value.
        size = VALUE_BYTES + len(field.name)
        if field.type in MESSAGES:
            message = message_of(field)
            # A map's value is counted with its entry: one that is not written is made as well.
            return _Field(size if of_entry else size + self._message(message), 0, message)
        if field.type == _F.TYPE_ENUM:
            size += max((len(value.name) for value in enum_of(field).values), default=0)
        if field.type in _TEXTS or not field.is_repeated:
            return _Field(size, 0, None)
        return _Field(size, _FIXED.get(field.type, 1), None)


def _parsed_bytes(descriptor: Descriptor) -> int:
    """What a message without any field takes in the parser (upb): all places, one for a oneof."""
    places: dict[str, int] = {}
    for field in descriptor.fields:
        oneof = field.containing_oneof
        place = field.name if oneof is None else oneof.name
        size = 16 if field.type in _TEXTS and not field.is_repeated else 8
        places[place] = max(size, places.get(place, 0))
    return 16 + sum(places.values())
