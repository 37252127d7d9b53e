"""Single Avro data from JSON: of columns of JSON text, and the defaults of fields.

The inverse of ``reader.payload.avro.text``. JSON has no wrapper for a union: a value goes to
the first branch that takes it, a default as well (Avro 1.12, "Unions").
"""

import base64
import binascii
import json
import math
import re
import struct
import uuid
from collections.abc import Mapping
from typing import Any

from reader.encode.payload.arrow_columns.decimals import signed_bytes
from reader.encode.payload.arrow_columns.json_column import Literal, parsed_object
from reader.errors import ConfigurationError
from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.json.numbers import exact_double, exact_unscaled
from reader.wire import varint

_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_DAY = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def zigzag(value: int) -> bytes:
    """As Avro writes int and long, which have 64 bits at most."""
    return varint((value << 1) ^ (value >> 63))


class AvroDatum:
    """``records``: what a `Ref` of the schema names."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self._records = records

    def of_text(self, node: Node, text: str) -> bytes:
        """Of JSON text, as docs/types.md describes it. Raises ValueError."""
        return _Writer(self._records, default=False).datum(node, parsed_object(text))

    def default(self, node: Node, value: Any, path: str) -> bytes:
        """Of a field's default, as the schema has it. Raises ConfigurationError."""
        try:
            return _Writer(self._records, default=True).datum(node, value)
        except (ValueError, RecursionError) as error:
            raise no_default(value, path, error) from error


def no_default(value: Any, path: str, error: Exception) -> ConfigurationError:
    """Return the error of a field without a column whose default is not of its type."""
    return ConfigurationError(
        f"field {path!r} has no column, and its default {json.dumps(value)[:80]} is not "
        f"of its type: {error}",
        hint=f"add a column {path!r}",
        context={"column": path},
    )


class _Writer:
    """Of one value from JSON. Two calls a level: records may be nested as deep as readers allow."""

    def __init__(self, records: Mapping[str, Record], *, default: bool) -> None:
        self._records = records
        self._default = default
        # Of unions and the objects and lists in them, b"": none takes it. Tried twice at each level
        # it would be 2^n times.
        self._chosen: dict[tuple[int, int], bytes] = {}

    def datum(self, node: Node, value: Any) -> bytes:
        out = bytearray()
        self._write(out, node, value)
        return bytes(out)

    def _write(self, out: bytearray, node: Node, value: Any) -> None:
        if isinstance(node, Ref):
            node = self._records[node.name]
        match node:
            case Union():
                place = (id(node), id(value)) if isinstance(value, dict | list) else None
                found = self._chosen.get(place) if place else None
                for i, branch in enumerate(node.branches if found is None else ()):
                    attempt = bytearray(zigzag(i))
                    try:
                        self._write(attempt, branch, value)
                    except ValueError:
                        continue
                    found = bytes(attempt)
                    break
                if place:
                    self._chosen[place] = found or b""
                if not found:
                    raise ValueError(f"no branch of a union takes {quoted(value)}")
                out += found
            case Record():
                for _, field, item in members(node, value, default=self._default):
                    self._write(out, field, item)
            case Array():
                need(isinstance(value, list), "an array is a list", value)
                out += zigzag(len(value)) if value else b""
                for item in value:
                    self._write(out, node.items, item)
                out += b"\0"
            case Map():
                need(isinstance(value, dict), "a map is an object", value)
                out += zigzag(len(value)) if value else b""
                for key, item in value.items():
                    out += _sized(key.encode())
                    self._write(out, node.values, item)
                out += b"\0"
            case Enum() | Fixed() | Primitive():
                out += leaf_datum(node, value, default=self._default)


def members(record: Record, value: Any, *, default: bool) -> list[tuple[str, Node, Any]]:
    """Return each field of a record with its type and its value. Raises ValueError.

    ``default``: whether the value is a schema's default, in which a field has its own default.
    """
    need(isinstance(value, dict), "a record is an object", value)
    names = {name for name, _ in record.fields}
    need(value.keys() <= names, "a record has only its fields", value)
    absent = record.defaults if default else {}
    return [(name, node, value.get(name, absent.get(name))) for name, node in record.fields]


def leaf_datum(node: Enum | Fixed | Primitive, value: Any, *, default: bool) -> bytes:
    """Return the datum of a type without members. Raises ValueError.

    ``default``: whether the value is a schema's default, whose bytes are characters.
    """
    if isinstance(node, Enum):
        need(value in node.symbols, "an enum has such symbols only", value)
        return zigzag(node.symbols.index(value))
    if isinstance(node, Fixed):
        raw = _fixed(node, value, default=default)
        need(len(raw) == node.size, f"fixed takes {node.size} bytes", value)
        return raw
    return _primitive(node, value, default=default)


def _primitive(node: Primitive, value: Any, *, default: bool) -> bytes:
    match node.kind:
        case "null":
            need(value is None, "null is null", value)
            return b""
        case "boolean":
            need(isinstance(value, bool), "a boolean is true or false", value)
            return b"\1" if value else b"\0"
        case "int" | "long":
            need(type(value) is int, f"{node.kind} is an integer", value)
            limit = 1 << (31 if node.kind == "int" else 63)
            need(-limit <= value < limit, f"{node.kind} has a range", value)
            day = None if default else _DAY.get(node.logical or "")
            need(day is None or 0 <= value < day, f"{node.logical} is a time of a day", value)
            return zigzag(value)
        case "float" | "double":
            return _real(node.kind, value)
        case "string":
            need(type(value) is str, "a string is a string", value)
            if node.logical == "uuid" and not default:
                _uuid(value)
            return _sized(value.encode())
    if node.logical == "decimal" and type(value) in (int, Literal):
        number = _scaled(value, node)
        return _sized(signed_bytes(number))
    return _sized(_raw(value, default=default))


def _real(kind: str, value: Any) -> bytes:
    if type(value) is str:
        found = _SPECIAL.get(value)
    elif type(value) is float:  # of a default, parsed with the schema
        found = None if math.isinf(value) else value
    else:
        need(type(value) in (int, Literal), f"{kind} is a number", value)
        found = exact_double(str(value))
    need(found is not None, f"{kind} is a number that a double holds", value)
    try:
        return struct.pack("<f" if kind == "float" else "<d", found)
    except OverflowError as error:
        raise ValueError(f"{kind} has a range, which {quoted(value)} is out of") from error


def _fixed(node: Fixed, value: Any, *, default: bool) -> bytes:
    if node.logical == "decimal" and type(value) in (int, Literal):
        number = _scaled(value, node)
        if len(signed_bytes(number)) > node.size:
            raise ValueError(f"fixed takes {node.size} bytes, not {quoted(value)}")
        return number.to_bytes(node.size, "big", signed=True)
    if node.logical == "uuid" and not default:
        need(type(value) is str, "a UUID is a string", value)
        return _uuid(value)
    return _raw(value, default=default)


def _uuid(value: str) -> bytes:
    need(_UUID.fullmatch(value) is not None, "a UUID is written as one", value)
    return uuid.UUID(value).bytes


def _raw(value: Any, *, default: bool) -> bytes:
    """Bytes: base64 in text, one character a byte in a default."""
    need(type(value) is str, "bytes are a string", value)
    if default:
        return str(value).encode("latin-1")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"bytes are base64, which {quoted(value)} is not") from error


def _scaled(value: int | Literal, node: Primitive | Fixed) -> int:
    number = exact_unscaled(str(value), node.precision, node.scale)
    if number is None:
        raise ValueError(f"a decimal({node.precision},{node.scale}) is not {quoted(value)}")
    return number


def _sized(raw: bytes) -> bytes:
    return zigzag(len(raw)) + raw


def need(good: bool, what: str, value: Any) -> None:
    """Raise ValueError with the rule ``what`` if ``value`` breaks it."""
    if not good:
        raise ValueError(f"{what}, not {quoted(value)}")


def quoted(value: Any) -> str:
    """Return a value as errors show it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "..."
