"""Avro values that become text: recursive records, wide decimals, UUIDs.

The kernel has read these bytes already, so nothing is checked again, and its bound on nesting holds
here. JSON is written as Jackson writes it: bytes in base64, enums by name, no union wrapper.
"""

import base64
import json
import math
import struct
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union


def uuid_text(value: bytes) -> bytes:
    return str(uuid.UUID(bytes=value)).encode()


def decimal_text(value: bytes, scale: int) -> bytes:
    """Two's complement big-endian ``value`` · 10^-scale, without an exponent."""
    return number_text(int.from_bytes(value, "big", signed=True), scale).encode()


def number_text(unscaled: int, scale: int) -> str:
    sign = "-" if unscaled < 0 else ""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


def to_json(value: bytes, node: Node, records: Mapping[str, Record]) -> bytes:
    """The JSON text of one datum that the kernel has found well-formed."""
    return _Reader(value, records).text(node).encode("utf-8")


def text_bytes(node: Node) -> int:
    """The most that the text of a value takes, without items, recursive records and strings."""
    match node:
        case Record():
            return 2 + sum(
                len(_quoted(name)) + 2 + text_bytes(child) for name, child in node.fields
            )
        case Union():
            return max((text_bytes(branch) for branch in node.branches), default=0)
        case Array() | Map():
            return 2
        case Enum():
            return max((len(_quoted(symbol)) for symbol in node.symbols), default=0)
        case Fixed() | Primitive():
            return 40 + node.scale
        case Ref():
            return 0


@dataclass(slots=True)
class _Items:
    """The rest of an array or map: ``left`` items of the block."""

    item: Node
    keys: bool
    left: int = 0
    comma: str = ""


class _Reader:
    """Reads without recursion: records within records may be nested deeper than Python's stack."""

    def __init__(self, data: bytes, records: Mapping[str, Record]) -> None:
        self.data, self.records, self.at = data, records, 0

    def long(self) -> int:
        shift = value = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self, root: Node) -> str:
        parts: list[str] = []
        todo: list[Node | _Items | str] = [root]
        while todo:
            match todo.pop():
                case str() as text:
                    parts.append(text)
                case Ref() as node:
                    todo.append(self.records[node.name])
                case Record() as node:
                    todo.append("}")
                    for i in range(len(node.fields) - 1, -1, -1):
                        name, child = node.fields[i]
                        todo += [child, f"{',' if i else ''}{_quoted(name)}:"]
                    todo.append("{")
                case Union() as node:
                    todo.append(node.branches[self.long()])
                case Array() as node:
                    parts.append("[")
                    todo += ["]", _Items(node.items, keys=False)]
                case Map() as node:
                    parts.append("{")
                    todo += ["}", _Items(node.values, keys=True)]
                case _Items() as items:
                    self.next_item(items, parts, todo)
                case Enum() as node:
                    parts.append(_quoted(node.symbols[self.long()]))
                case Fixed() as node:
                    raw = self.take(node.size)
                    uuid = node.logical == "uuid"
                    parts.append(_quoted(uuid_text(raw).decode()) if uuid else _binary(raw, node))
                case Primitive() as node:
                    parts.append(self.primitive(node))
        return "".join(parts)

    def next_item(self, items: _Items, parts: list[str], todo: list[Node | _Items | str]) -> None:
        if not items.left:
            items.left = self.long()
            if items.left < 0:
                items.left = -items.left
                self.long()
            if not items.left:
                return
        items.left -= 1
        parts.append(items.comma)
        items.comma = ","
        if items.keys:
            parts.append(_quoted(self.take(self.long()).decode()) + ":")
        todo += [items, items.item]

    def primitive(self, node: Primitive) -> str:
        match node.kind:
            case "null":
                return "null"
            case "boolean":
                return "true" if self.take(1)[0] else "false"
            case "int" | "long":
                return str(self.long())
            case "float":
                return _double(struct.unpack("<f", self.take(4))[0])
            case "double":
                return _double(struct.unpack("<d", self.take(8))[0])
            case "string":
                return _quoted(self.take(self.long()).decode())
        return _binary(self.take(self.long()), node)


def _binary(raw: bytes, node: Primitive | Fixed) -> str:
    # Python refuses to write integers of more than 4300 digits.
    if node.logical == "decimal" and 0 < len(raw) < 1700:
        return decimal_text(raw, node.scale).decode()
    return _quoted(base64.b64encode(raw).decode())


def _double(value: float) -> str:
    # Jackson writes as strings the values that JSON numbers cannot hold.
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
