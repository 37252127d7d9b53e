"""Avro values that become text: recursive records, wide decimals, UUIDs.

The kernel has read these bytes already, so nothing is checked again, and its bound on nesting holds
here. JSON is written as Jackson writes it: bytes in base64, enums by name, no union wrapper.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import uuid
from collections.abc import Mapping

from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union

__all__ = ["decimal_text", "number_text", "to_json", "uuid_text"]


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


class _Reader:
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

    def text(self, node: Node) -> str:
        match node:
            case Ref():
                return self.text(self.records[node.name])
            case Record():
                members = [f"{_quoted(name)}:{self.text(child)}" for name, child in node.fields]
                return "{" + ",".join(members) + "}"
            case Union():
                return self.text(node.branches[self.long()])
            case Array():
                return "[" + ",".join(self.items(node.items, keys=False)) + "]"
            case Map():
                return "{" + ",".join(self.items(node.values, keys=True)) + "}"
            case Enum():
                return _quoted(node.symbols[self.long()])
            case Fixed():
                raw = self.take(node.size)
                if node.logical == "uuid":
                    return _quoted(uuid_text(raw).decode())
                return _binary(raw, node)
            case Primitive():
                return self.primitive(node)

    def items(self, node: Node, *, keys: bool) -> list[str]:
        found = []
        while count := self.long():
            if count < 0:
                count = -count
                self.long()
            for _ in range(count):
                key = _quoted(self.take(self.long()).decode()) + ":" if keys else ""
                found.append(key + self.text(node))
        return found

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
