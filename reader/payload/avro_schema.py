"""Avro schema text to a tree of types, with names resolved and logical types understood.

Lenient where Java is (any field name, unknown attributes), because a registry has accepted the
text. A named type is copied wherever it is used; inside itself it becomes a `Ref`. Source:
Avro 1.12 specification, "Schema Declaration" and "Logical Types".
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reader.errors import UnsupportedError
from reader.model.column_names import name_key

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
# A type used twice is copied, so a small text can make a huge tree.
MAX_NODES = 20_000
MAX_DEPTH = 64
CUT_NODES = 2_000
"""The most nodes of a tree that is cut, as the whole tree is too large or too deep: more columns
than that are of no use, below a record that may hold itself by many ways."""
# A logical type applies to these types only; on any other it is ignored.
LOGICAL = {
    "date": {"int"},
    "time-millis": {"int"},
    "time-micros": {"long"},
    "timestamp-millis": {"long"},
    "timestamp-micros": {"long"},
    "timestamp-nanos": {"long"},
    "local-timestamp-millis": {"long"},
    "local-timestamp-micros": {"long"},
    "local-timestamp-nanos": {"long"},
    "decimal": {"bytes", "fixed"},
    "uuid": {"string", "fixed"},
}
_RECORDS = ("record", "error")
MALFORMED = (
    ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError
)  # fmt: skip
"""What reading a definition raises that is none."""
_COMMENT = re.compile(r"""(?P<string>"(?:[^"\\]|\\.)*")|/\*.*?(?:\*/|\Z)|//[^\n]*""", re.DOTALL)
# By type and Java class, which Avro's reflection puts into schemas: what Jackson writes for it.
JSON_FORMS = {
    ("int", "java.lang.Character"): "character",
    ("string", "java.math.BigInteger"): "integer",
    ("string", "java.math.BigDecimal"): "number",
    ("bytes", "[B"): "base64",
}
CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
# Above this a decimal stays binary: the time to convert it to text grows with the square of its
# digits.
MAX_PRECISION = 4000


@dataclass(frozen=True, slots=True)
class Primitive:
    """``kind`` is one of the eight primitive names; precision and scale are a decimal's.

    ``connect``: a decimal of Kafka Connect, which its JSON may hold as base64 of these bytes.
    ``json_form``: what JSON holds for the field, if its kind does not say so: one of `JSON_FORMS`,
    "base64" or "text" for bytes, or "" if that is not known.
    """

    kind: str
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    connect: bool = False
    json_form: str = ""


@dataclass(frozen=True, slots=True)
class Fixed:
    size: int
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Enum:
    symbols: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Array:
    items: Node


@dataclass(frozen=True, slots=True)
class Map:
    values: Node


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """``defaults``: by field, as the schema's JSON has them; for writers alone."""

    name: str
    fields: tuple[tuple[str, Node], ...]
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """The record ``name``, inside itself or below the columns."""

    name: str


Node = Primitive | Fixed | Enum | Array | Map | Union | Record | Ref


@dataclass(frozen=True, slots=True)
class Schema:
    """``root``, and the records that a `Ref` in it names."""

    root: Node
    records: Mapping[str, Record]


def parse_schema(text: str, json_bytes: str = "") -> Schema:
    """Return the tree of types of an Avro schema.

    ``json_bytes``: the ``json_form`` of bytes for which the schema names no Java class. Raises
    UnsupportedError for a text that is not an Avro schema, or is too large.
    """
    try:
        return _parsed(schema_json(text), json_bytes)
    except UnsupportedError:
        raise
    except MALFORMED as error:
        raise UnsupportedError(f"not an Avro schema: {type(error).__name__} {error}") from error


def schema_json(text: str) -> Any:
    """Return the JSON of a schema text, in which Avro's parser allows comments.

    Raises ValueError for any other text.
    """
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(_COMMENT.sub(lambda found: found["string"] or " ", text))


def _parsed(definition: Any, json_bytes: str) -> Schema:
    try:
        parser = _Parser(json_bytes)
        return Schema(parser.node(definition, "", ()), parser.records)
    except KeyError:  # a type that is defined later in the text, which Avro 1.12 allows
        parser = _Parser(json_bytes, _definitions(definition))
        return Schema(parser.node(definition, "", ()), parser.records)
    except _TooLargeError:
        return _cut(definition, json_bytes)


def _cut(definition: Any, json_bytes: str) -> Schema:
    """Return the schema with as many levels of records as there is room for.

    A record below them is a `Ref`, so it becomes JSON text. The first level is always there.
    """
    definitions = _definitions(definition)
    levels, root = 1, _Parser(json_bytes, definitions, 1, 1 << 30).node(definition, "", ())
    while levels < MAX_DEPTH:
        try:
            root = _Parser(json_bytes, definitions, levels + 1, CUT_NODES).node(definition, "", ())
        except _TooLargeError:
            break
        levels += 1
    # Each record that a Ref names, with a Ref for each record in it.
    parser = _Parser(json_bytes, definitions, 1, 1 << 30)
    for name, (inner, namespace) in definitions.items():
        if inner["type"] in _RECORDS:
            parser.node(name, namespace, ())
    return Schema(root, parser.records)


def _definitions(definition: Any) -> dict[str, tuple[dict[str, Any], str]]:
    """Return all named types in a definition, each with its namespace."""
    found: dict[str, tuple[dict[str, Any], str]] = {}
    todo = [(definition, "")]
    while todo:
        one, namespace = todo.pop()
        if isinstance(one, list):
            todo += [(branch, namespace) for branch in one]
        if not isinstance(one, dict):
            continue
        if one["type"] in (*_RECORDS, "enum", "fixed"):
            name = _full_name(one["name"], one.get("namespace", namespace))
            namespace = name.rpartition(".")[0]
            found.setdefault(name, (one, namespace))
            todo += [(field["type"], namespace) for field in one.get("fields", ())]
        else:
            todo += [(one[key], namespace) for key in ("type", "items", "values") if key in one]
    return found


def non_null(union: Union) -> tuple[Node, ...]:
    """The branches of ``union``, except null."""
    return tuple(b for b in union.branches if not (isinstance(b, Primitive) and b.kind == "null"))


def overlay(own: Node, others: Node | None) -> Node:
    """Return a type with the record fields that only ``others`` (`agreed_type`) has, at any depth.

    A name that is an own field's in another case adds no field, so that what such a name means does
    not change with each new version.
    """
    if others is None:
        return own
    if isinstance(own, Union):
        branches = non_null(own)
        if len(branches) != 1:
            return own
        inner = overlay(branches[0], others)
        return Union(tuple(inner if branch in branches else branch for branch in own.branches))
    match own, _inside(others):
        case Record(fields=()), _:  # a Java class that Avro knows nothing of: any JSON is one
            return own
        case Record(), Record() as others:
            added = dict(others.fields)
            fields = [
                (name, overlay(node, added[name]) if name in added else node)
                for name, node in own.fields
            ]
            keys = {name_key(name) for name, _ in fields}
            fields += (field for field in others.fields if name_key(field[0]) not in keys)
            return Record(own.name, tuple(fields))
        case Array(), Array() as others:
            return Array(overlay(own.items, others.items))
        case Map(), Map() as others:
            return Map(overlay(own.values, others.values))
    return own


def agreed_type(nodes: Sequence[Node]) -> Node | None:
    """Return a type that reads JSON as each of some schema versions does, or None.

    Of records it has the fields of all, but none on which those that have it do not agree: an
    integer is one time in ms and another in µs. Of names that differ in their case, the first. The
    cost is in proportion to the fields of all.
    """
    inside = [_inside(node) for node in nodes]
    first = inside[0]
    if isinstance(first, Record) and all(
        isinstance(node, Record) and bool(node.fields) == bool(first.fields) for node in inside
    ):
        fields: dict[str, list[Node]] = {}
        names: dict[str, str] = {}
        for record in inside:
            for name, node in record.fields if isinstance(record, Record) else ():
                if names.setdefault(name_key(name), name) == name:
                    fields.setdefault(name, []).append(node)
        found = ((name, agreed_type(some)) for name, some in fields.items())
        return Record(first.name, tuple((name, node) for name, node in found if node is not None))
    if isinstance(first, Array) and all(isinstance(node, Array) for node in inside):
        items = agreed_type([node.items for node in inside if isinstance(node, Array)])
        return None if items is None else Array(items)
    if isinstance(first, Map) and all(isinstance(node, Map) for node in inside):
        values = agreed_type([node.values for node in inside if isinstance(node, Map)])
        return None if values is None else Map(values)
    form = _json_form(first)
    return first if all(_json_form(node) == form for node in inside[1:]) else None


def _json_form(node: Node) -> Node:
    """Return the one of the types with the same JSON that stands for all."""
    match node:
        case Primitive(kind="int", logical=None):
            return replace(node, kind="long")
        case Primitive(kind="float", logical=None):
            return Primitive("double")
        case Enum():
            return Primitive("string")
        case Fixed():
            return replace(node, name="")
    return node


def _inside(node: Node) -> Node:
    """Return the one branch of a union that is not null, or the type itself."""
    if isinstance(node, Union):
        branches = non_null(node)
        return branches[0] if len(branches) == 1 else node
    return node


class _TooLargeError(UnsupportedError):
    pass


class _Parser:
    """``levels``: how many records lie within each other, at most; ``most``: nodes, at most."""

    def __init__(
        self,
        json_bytes: str,
        definitions: Mapping[str, tuple[dict[str, Any], str]] | None = None,
        levels: int = MAX_DEPTH,
        most: int = MAX_NODES,
    ) -> None:
        self.json_bytes = json_bytes
        self.definitions = dict(definitions or {})
        self.records: dict[str, Record] = {}
        self.nodes = 0
        self.levels, self.most = levels, most

    def node(self, definition: Any, namespace: str, path: tuple[str, ...], depth: int = 0) -> Node:
        self.nodes += 1
        if self.nodes > self.most or depth > MAX_DEPTH:
            raise _TooLargeError("the Avro schema is too large or nested too deeply")
        depth += 1
        if isinstance(definition, list):
            return Union(tuple(self.node(b, namespace, path, depth) for b in definition))
        if isinstance(definition, str):
            if definition in PRIMITIVES:
                return Primitive(definition, json_form=self._json_form(definition, {}))
            return self._named(self._known(definition, namespace), path, depth)
        kind = definition["type"]
        if isinstance(kind, list | dict):
            return self.node(kind, namespace, path, depth)
        if kind in (*_RECORDS, "enum", "fixed"):
            name = _full_name(definition["name"], definition.get("namespace", namespace))
            self.definitions[name] = (definition, name.rpartition(".")[0])
            return self._named(name, path, depth)
        if kind == "array":
            return Array(self.node(definition["items"], namespace, path, depth))
        if kind == "map":
            return Map(self.node(definition["values"], namespace, path, depth))
        if kind in PRIMITIVES:
            logical, precision, scale = _logical(definition, kind, 0)
            connect = logical == "decimal" and definition.get("connect.name") == CONNECT_DECIMAL
            form = "" if logical == "decimal" else self._json_form(kind, definition)
            return Primitive(kind, logical, precision, scale, connect, form)
        return self._named(self._known(kind, namespace), path, depth)

    def _known(self, name: str, namespace: str) -> str:
        """Return the full name of a type that is used by ``name``.

        Java looks in the namespace first, then among the types that have none.
        """
        full = _full_name(name, namespace)
        return full if full in self.definitions else name

    def _json_form(self, kind: str, definition: dict[str, Any]) -> str:
        default = self.json_bytes if kind == "bytes" else ""
        return JSON_FORMS.get((kind, str(definition.get("java-class"))), default)

    def _named(self, name: str, path: tuple[str, ...], depth: int) -> Node:
        definition, namespace = self.definitions[name]
        kind = definition["type"]
        if kind == "enum":
            return Enum(tuple(_shown(symbol) for symbol in definition["symbols"]), name)
        if kind == "fixed":
            size = definition["size"]
            if type(size) is not int or not 0 <= size < 1 << 31:
                raise ValueError("fixed of such a size")
            return Fixed(size, *_logical(definition, "fixed", size), name)
        if name in path or len(path) >= self.levels:
            return Ref(name)
        fields, defaults = [], {}
        for one in definition["fields"]:
            fields.append(
                (_shown(one["name"]), self.node(one["type"], namespace, (*path, name), depth))
            )
            if "default" in one:
                defaults[str(one["name"])] = one["default"]
        names = {field_name for field_name, _ in fields}
        if len(names) != len(fields) or any(one[:1] in ("", "\0") for one in names):
            raise ValueError(f"record {name} has a field twice or without a name")
        record = Record(name, tuple(fields), defaults)
        self.records.setdefault(name, record)
        return record


def _shown(name: Any) -> str:
    """Return a name that becomes a column or a value. Raises ValueError if no text can have it."""
    text = str(name)
    text.encode()  # an escape can give half of a surrogate pair
    return text


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _logical(definition: dict[str, Any], kind: str, size: int) -> tuple[str | None, int, int]:
    logical = definition.get("logicalType")
    if not isinstance(logical, str) or kind not in LOGICAL.get(logical, ()):
        return None, 0, 0
    if logical == "uuid" and kind == "fixed" and size != 16:
        return None, 0, 0
    if logical != "decimal":
        return logical, 0, 0
    precision, scale = definition.get("precision"), definition.get("scale", 0)
    if type(precision) is not int or type(scale) is not int:
        return None, 0, 0
    if not 0 < precision <= MAX_PRECISION or not 0 <= scale <= precision:
        return None, 0, 0
    return logical, precision, scale
