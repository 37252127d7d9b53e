"""Single Avro data from JSON: of columns of JSON text, and the defaults of fields.

The inverse of ``reader.payload.avro.text``. JSON has no wrapper for a union: a value goes to
the first branch that takes it, a default as well (Avro 1.12, "Unions").
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import uuid
from collections.abc import Mapping
from typing import Any

from reader.encode.payload.arrow_columns.decimals import signed_bytes
from reader.encode.payload.arrow_columns.json_column import Literal, parsed_object
from reader.errors import ConfigurationError
from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.json.numbers import exact_unscaled

__all__ = ["AvroDatum", "zigzag"]

_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def zigzag(value: int) -> bytes:
    """A varint, as Avro writes int and long."""
    word = (value << 1) ^ (value >> 63)
    out = bytearray()
    while word > 0x7F:
        out.append(word & 0x7F | 0x80)
        word >>= 7
    return bytes([*out, word])


class AvroDatum:
    """``records``: what a `Ref` of the schema names."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records

    def of_text(self, node: Node, text: str) -> bytes:
        """Of JSON text, as docs/types.md describes it. Raises ValueError."""
        out = bytearray()
        self._write(out, node, parsed_object(text), default=False)
        return bytes(out)

    def default(self, node: Node, value: Any, path: str) -> bytes:
        """Of a field's default, as the schema has it. Raises ConfigurationError."""
        out = bytearray()
        try:
            self._write(out, node, value, default=True)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"field {path!r} has no column, and its default {json.dumps(value)[:80]} is not "
                f"of its type: {error}",
                hint=f"add a column {path!r}",
                context={"column": path},
            ) from error
        return bytes(out)

    def _write(self, out: bytearray, node: Node, value: Any, *, default: bool) -> None:
        match node:
            case Ref():
                self._write(out, self._records[node.name], value, default=default)
            case Union():
                self._union(out, node, value, default=default)
            case Record():
                _need(isinstance(value, dict), "a record is an object", value)
                names = {name for name, _ in node.fields}
                _need(value.keys() <= names, "a record has only its fields", value)
                for name, field in node.fields:
                    some = node.defaults.get(name) if default and name not in value else None
                    self._write(out, field, value.get(name, some), default=default)
            case Array():
                _need(isinstance(value, list), "an array is a list", value)
                out += zigzag(len(value)) if value else b""
                for item in value:
                    self._write(out, node.items, item, default=default)
                out += b"\0"
            case Map():
                _need(isinstance(value, dict), "a map is an object", value)
                out += zigzag(len(value)) if value else b""
                for key, item in value.items():
                    out += _sized(key.encode())
                    self._write(out, node.values, item, default=default)
                out += b"\0"
            case Enum():
                _need(value in node.symbols, "an enum has such symbols only", value)
                out += zigzag(node.symbols.index(value))
            case Fixed():
                raw = _fixed(node, value, default=default)
                _need(len(raw) == node.size, f"fixed takes {node.size} bytes", value)
                out += raw
            case Primitive():
                out += _primitive(node, value, default=default)

    def _union(self, out: bytearray, node: Union, value: Any, *, default: bool) -> None:
        for i, branch in enumerate(node.branches):
            attempt = bytearray()
            try:
                self._write(attempt, branch, value, default=default)
            except ValueError:
                continue
            out += zigzag(i) + attempt
            return
        raise ValueError(f"no branch of a union takes {_quoted(value)}")


def _primitive(node: Primitive, value: Any, *, default: bool) -> bytes:
    match node.kind:
        case "null":
            _need(value is None, "null is null", value)
            return b""
        case "boolean":
            _need(isinstance(value, bool), "a boolean is true or false", value)
            return b"\1" if value else b"\0"
        case "int" | "long":
            _need(type(value) is int, f"{node.kind} is an integer", value)
            limit = 1 << (31 if node.kind == "int" else 63)
            _need(-limit <= value < limit, f"{node.kind} has a range", value)
            return zigzag(value)
        case "float" | "double":
            return _real(node.kind, value)
        case "string":
            _need(type(value) is str, "a string is a string", value)
            return _sized(value.encode())
    if node.logical == "decimal" and type(value) in (int, Literal):
        number = _scaled(value, node)
        return _sized(signed_bytes(number))
    return _sized(_raw(value, default=default))


def _real(kind: str, value: Any) -> bytes:
    if type(value) is str:
        _need(value in _SPECIAL, f"{kind} is a number", value)
    number = type(value) in (int, float, Literal)
    _need(number or type(value) is str, f"{kind} is a number", value)
    found = float(value) if number else _SPECIAL[value]
    try:
        return struct.pack("<f" if kind == "float" else "<d", found)
    except OverflowError as error:
        raise ValueError(f"{kind} has a range, which {_quoted(value)} is out of") from error


def _fixed(node: Fixed, value: Any, *, default: bool) -> bytes:
    if node.logical == "decimal" and type(value) in (int, Literal):
        number = _scaled(value, node)
        if len(signed_bytes(number)) > node.size:
            raise ValueError(f"fixed takes {node.size} bytes, not {_quoted(value)}")
        return number.to_bytes(node.size, "big", signed=True)
    if node.logical == "uuid" and not default:
        _need(type(value) is str, "a UUID is a string", value)
        return uuid.UUID(value).bytes
    return _raw(value, default=default)


def _raw(value: Any, *, default: bool) -> bytes:
    """Bytes: base64 in text, one character a byte in a default."""
    _need(type(value) is str, "bytes are a string", value)
    if default:
        return str(value).encode("latin-1")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"bytes are base64, which {_quoted(value)} is not") from error


def _scaled(value: int | Literal, node: Primitive | Fixed) -> int:
    number = exact_unscaled(str(value), node.precision, node.scale)
    if number is None:
        raise ValueError(f"a decimal({node.precision},{node.scale}) is not {_quoted(value)}")
    return number


def _sized(raw: bytes) -> bytes:
    return zigzag(len(raw)) + raw


def _need(good: bool, what: str, value: Any) -> None:
    if not good:
        raise ValueError(f"{what}, not {_quoted(value)}")


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
