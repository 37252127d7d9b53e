"""What of a payload its parsed message does not reproduce: a second reading of the wire format.

Slow, and needed only where a message does not serialize to its payload again. Sources:
protobuf.dev "Encoding", and "Proto limits" for what a parser drops.
"""

from collections.abc import Hashable

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from reader.payload.protobuf.schema import is_map, message_of
from reader.wire import read_varint

_VARINT, _I64, _LEN, _GROUP, _END_GROUP, _I32 = range(6)
_F = FieldDescriptor
_WIRE = {
    _F.TYPE_DOUBLE: _I64,
    _F.TYPE_FIXED64: _I64,
    _F.TYPE_SFIXED64: _I64,
    _F.TYPE_FLOAT: _I32,
    _F.TYPE_FIXED32: _I32,
    _F.TYPE_SFIXED32: _I32,
    _F.TYPE_STRING: _LEN,
    _F.TYPE_BYTES: _LEN,
    _F.TYPE_MESSAGE: _LEN,
    _F.TYPE_GROUP: _GROUP,
}
_SIGNED_32 = (_F.TYPE_INT32, _F.TYPE_ENUM)
_UNSIGNED_32 = (_F.TYPE_UINT32, _F.TYPE_SINT32)


class _LostError(Exception):
    """Something is not reproduced; the argument says what."""


def lost_data(payload: bytes, descriptor: Descriptor) -> str | None:
    """The first thing in ``payload``, which parses as ``descriptor``, that is lost; None: nothing.

    That is an unknown field or enum number, a field or map key that occurs twice, a number of more
    bits than its field. Order, packing, explicit defaults and overlong varints do not count.
    """
    try:
        _Walk(payload).message(0, len(payload), descriptor)
    except _LostError as found:
        return str(found)
    except IndexError:
        return f"not a {descriptor.full_name}: the payload ends too early"
    return None


class _Walk:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def message(
        self, at: int, end: int, descriptor: Descriptor, group: int = 0
    ) -> tuple[int, Hashable]:
        """Read to ``end``, or the end of ``group``: (position, value of field 1, for map keys)."""
        seen: set[Hashable] = set()
        first: Hashable = None
        while at < end:
            tag, at = read_varint(self.data, at)
            number, wire = tag >> 3, tag & 7
            if wire == _END_GROUP and number == group:
                return at, first
            field = descriptor.fields_by_number.get(number)
            if field is None:
                raise _LostError(f"unknown field {number} of {descriptor.full_name}")
            own = _WIRE.get(field.type, _VARINT)
            if wire == _LEN and own not in (_LEN, _GROUP) and field.is_repeated:
                size, at = read_varint(self.data, at)
                stop = at + size
                while at < stop:
                    _, at = self.value(field, own, at, end)
                continue
            if wire != own:
                raise _LostError(f"field {field.full_name!r} is written as another type")
            value, at = self.value(field, own, at, end)
            mark: Hashable = field.number
            if is_map(field):
                mark = (field.number, value)
            elif field.is_repeated:
                continue
            elif field.containing_oneof is not None:
                mark = field.containing_oneof.name
            if mark in seen:
                raise _LostError(f"field {field.full_name!r} is there more than once")
            seen.add(mark)
            if number == 1:
                # A key that is not written is the default.
                first = value or None
        return at, first

    def value(self, field: FieldDescriptor, wire: int, at: int, end: int) -> tuple[Hashable, int]:
        """(value, position after it); of a message the value of its field 1."""
        if wire == _VARINT:
            value, at = read_varint(self.data, at)
            return self.checked(field, value), at
        if wire == _GROUP:
            at, first = self.message(at, end, message_of(field), field.number)
            return first, at
        size = 8 if wire == _I64 else 4
        if wire == _LEN:
            size, at = read_varint(self.data, at)
        stop = at + size
        if stop > end:
            raise IndexError
        if field.type == _F.TYPE_MESSAGE:
            _, first = self.message(at, stop, message_of(field))
            return first, stop
        raw = self.data[at:stop]
        return raw if wire == _LEN else int.from_bytes(raw, "little"), stop

    def checked(self, field: FieldDescriptor, value: int) -> int:
        signed = value - (1 << 64) if value >> 63 else value
        good = value < 1 << 64
        if field.type in _SIGNED_32:
            good = -(1 << 31) <= signed < 1 << 31
        elif field.type in _UNSIGNED_32:
            good = value < 1 << 32
        elif field.type == _F.TYPE_BOOL:
            good = value < 2
        if not good:
            raise _LostError(f"field {field.full_name!r} has more bits than its type")
        enum = field.enum_type
        if enum is not None and enum.is_closed and signed not in enum.values_by_number:
            raise _LostError(f"field {field.full_name!r} is {signed}, which its enum does not name")
        return value
