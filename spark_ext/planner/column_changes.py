"""What a topic has got since a stream was started, whose rows have the columns of its start.

A column keeps its type for good and structs only grow: so members that are added, at any depth, and
columns are all that can change. A topic that comes later may have another type for a column.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from reader.errors import ConfigurationError
from reader.plan import Snapshot
from spark_ext.ddl import type_ddl

_SPARK_TYPES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP_LTZ",
    "timestamp_ntz": "TIMESTAMP_NTZ",
}
"""Names of Spark's JSON, as DDL."""


class _OtherTypeError(Exception):
    """A column or member, by its path, that is not what the stream has."""


def require_columns(snapshot: Snapshot, columns: str) -> None:
    """Raises ConfigurationError where rows would not fit ``columns``, a schema in Spark's JSON."""
    try:
        added = [*_added(pa.struct(snapshot.columns), json.loads(columns), "")]
    except _OtherTypeError as other:
        raise ConfigurationError(
            f"topic {snapshot.topic} cannot be in one stream with the others: its column {other} "
            "has another type",
            hint="leave it out of the stream, and make another one for it",
        ) from None
    if added:
        raise ConfigurationError(
            f"topic {snapshot.topic} has got the columns {', '.join(added)} since the "
            "stream was started",
            hint="restart the query: it goes on where it was, with the new columns",
        )


def _added(kind: pa.DataType, known: Any, path: str) -> Iterator[str]:
    """Members of structs that a type in Spark's JSON has not, by their paths."""
    parts: list[tuple[pa.DataType, Any]] = []
    if isinstance(known, str):
        name = _SPARK_TYPES.get(known, known.upper())
        if pa.types.is_nested(kind) or type_ddl(kind) != name:
            raise _OtherTypeError(path)
    elif pa.types.is_struct(kind) and known["type"] == "struct":
        there = {one["name"]: one["type"] for one in known["fields"]}
        for field in kind:
            inside = f"{path}.{field.name}" if path else field.name
            if field.name not in there:
                yield inside
            else:
                yield from _added(field.type, there[field.name], inside)
    elif pa.types.is_map(kind) and known["type"] == "map":
        parts = [(kind.key_type, known["keyType"]), (kind.item_type, known["valueType"])]
    elif _is_list(kind) and known["type"] == "array":
        parts = [(kind.value_type, known["elementType"])]
    else:
        raise _OtherTypeError(path)
    for inner, there in parts:
        yield from _added(inner, there, path)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
