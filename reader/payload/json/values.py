"""One JSON payload to column values, in Python: the reference, which `kernel` has to equal.

Follows Jackson as Pulsar's JSONSchema configures it: fields that are null may be left out, bytes
are base64, enums are names, a union has no wrapper, NaN and the infinities are strings. Whatever
the columns would not reproduce is a problem: unknown fields, wrong types, numbers out of range or
precision, duplicate keys.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from reader.payload.avro.text import number_text
from reader.payload.avro_schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Ref,
    Union,
)
from reader.payload.column_types import (
    Layout,
    Leaf,
    ListOf,
    MapOf,
    Missing,
    Struct,
    accepts,
    label,
    layout_of,
    mapped_union,
    mismatch,
)
from reader.payload.json.numbers import Number, exact_double, exact_integer, exact_unscaled

__all__ = ["MAX_JSON_DEPTH", "JsonReader", "shown"]

# Python's parser stops at its own recursion limit, which depends on the caller: stay below.
MAX_JSON_DEPTH = 256
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_FACTORS = {"time-millis": 1000, "timestamp-millis": 1000, "local-timestamp-millis": 1000}

Convert = Callable[[Any], Any]


class JsonReader:
    """Reads messages of one schema version.

    ``root`` is a record whose fields are members of ``layout``; with a ``member_name`` it is any
    type, and each payload is that member.
    """

    def __init__(
        self, version: int, root: Node, layout: Struct, member_name: str | None = None
    ) -> None:
        self._version = version
        self._problems: list[str] = []
        self._duplicate: str | None = None
        self._convert = self._root(root, layout, member_name)
        self._decoder = json.JSONDecoder(
            parse_float=Number,
            parse_int=Number,
            parse_constant=_refuse,
            object_pairs_hook=self._object,
        )

    def read(self, payload: bytes) -> tuple[dict[str, Any] | None, str | None]:
        """(value by column, or None if nothing could be read; problem or None).

        Values are what ``pyarrow.array`` takes for the column's type.
        """
        self._problems, self._duplicate = [], None
        try:
            text = payload.decode("utf-8")
        except UnicodeDecodeError:
            return None, "not UTF-8"
        if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _depth(text) > MAX_JSON_DEPTH:
            return None, "nested too deeply"
        try:
            value = self._decoder.decode(text)
        except ValueError as error:
            return None, f"not JSON: {error}"
        values: dict[str, Any] | None = self._convert(value)
        if self._duplicate is not None:
            self._problems.append(f"duplicate key {shown(self._duplicate)}")
        return values, self._problems[0] if self._problems else None

    def _root(self, root: Node, layout: Struct, member_name: str | None) -> Convert:
        if member_name is not None:
            member = layout.member(member_name)
            assert member is not None
            column, whole = member.column, self._value(root, member.layout, label(member_name))
            return lambda value: {column: None if value is None else whole(value)}
        assert isinstance(root, Record)
        members = self._members(root, layout, "")

        def convert(value: Any) -> dict[str, Any] | None:
            if type(value) is dict:
                found: dict[str, Any] = members(value)
                return found
            self._problems.append("not a JSON object")
            return None

        return convert

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs) and self._duplicate is None:
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    self._duplicate = key
                    break
                seen.add(key)
        return value

    def _fail(self, path: str, what: str) -> None:
        self._problems.append(f"field {shown(path)} {what}")

    def _value(self, node: Node, layout: Layout, path: str) -> Convert:
        """A function of a parsed value that is not null."""
        if isinstance(node, Union):
            return self._union(node, layout, path)
        if isinstance(node, Primitive) and node.kind == "null":
            return lambda value: self._fail(path, "is not null")
        if not accepts(layout, layout_of(node)):
            what = mismatch(layout, layout_of(node), self._version)
            return lambda value: self._fail(path, what)
        match node, layout:
            case Record(), Struct():
                return self._record(node, layout, path)
            case Record() | Ref(), _:
                return self._checked(dict, _dump, path, "is not an object")
            case Array(), ListOf():
                return self._array(node, layout, path)
            case Map(), MapOf():
                return self._map(node, layout, path)
            case Enum(), _:
                return self._checked(str, _utf8, path, "is not a string")
            case Fixed() | Primitive(), Leaf():
                return self._leaf(node, layout, path)
        raise AssertionError(f"{node} does not go to {layout}")

    def _checked(self, kind: type, convert: Convert, path: str, what: str) -> Convert:
        """``convert`` for values of ``kind``; None from it is a value that does not fit, too."""

        def checked(value: Any) -> Any:
            found = convert(value) if type(value) is kind else None
            if found is None:
                self._fail(path, what)
            return found

        return checked

    def _members(self, node: Record, layout: Struct, path: str) -> Convert:
        members = {}
        for name, child in node.fields:
            member = layout.member(name)
            where = f"{path}.{name}" if path else name
            found = Missing("has no column") if member is None else member.layout
            column = name if member is None else member.column
            members[name] = (column, self._value(child, found, where))

        def convert(value: dict[str, Any]) -> dict[str, Any]:
            found = {}
            for name, item in value.items():
                known = members.get(name)
                if known is None:
                    self._problems.append(
                        f"unknown field {shown(f'{path}.{name}' if path else name)}"
                    )
                elif item is not None:
                    found[known[0]] = known[1](item)
            return found

        return convert

    def _record(self, node: Record, layout: Struct, path: str) -> Convert:
        return self._checked(dict, self._members(node, layout, path), path, "is not an object")

    def _array(self, node: Array, layout: ListOf, path: str) -> Convert:
        item = self._value(node.items, layout.item, f"{path}[]")

        def convert(value: list[Any]) -> list[Any]:
            return [None if v is None else item(v) for v in value]

        return self._checked(list, convert, path, "is not an array")

    def _map(self, node: Map, layout: MapOf, path: str) -> Convert:
        item = self._value(node.values, layout.value, f"{path}[]")

        def convert(value: dict[str, Any]) -> list[tuple[str, Any]] | None:
            if any(_utf8(key) is None for key in value):
                return None
            return [(k, None if v is None else item(v)) for k, v in value.items()]

        return self._checked(dict, convert, path, "is not an object of Unicode keys")

    def _union(self, node: Union, layout: Layout, path: str) -> Convert:
        """The first branch that takes the value without a problem."""
        branches = mapped_union(node)
        if len(branches) < 2:
            return self._value(branches[0] if branches else Primitive("null"), layout, path)
        if not isinstance(layout, Struct) or not layout.union:
            what = mismatch(layout, layout_of(node), self._version)
            return lambda value: self._fail(path, what)
        choices = []
        for i, branch in enumerate(branches):
            member = layout.member(f"member{i}")
            assert member is not None
            choices.append((member.column, self._value(branch, member.layout, path)))

        def convert(value: Any) -> dict[str, Any] | None:
            before = len(self._problems)
            for column, branch in choices:
                found = branch(value)
                if len(self._problems) == before:
                    return {column: found}
                del self._problems[before:]
            self._fail(path, "matches no branch of its union")
            return None

        return convert

    def _leaf(self, node: Fixed | Primitive, layout: Leaf, path: str) -> Convert:
        if node.logical == "decimal":
            return self._decimal(node, layout, path)
        if isinstance(node, Fixed) or node.kind == "bytes":
            if layout.tag == "text":
                return self._checked(str, _utf8, path, "is not a string")
            return self._checked(str, _base64, path, "is not base64")
        if node.kind == "string":
            return self._checked(str, _utf8, path, "is not a string")
        if node.kind == "boolean":
            return self._checked(bool, lambda value: value, path, "is not a boolean")
        if layout.tag == "number" and str(layout.type) == "double":
            return self._double(path)
        bits = 32 if node.logical in ("date", "time-millis") else 64
        factor = _FACTORS.get(node.logical or "", 1)

        def integer(number: Number) -> int | None:
            value = exact_integer(number.text, bits)
            if value is None or not -(1 << 63) <= value * factor < 1 << 63:
                return None
            return value * factor

        return self._checked(Number, integer, path, f"is not an integer of {bits} bits")

    def _double(self, path: str) -> Convert:
        number = self._checked(
            Number, lambda value: exact_double(value.text), path, "is not a number of double range"
        )

        def convert(value: Any) -> Any:
            return _SPECIAL[value] if type(value) is str and value in _SPECIAL else number(value)

        return convert

    def _decimal(self, node: Fixed | Primitive, layout: Leaf, path: str) -> Convert:
        precision, scale = node.precision, node.scale
        base64_too = isinstance(node, Primitive) and node.connect
        what = f"is not a decimal of {precision} digits, {scale} after the point"

        def convert(value: Any) -> Decimal | str | None:
            unscaled = None
            if type(value) is Number:
                unscaled = exact_unscaled(value.text, precision, scale)
            elif base64_too and type(value) is str:
                unscaled = _unscaled(value, precision)
            if unscaled is None:
                self._fail(path, what)
                return None
            text = number_text(unscaled, scale)
            return text if precision > 38 else Decimal(text)

        return convert


def shown(name: str) -> str:
    """A name from a message, as a problem quotes it: short, printable, valid Unicode."""
    return ascii(name) if len(name) <= 80 else ascii(name[:77] + "...")


def _refuse(token: str) -> None:
    raise ValueError(f"{token} is not a number of JSON")


def _utf8(text: str) -> str | None:
    """``text``, if UTF-8 can encode it: an escape may give half of a surrogate pair."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return text


def _base64(text: str) -> bytes | None:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if base64.b64encode(raw).decode() == text else None


def _unscaled(text: str, precision: int) -> int | None:
    """The integer whose two's complement ``text`` is in base64, if of ``precision`` digits."""
    raw = _base64(text)
    if not raw or len(raw) > precision:
        return None
    value = int.from_bytes(raw, "big", signed=True)
    return value if abs(value) < 10**precision else None


def _dump(value: Any) -> str | None:
    return _utf8(_text(value))


def _text(value: Any) -> str:
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{_text(v)}" for key, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest
