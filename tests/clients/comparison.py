"""A topic's columns beside what the client reads of the same payloads.

`expected` turns a client's value into the column's, by the Avro schema (docs/types.md). A value
that no column of the type holds, as an unsigned number above 63 bits, has to be NULL, with a
problem that says so; a time below a microsecond is shown without its nanoseconds, with a problem.
"""

import base64
import json
import math
import struct
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from testbed.clients import UNCERTAIN, ClientTopic
from tests.unit.payload.cases import decode, decoder, rows

Json = Any

_OF_TIME = {"timestamp-millis", "timestamp-micros", "local-timestamp-millis",
            "local-timestamp-micros", "time-millis", "time-micros"}  # fmt: skip
"""Times whose columns are microseconds; clients show nanoseconds."""


class _Nowhere:
    """The value has no place in its column."""

    def __repr__(self) -> str:
        return "NULL with a problem"


NOWHERE = _Nowhere()


class _Cut(int):
    """A time whose nanoseconds the column has no room for: the row has a problem, too."""


def differences(topic: ClientTopic) -> list[str]:
    """Return a line for each message whose row is not what the client reads.

    A row with a problem needs a reason: some value that its column cannot hold.
    """
    schema = schema_of(topic)
    names = named_types(schema)
    made = decoder((topic.type, topic.definition))
    found = decode(made, [message.payload for message in topic.messages])
    lines = []
    for number, (row, message) in enumerate(zip(rows(found), topic.messages, strict=True)):
        wanted = expected(schema, message.value, names)
        problem = found.problems.get(number)
        if not is_same(wanted, row):
            lines.append(f"{message.payload!r}\n  wanted {wanted}\n  found  {row}\n  {problem}")
        elif (problem is not None) != _has_problem(wanted):
            lines.append(f"{message.payload!r}: {problem}\n  wanted {wanted}")
    return lines


def schema_of(topic: ClientTopic) -> Json:
    """Return the Avro schema of a topic."""
    return json.loads(topic.definition)


def expected(schema: Json, value: Any, names: Mapping[str, Json]) -> Any:
    """Return the column's value, as `rows` shows it, for a value as the client reads it."""
    if value is None:
        return None
    if isinstance(schema, list):
        (branch,) = (branch for branch in schema if branch != "null")
        return expected(branch, value, names)
    if isinstance(schema, str):
        return _plain(names[schema], value, names) if schema in names else _of_type(schema, value)
    return _plain(schema, value, names)


def _plain(schema: Json, value: Any, names: Mapping[str, Json]) -> Any:
    kind, logical = schema["type"], schema.get("logicalType")
    if kind == "record" and not schema["fields"]:
        return _JsonText(value)
    if kind == "record":
        return {f["name"]: expected(f["type"], value[f["name"]], names) for f in schema["fields"]}
    if kind == "array" and isinstance(value, dict):
        return _pairs(schema["items"], value, names)
    if kind == "array":
        return [expected(schema["items"], item, names) for item in value]
    if kind == "map":
        return {key: expected(schema["values"], item, names) for key, item in value.items()}
    if value == UNCERTAIN:
        return NOWHERE
    if logical in _OF_TIME:
        micros, below = divmod(value, 1000)
        return _Cut(micros) if below else micros
    if logical == "decimal":
        return Decimal(value)
    if str(schema.get("java-class", "")).startswith("java.math."):
        return _NumberText(value)
    return _of_type(kind, value)


def _pairs(schema: Json, value: dict[str, Any], names: Mapping[str, Json]) -> Any:
    """Java's maps whose keys are not text: Avro has them as arrays of pairs."""
    pair = names[schema] if isinstance(schema, str) else schema
    key = next(field["type"] for field in pair["fields"] if field["name"] == "key")
    made = [{"key": name if key == "string" else int(name), "value": value[name]} for name in value]
    return [expected(schema, item, names) for item in made]


def _of_type(kind: str, value: Any) -> Any:
    if kind in ("int", "long"):
        return value if -(1 << 63) <= value < 1 << 63 else NOWHERE
    if kind == "float":
        return _Float32(float(value))
    if kind == "double":
        return float(value)
    if kind in ("bytes", "fixed"):
        return base64.b64decode(value)
    return value


class _JsonText:
    """Text in JSON, of a value that has no fields of its own: numbers are compared as floats."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"JSON text of {self.value!r}"

    def is_same(self, found: Any) -> bool:
        return isinstance(found, str) and _as_floats(json.loads(found)) == _as_floats(self.value)


class _NumberText:
    """A number as text, in whatever form has the same value."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"text of {self.text}"

    def is_same(self, found: Any) -> bool:
        return isinstance(found, str) and Decimal(found) == Decimal(self.text)


def _as_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_floats(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_floats(item) for item in value]
    try:
        return value if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return value


class _Float32(float):
    """A number of 32 bits: JSON says it with fewer digits than a double has."""


def is_same(wanted: Any, found: Any) -> bool:
    """Return whether a column's value is the expected value. NaN is NaN, and -0.0 is not 0.0."""
    if wanted is NOWHERE:
        return found is None
    if isinstance(wanted, (_JsonText, _NumberText)):
        return wanted.is_same(found)
    if isinstance(wanted, float):
        return isinstance(found, float) and _same_float(wanted, found)
    if isinstance(wanted, dict):
        # A struct is a dict, a map is pairs.
        pairs = dict(found) if isinstance(found, (dict, list)) else {}
        return (
            isinstance(found, (dict, list))
            and pairs.keys() == wanted.keys()
            and all(is_same(item, pairs[name]) for name, item in wanted.items())
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(map(is_same, wanted, found))
        )
    if isinstance(wanted, _Cut):
        return type(found) is int and wanted == found
    return type(wanted) is type(found) and bool(wanted == found)


def _same_float(wanted: float, found: float) -> bool:
    if math.isnan(wanted):
        return math.isnan(found)
    if isinstance(wanted, _Float32):
        wanted, found = struct.unpack("ff", struct.pack("ff", wanted, found))
    return wanted == found and math.copysign(1, wanted) == math.copysign(1, found)


def _has_problem(value: Any) -> bool:
    """Return whether a row of this expected value has a problem."""
    if isinstance(value, dict):
        return any(map(_has_problem, value.values()))
    if isinstance(value, list):
        return any(map(_has_problem, value))
    return value is NOWHERE or isinstance(value, _Cut)


def named_types(schema: Json, namespace: str = "") -> dict[str, Json]:
    """Return the named types of a schema, by the names that references use: full, or short."""
    if isinstance(schema, list):
        return {
            name: made for branch in schema for name, made in named_types(branch, namespace).items()
        }
    if not isinstance(schema, dict):
        return {}
    space = schema.get("namespace", namespace)
    named = {}
    if "name" in schema:
        named = dict.fromkeys((schema["name"], f"{space}.{schema['name']}"), schema)
    inner = [field["type"] for field in schema.get("fields", [])]
    inner += [schema[key] for key in ("items", "values") if key in schema]
    return {**named, **named_types(inner, space)}
