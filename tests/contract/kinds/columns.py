"""The payload columns of a value that the Java client read, as docs/types.md maps them.

Values are what `testbed.oracle` gives: bytes are base64, messages ProtoJSON. Times stay numbers,
microseconds since 1970, because that is how the tests compare them.
"""

import base64
import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from testbed.oracle import Json
from tests.contract.kinds import Columns, Row
from tests.contract.kinds.primitives import PRIMITIVES

_PRIMITIVES = {kind: ours for kind, _, ours in PRIMITIVES}


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def _text(value: Any, *, ordered: bool = False) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=ordered)


# --- Avro and JSON ---


class Avro:
    """Columns of values of one Avro schema."""

    def __init__(self, definition: Any) -> None:
        self._definition = definition
        self._named: dict[str, Any] = {}
        self._collect(definition)

    def _collect(self, schema: Any, namespace: str = "") -> None:
        for one in schema if isinstance(schema, list) else [schema]:
            if not isinstance(one, dict):
                continue
            if "name" in one:
                namespace = one.get("namespace", namespace)
                self._named[one["name"]] = one
                self._named[f"{namespace}.{one['name']}"] = one
            for part in (one.get("items"), one.get("values"), one.get("type")):
                self._collect(part, namespace)
            for member in one.get("fields", ()):
                self._collect(member["type"], namespace)

    def column(self, value: Any) -> Any:
        return self._column(self._definition, value, ())

    def _column(self, schema: Any, value: Any, within: tuple[str, ...]) -> Any:
        schema = self._resolve(schema)
        if value is None:
            return None
        if isinstance(schema, list):
            return self._of_union(schema, value, within)
        kind = schema["type"] if isinstance(schema, dict) else schema
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        if logical in _LOGICAL:
            return _LOGICAL[logical](schema, value)
        match kind:
            case "record" if not schema["fields"] or schema["name"] in within:
                return _text(value)
            case "record":
                inside = (*within, schema["name"])
                return {
                    one["name"]: self._column(one["type"], value.get(one["name"]), inside)
                    for one in schema["fields"]
                }
            case "array":
                return [self._column(schema["items"], item, within) for item in value]
            case "map":
                return {
                    name: self._column(schema["values"], item, within)
                    for name, item in value.items()
                }
            case "bytes" | "fixed":
                return _bytes(value)
            case "float" | "double":
                return float(value)
        return value

    def _resolve(self, schema: Any) -> Any:
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _of_union(self, schema: Any, value: Any, within: tuple[str, ...]) -> Any:
        branches = [self._resolve(one) for one in schema if one != "null"]
        plain = {one for one in branches if isinstance(one, str)}
        if len(branches) == 1 or plain in ({"int", "long"}, {"float", "double"}):
            return self._column(branches[-1], value, within)
        chosen = next(i for i, one in enumerate(branches) if _takes(one, value))
        return {
            f"member{i}": self._column(one, value, within) if i == chosen else None
            for i, one in enumerate(branches)
        }


def _takes(schema: Any, value: Any) -> bool:
    kind = schema["type"] if isinstance(schema, dict) else schema
    return isinstance(
        value,
        {
            "string": str,
            "int": int,
            "long": int,
            "double": float,
            "boolean": bool,
            "record": dict,
            "array": list,
        }[kind],
    )


def _unscaled(schema: Json, value: Any) -> decimal.Decimal:
    if isinstance(value, str):  # Avro's bytes; in JSON it is the number
        number = int.from_bytes(_bytes(value), "big", signed=True)
        return decimal.Decimal(number).scaleb(-schema["scale"], _EXACT)
    return decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-schema["scale"]))


def _decimal(schema: Json, value: Any) -> Any:
    found = _unscaled(schema, value)
    return found if schema["precision"] <= 38 else f"{found:f}"


_EXACT = decimal.Context(prec=100)
_LOGICAL: dict[str, Callable[[Json, Any], Any]] = {
    "decimal": _decimal,
    "date": lambda _, days: dt.date(1970, 1, 1) + dt.timedelta(days=days),
    "time-millis": lambda _, value: value * 1000,
    "time-micros": lambda _, value: value,
    "timestamp-millis": lambda _, value: value * 1000,
    "timestamp-micros": lambda _, value: value,
    "timestamp-nanos": lambda _, value: value,
    "local-timestamp-millis": lambda _, value: value * 1000,
    "local-timestamp-micros": lambda _, value: value,
    "local-timestamp-nanos": lambda _, value: value,
    "uuid": lambda schema, value: (
        value if schema["type"] == "string" else str(uuid.UUID(bytes=_bytes(value)))
    ),
}


def record_columns(definition: Json, known: Row | None = None) -> Columns:
    """`known`: names of columns that other versions have."""
    avro = Avro(definition)
    names = [one["name"] for one in definition["fields"]]

    def columns(java: Json) -> Row:
        assert "value_error" not in java, java["value_error"]
        found: Row | None = avro.column(java["value"])
        return {**(known or {}), **(found or dict.fromkeys(names))}

    return columns


def key_value_columns(key: Json, value: Json) -> Columns:
    halves = _half(key), _half(value)

    def columns(java: Json) -> Row:
        assert "value_error" not in java, java["value_error"]
        pair = java["value"] or {"key": None, "value": None}
        both = zip(("key", "value"), halves, strict=True)
        return {name: None if pair[name] is None else half(pair[name]) for name, half in both}

    return columns


def _half(schema: Json) -> Callable[[Any], Any]:
    match schema["type"]:
        case "AVRO" | "JSON":
            return Avro(schema["definition"]).column
        case "PROTOBUF_NATIVE":
            message = descriptor_of(schema)
            return lambda value: _struct(message, value, ())
        case "BYTES":
            return _bytes
    return _PRIMITIVES[schema["type"]]


# --- Protobuf ---


def descriptor_of(schema: Json) -> Descriptor:
    """Of the message that a schema names."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema["descriptors"]).file:
        pool.AddSerializedFile(file.SerializeToString())
    found: Descriptor = pool.FindMessageTypeByName(schema["message"])
    return found


_UNSIGNED_64 = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)
_SIGNED_64 = (
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_SINT64,
    FieldDescriptor.TYPE_SFIXED64,
)
_FLOATS = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


def proto_columns(schema: Json) -> Columns:
    message = descriptor_of(schema)

    def columns(java: Json) -> Row:
        assert "value_error" not in java, java["value_error"]
        if java["value"] is None:
            return dict.fromkeys(one.name for one in message.fields)
        return _struct(message, java["value"], ())

    return columns


def _struct(message: Descriptor, value: Json, within: tuple[str, ...]) -> Row:
    inside = (*within, message.full_name)
    return {one.name: _member(one, value.get(one.name), inside) for one in message.fields}


def _member(one: FieldDescriptor, value: Any, within: tuple[str, ...]) -> Any:
    if value is None:
        return None
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        item = one.message_type.fields_by_name["value"]
        return {name: _single(item, found, within) for name, found in value.items()}
    if isinstance(value, list):
        return [_single(one, item, within) for item in value]
    return _single(one, value, within)


def _single(one: FieldDescriptor, value: Any, within: tuple[str, ...]) -> Any:
    message = one.message_type
    if message is not None:
        if message.full_name == "google.protobuf.Timestamp":
            parsed = timestamp_pb2.Timestamp()
            parsed.FromJsonString(value)
            return {"seconds": parsed.seconds, "nanos": parsed.nanos}
        if message.full_name == "google.protobuf.Struct":
            return _text(value, ordered=True)
        if message.full_name in within or not message.fields:
            return _text(_short(message, value), ordered=True)
        return _struct(message, value, within)
    if one.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(value)
    if one.type in _UNSIGNED_64:
        return str(value)
    if one.type in _SIGNED_64:
        return int(value)
    return float(value) if one.type in _FLOATS else value


def _short(message: Descriptor, value: Json) -> Json:
    """ProtoJSON without the defaults of fields that have no presence."""
    found = {}
    for one in message.fields:
        member = value.get(one.name)
        if member is None or (not one.has_presence and member in (0, "0", "", False, [], {})):
            continue
        if one.message_type is not None and not one.message_type.GetOptions().map_entry:
            nested = isinstance(member, list)
            many = [_short(one.message_type, item) for item in (member if nested else [member])]
            member = many if nested else many[0]
        found[one.name] = member
    return found
