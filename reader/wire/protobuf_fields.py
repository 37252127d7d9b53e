"""Protocol Buffers' wire format, without a definition of messages. No I/O."""

from __future__ import annotations

from collections.abc import Iterator

from reader.errors import CorruptError

_WORD = 1 << 64
_ONE_BYTE = [bytes((value,)) for value in range(0x80)]
Value = int | str | bytes | None


def varint(value: int) -> bytes:
    """Of a number of 64 bits; a negative one as its two's complement."""
    if 0 <= value < 0x80:  # most of them
        return _ONE_BYTE[value]
    value %= _WORD
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encoded(*fields: tuple[int, Value]) -> bytes:
    """A message of (field number, value) in the order given, without those that are None."""
    out = bytearray()
    for number, value in fields:
        match value:
            case None:
                continue
            case int():
                out += varint(number << 3) + varint(value)
            case _:
                data = value.encode() if isinstance(value, str) else value
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """(value of up to 70 bits, position after it).

    Raises IndexError where it is none: it is cut off, or has more than ten bytes.
    """
    if (value := data[at]) < 0x80:  # most of them
        return value, at + 1
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError


def fields(data: bytes, name: str) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) of each varint, unsigned, or field with a length, in their order.

    Raises CorruptError, which says ``name``, where ``data`` is no message. Groups are refused.
    """
    at, end = 0, len(data)
    try:
        while at < end:
            tag, at = read_varint(data, at)
            tag %= _WORD
            value: int | bytes | None = None
            match tag & 7:
                case 0:
                    number, at = read_varint(data, at)
                    value = number % _WORD
                case 1:
                    at += 8
                case 2:
                    size, at = read_varint(data, at)
                    size %= _WORD
                    value = data[at : at + size]
                    at += size
                case 5:
                    at += 4
                case _:
                    raise IndexError
            if at > end or not 8 <= tag < 1 << 32:
                raise IndexError
            if value is not None:
                yield tag >> 3, value
    except IndexError:
        raise CorruptError(f"{name} is not protobuf, or ends too early") from None


class Fields:
    """The fields of one message. Raises CorruptError, which says ``name``, for what is none."""

    def __init__(self, data: bytes, name: str) -> None:
        self._name = name
        self._found: dict[int, list[int | bytes]] = {}
        for number, value in fields(data, name):
            self._found.setdefault(number, []).append(value)

    def number(self, field: int, default: int = 0) -> int:
        """The last value of a field, unsigned."""
        value = self._last(field)
        return value if isinstance(value, int) else default

    def flag(self, field: int) -> bool:
        return bool(self.number(field))

    def data(self, field: int) -> bytes | None:
        value = self._last(field)
        return value if isinstance(value, bytes) else None

    def text(self, field: int) -> str:
        """ "" where there is none; what is not UTF-8 is replaced."""
        return (self.data(field) or b"").decode(errors="replace")

    def message(self, field: int) -> Fields:
        """Of a message within; without fields where there is none."""
        return Fields(self.data(field) or b"", self._name)

    def messages(self, field: int) -> list[Fields]:
        found = self._found.get(field, ())
        return [Fields(one, self._name) for one in found if isinstance(one, bytes)]

    def has(self, field: int) -> bool:
        return field in self._found

    def _last(self, field: int) -> int | bytes | None:
        found = self._found.get(field)
        return found[-1] if found else None
