"""Single JSON values from JSON: of columns of JSON text, and the defaults of fields.

The text is that of ``json_parts``, so that a consumer reads a value in the same way wherever the
value comes from.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from reader.encode.payload.arrow_columns.iso_times import iso_text
from reader.encode.payload.arrow_columns.json_column import Literal, parsed, parsed_object
from reader.encode.payload.avro_datum import leaf_datum, members, need, no_default, quoted
from reader.payload.avro.text import to_json
from reader.payload.avro_schema import Array, Enum, Fixed, Map, Node, Primitive, Record, Ref, Union
from reader.payload.column_types import mapped_union
from reader.payload.json.member_names import pair_members
from reader.payload.json.numbers import SPECIAL, Number
from reader.payload.json.scalars import FACTORS
from reader.payload.json.time_forms import time_form

KEY_KINDS = ("int", "long", "float", "double", "boolean", "string")


def has_text_form(node: Node) -> bool:
    """Return whether values are times that are written as text, unless the settings say numbers.

    Dates are always numbers of days, which Java reads as dates, too.
    """
    return isinstance(node, Primitive) and time_form(node) is not None and node.logical != "date"


def is_object(node: Array) -> Record | None:
    """Return the record of key and value if ``node`` is a Java map that JSON has as an object."""
    pairs = pair_members(node)
    if pairs is None:
        return None
    key = pairs.fields[0][1]
    plain = isinstance(key, Primitive) and key.kind in KEY_KINDS
    return pairs if plain or isinstance(key, Enum) else None


class JsonDatum:
    """``records``: what a `Ref` of the schema names; ``numbers``: whether times are numbers."""

    def __init__(self, records: Mapping[str, Record], *, numbers: bool) -> None:
        self._records, self._numbers = records, numbers

    def of_text(self, node: Node, text: str, *, inside_unions: int = 0) -> bytes:
        """Return the JSON of JSON text that ``node`` takes, as it is if it needs no other form.

        ``inside_unions``: number of unions of several branches around the text. Raises ValueError.
        """
        writer = _Writer(self._records, numbers=self._numbers, default=False, unions=inside_unions)
        found = writer.text(node, parsed_object(text))
        return found if writer.changed else text.strip().encode()

    def default(self, node: Node, value: Any, path: str) -> bytes:
        """Return the JSON of a field's default, as the schema has it. Raises ConfigurationError."""
        try:
            return _Writer(self._records, numbers=self._numbers, default=True).text(node, value)
        except (ValueError, RecursionError) as error:
            raise no_default(value, path, error) from error


class _Writer:
    """Writes a single value. Two calls a level: records may be nested as deep as readers allow.

    ``changed``: whether a value has been given another form than it had.
    """

    def __init__(
        self, records: Mapping[str, Record], *, numbers: bool, default: bool, unions: int = 0
    ) -> None:
        self._records, self._numbers, self._default = records, numbers, default
        self.changed = False
        # Unions of several branches around the value: they are read by first forms alone.
        self._unions = unions
        # As in ``avro_datum``.
        self._chosen: dict[tuple[int, int], bytes] = {}

    def text(self, node: Node, value: Any) -> bytes:
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
                several = len(mapped_union(node)) > 1
                self._unions += several
                for branch in node.branches if found is None else ():
                    attempt = bytearray()
                    unions = self._unions
                    try:
                        self._write(attempt, branch, value)
                    except ValueError:
                        self._unions = unions
                        continue
                    found = bytes(attempt)
                    break
                self._unions -= several
                if place:
                    self._chosen[place] = found or b""
                if not found:
                    raise ValueError(f"no branch of a union takes {quoted(value)}")
                out += found
            case Record():
                comma = b"{"
                for name, field, item in members(node, value, default=self._default):
                    out += comma + _quoted(name) + b":"
                    self._write(out, field, item)
                    comma = b","
                out += b"}" if node.fields else b"{}"
            case Array():
                pairs = None if self._unions else is_object(node)
                need(isinstance(value, list if pairs is None else list | dict),
                     "an array is a list", value)  # fmt: skip
                if pairs is not None:
                    self._object(out, pairs.fields[1][1], self._entries(pairs, value))
                    return
                comma = b"["
                for item in value:
                    out += comma
                    self._write(out, node.items, item)
                    comma = b","
                out += b"]" if value else b"[]"
            case Map():
                need(isinstance(value, dict), "a map is an object", value)
                self._object(out, node.values, value)
            case Enum() | Fixed() | Primitive():
                out += self._leaf(node, value)

    def _object(self, out: bytearray, node: Node, value: Mapping[str, Any]) -> None:
        comma = b"{"
        for key, item in value.items():
            out += comma + _quoted(key) + b":"
            self._write(out, node, item)
            comma = b","
        out += b"}" if value else b"{}"

    def _entries(self, pairs: Record, value: Any) -> Mapping[str, Any]:
        """Return the entries of a Java map, which is an object or an array of key and value."""
        node = pairs.fields[0][1]
        assert isinstance(node, Primitive | Enum)
        if isinstance(value, dict):
            for key in value:
                self._key(node, _key_value(node, key))
            return value
        self.changed = True
        found: dict[str, Any] = {}
        for item in value:
            need(isinstance(item, dict), "an entry is an object", item)
            need(item.keys() <= {"key", "value"}, "an entry has a key and a value", item)
            key = self._key(node, item.get("key"))
            need(key not in found, "a map has a key once", key)
            found[key] = item.get("value")
        return found

    def _key(self, node: Primitive | Enum, value: Any) -> str:
        """Return the text that Jackson reads as the key."""
        if isinstance(node, Primitive) and type(value) is int:
            if time_form(node) is not None:
                leaf_datum(node, value, default=False)
                return _iso(node, value)
            if node.json_form == "character":
                need(0 <= value < 1 << 16 and not 0xD800 <= value < 0xE000,
                     "a character is a letter", value)  # fmt: skip
                return chr(value)
        text = self._leaf(node, value).decode()
        return str(json.loads(text)) if text[:1] == '"' else text

    def _leaf(self, node: Enum | Fixed | Primitive, value: Any) -> bytes:
        kind = node.kind if isinstance(node, Primitive) else ""
        first_form = self._default or self._unions or self._numbers
        form = time_form(node) if isinstance(node, Primitive) else None
        if form is not None and type(value) is not int and not first_form:
            assert isinstance(node, Primitive)
            need(form.read(_numbers(value)) is not None, f"{node.logical} is certain", value)
            return value.encode() if isinstance(value, Literal) else _quoted(value)
        if isinstance(node, Primitive) and node.json_form == "text":
            need(type(value) is str, "bytes are a string", value)
            return _quoted(value.encode("latin-1").decode() if self._default else value)
        raw = leaf_datum(node, value, default=self._default)
        if has_text_form(node) and not self._unions and not self._numbers:
            assert isinstance(node, Primitive)
            if self._default:
                leaf_datum(node, value, default=False)  # a time of a day
            self.changed = True
            return _quoted(_iso(node, value))
        if self._default and (isinstance(node, Fixed) or kind == "bytes"):
            return to_json(raw, node, {})
        if self._default and kind in ("float", "double") and type(value) is not str:
            return _quoted("NaN" if math.isnan(value) else float(value))
        return value.encode() if isinstance(value, Literal) else _quoted(value)


def _iso(node: Primitive, value: int) -> str:
    assert node.logical is not None
    return iso_text(value * FACTORS.get(node.logical, 1), node.logical)


def _numbers(value: Any) -> Any:
    """Return ``value`` with the numbers that `time_form` takes."""
    if isinstance(value, list):
        return [Number(str(item)) if type(item) in (int, Literal) else item for item in value]
    return Number(value) if isinstance(value, Literal) else value


def _key_value(node: Primitive | Enum, key: str) -> Any:
    """Return the value of a key's type that the text ``key`` is. Raises ValueError."""
    if isinstance(node, Enum) or node.kind == "string" or time_form(node) is not None:
        return key
    if node.json_form == "character":
        need(len(key) == 1, "a character is one letter", key)
        return ord(key)
    return key if key in SPECIAL else parsed(key)


def _quoted(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
