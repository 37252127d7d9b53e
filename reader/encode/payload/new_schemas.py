"""The schema of a new topic, out of the columns of a DataFrame."""

import json
import re
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from reader.encode.payload.arrow_columns.elements import spark_type
from reader.encode.payload.encoder import PayloadEncoder
from reader.errors import ConfigurationError
from reader.model import SchemaInfo
from reader.model.column_names import name_key
from reader.payload.avro_schema import PRIMITIVES as AVRO_PRIMITIVES
from reader.payload.avro_schema import schema_json
from reader.payload.primitive import PRIMITIVES

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RECORDS = ("AVRO", "JSON")
# As the Java client's classes: any field may be null.
_PROPERTIES = {"__alwaysAllowNull": "true", "__jsr310ConversionEnabled": "false"}
_AVRO = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    pa.timestamp("us"): {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.null(): "string",
}
_PRIMITIVES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "INT8",
    pa.int16(): "INT16",
    pa.int32(): "INT32",
    pa.int64(): "INT64",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BYTES",
    pa.large_binary(): "BYTES",
    pa.date32(): "LOCAL_DATE",
}


def new_schema(
    columns: pa.Schema,
    kind: str = "AVRO",
    *,
    name: str = "Message",
    encoding: str = "INLINE",
    records: str = "AVRO",
) -> SchemaInfo:
    """The schema, of version -1, that rows of these payload columns are written by.

    ``kind``: AVRO or JSON, a record called ``name`` of all columns, any of which may be null; a
    primitive, for the one column ``value``; KEY_VALUE, for the columns ``key`` and ``value``, with
    its ``encoding``, INLINE or SEPARATED, and the kind of its ``records``: halves that are structs.

    Raises ConfigurationError for columns that such a schema cannot have.
    """
    kind = kind.upper()
    if not len(columns):
        raise ConfigurationError(
            "a topic of metadata columns alone has no payload",
            hint="add a column, or 'schemaType'='NONE' with one column value",
        )
    if kind in _RECORDS:
        info = _record(kind, list(columns), name)
    elif kind in PRIMITIVES:
        _only(columns, kind, ["value"])
        info = SchemaInfo(-1, kind, "")
    elif kind == "KEY_VALUE":
        _only(columns, kind, ["key", "value"])
        info = _key_value(columns, name, encoding.upper(), records.upper())
    else:
        raise ConfigurationError(
            f"a topic with a schema of type {kind} cannot be made",
            hint=f"one of {', '.join((*_RECORDS, 'KEY_VALUE', *PRIMITIVES))}",
        )
    PayloadEncoder(info, columns)
    return info


def grown_schema(schema: SchemaInfo, filled: Collection[str], columns: pa.Schema) -> SchemaInfo:
    """``schema``, as of version -1, with a field that may be null for each column that it lacks.

    ``filled``: the columns of its fields. Itself where it lacks none. Only fields of a record
    (AVRO, JSON) are added, none within one.
    Raises ConfigurationError for a column that no field can be.
    """
    if schema.type not in _RECORDS:
        return schema
    known = set(map(name_key, filled))
    new = [field for field in columns if name_key(field.name) not in known]
    definition = schema_json(schema.definition)
    if not new or not isinstance(definition, dict) or definition.get("type") != "record":
        return schema
    made = _Definitions(_names_in(definition)).record(new, definition["name"], "")["fields"]
    definition["fields"] = [*definition["fields"], *made]
    return SchemaInfo(-1, schema.type, json.dumps(definition), schema.properties)


def _names_in(definition: Any) -> set[str]:
    """The names of all types in an Avro definition."""
    if isinstance(definition, list):
        return set().union(*map(_names_in, definition))
    if not isinstance(definition, dict):
        return set()
    inner = set().union(*map(_names_in, definition.values()))
    name = definition.get("name")
    return inner | {name} if "type" in definition and isinstance(name, str) else inner


def _only(columns: pa.Schema, kind: str, wanted: list[str]) -> None:
    if sorted(map(name_key, columns.names)) != sorted(wanted):
        names = " and ".join(wanted)
        raise ConfigurationError(
            f"a schema of type {kind} takes the columns {names}, not {', '.join(columns.names)}"
            if len(wanted) > 1
            else f"a schema of type {kind} takes the column {names}, "
            f"not {', '.join(columns.names)}",
            hint="select such columns, or choose AVRO or JSON",
        )


def _record(kind: str, fields: list[pa.Field], name: str) -> SchemaInfo:
    if kind not in _RECORDS:
        raise ConfigurationError(f"records cannot be of type {kind}", hint="one of AVRO, JSON")
    definition = _Definitions().record(fields, name, "")
    return SchemaInfo(-1, kind, json.dumps(definition), _PROPERTIES)


def _key_value(columns: pa.Schema, name: str, encoding: str, records: str) -> SchemaInfo:
    if encoding not in ("INLINE", "SEPARATED"):
        raise ConfigurationError(
            f"a KeyValue cannot be {encoding}", hint="one of INLINE, SEPARATED"
        )
    properties = {"kv.encoding.type": encoding}
    definition: dict[str, Any] = {}
    for field in columns:
        half = name_key(field.name)
        info = _half(field, f"{name}_{half}", records)
        # As the registry shows it: primitives have no definition.
        definition[half] = json.loads(info.definition) if info.definition else ""
        properties[f"{half}.schema.name"] = ""
        properties[f"{half}.schema.type"] = info.type
        properties[f"{half}.schema.properties"] = json.dumps(dict(info.properties))
    both = {half: definition[half] for half in ("key", "value")}
    return SchemaInfo(-1, "KEY_VALUE", json.dumps(both), properties)


def _half(field: pa.Field, name: str, records: str) -> SchemaInfo:
    if pa.types.is_struct(field.type):
        return _record(records, list(field.type), name)
    kind = _PRIMITIVES.get(field.type)
    if kind is None:
        raise ConfigurationError(
            f"column {field.name!r} is {spark_type(field.type)}, which has no schema of its own",
            hint="make it a struct with this as its member, or cast it",
            context={"column": field.name},
        )
    return SchemaInfo(-1, kind, "")


class _Definitions:
    """Avro's definitions of Arrow types; each record has a name of its own."""

    def __init__(self, taken: Collection[str] = ()) -> None:
        # A record may not be called as a primitive is, by which the parser would take it for that.
        self._names = {*taken, *AVRO_PRIMITIVES}

    def record(self, fields: list[pa.Field], name: str, path: str) -> dict[str, Any]:
        unique, number = name, 2
        while unique in self._names:
            unique, number = f"{name}_{number}", number + 1
        self._names.add(unique)
        return {
            "type": "record",
            "name": _checked(unique, path or "the record"),
            "fields": [
                {
                    "name": _checked(field.name, _inner(path, field.name)),
                    "type": self.nullable(field.type, field.name, _inner(path, field.name)),
                    "default": None,
                }
                for field in fields
            ],
        }

    def nullable(self, real: pa.DataType, name: str, path: str) -> list[Any]:
        return ["null", self.of(real, name, path)]

    def of(self, real: pa.DataType, name: str, path: str) -> Any:
        if pa.types.is_struct(real) and len(list(real)):
            return self.record(list(real), name, path)
        if pa.types.is_list(real) or pa.types.is_large_list(real):
            return {"type": "array", "items": self.nullable(real.value_type, name, f"{path}[]")}
        if pa.types.is_map(real) and real.key_type in (pa.string(), pa.large_string()):
            return {"type": "map", "values": self.nullable(real.item_type, name, f"{path}[]")}
        if pa.types.is_decimal128(real) and 0 <= real.scale <= real.precision:
            return {
                "type": "bytes", "logicalType": "decimal", "precision": real.precision,
                "scale": real.scale,
            }  # fmt: skip
        if pa.types.is_timestamp(real) and real.tz is not None and real.unit == "us":
            return {"type": "long", "logicalType": "timestamp-micros"}
        if real not in _AVRO:
            raise ConfigurationError(
                f"column {path!r} is {spark_type(real)}, which no field of a schema can be",
                hint="cast it, or leave it out",
                context={"column": path},
            )
        return _AVRO[real]


def _inner(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _checked(name: str, path: str) -> str:
    """A name as Avro has it; Pulsar's registry refuses others."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{path!r} cannot be the name of a field in an Avro schema",
            hint="rename the column: letters, digits and _, no digit first",
            context={"column": path},
        )
    return name
