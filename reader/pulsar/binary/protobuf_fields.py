"""Protocol Buffers' wire format, as far as Pulsar's commands need it. No I/O."""

from __future__ import annotations

from typing import Literal

from reader.errors import CorruptError

__all__ = ["Fields", "encoded", "signed", "varint"]

_WORD = 1 << 64
Value = int | str | bytes | None


def varint(value: int) -> bytes:
    """Of a number of 64 bits; a negative one as its two's complement."""
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


def signed(value: int) -> int:
    """A number of 64 bits that is read as unsigned, as Java does it: 2^64 - 1 is -1."""
    return value - _WORD if value >= _WORD >> 1 else value


class Fields:
    """The fields of one message. Raises CorruptError for what is no message."""

    def __init__(self, data: bytes) -> None:
        self._found: dict[int, list[int | bytes]] = {}
        at = 0
        while at < len(data):
            tag, at = _read_varint(data, at)
            number = tag >> 3
            match tag & 7:
                case 0:
                    value, at = _read_varint(data, at)
                    self._found.setdefault(number, []).append(value)
                case 1:
                    at += 8
                case 2:
                    size, at = _read_varint(data, at)
                    self._found.setdefault(number, []).append(data[at : at + size])
                    at += size
                case 5:
                    at += 4
                case _:
                    raise CorruptError("a broker's command is not protobuf")
            if at > len(data):
                raise CorruptError("a broker's command ends too early")

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
        return Fields(self.data(field) or b"")

    def messages(self, field: int) -> list[Fields]:
        return [Fields(one) for one in self._found.get(field, ()) if isinstance(one, bytes)]

    def has(self, field: int) -> bool:
        return field in self._found

    def _last(self, field: int) -> int | bytes | Literal[None]:
        found = self._found.get(field)
        return found[-1] if found else None


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise CorruptError("a broker's command ends too early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value % _WORD, at
        shift += 7
        if shift > 63:
            raise CorruptError("a broker's command has a number of more than 64 bits")
