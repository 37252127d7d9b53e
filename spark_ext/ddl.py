"""Arrow types as Spark's DDL text, which the planner hands to the JVM.

Only types that a table can have: others never reach a snapshot's columns.
Source: Spark's SQL reference, "Data Types".
"""

from collections.abc import Iterable

import pyarrow as pa

from reader.errors import UnsupportedError

_PLAIN = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.date32(): "DATE",
}


def quoted(*parts: str) -> str:
    """A name of several parts as an SQL identifier: any text is safe in it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def string_literal(text: str) -> str:
    """Return an SQL expression of a text, which means the same in each session.

    ``spark.sql.parser.escapedStringLiterals`` decides what a backslash means in a literal, so a
    text with a quote or a backslash is written as bytes.
    """
    if "'" in text or "\\" in text:
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return f"'{text}'"


def columns_ddl(fields: Iterable[pa.Field]) -> str:
    """``name type, …``, as Spark reads a schema; all nullable."""
    return ", ".join(f"{quoted(field.name)} {type_ddl(field.type)}" for field in fields)


def type_ddl(kind: pa.DataType) -> str:
    """One type. Raises UnsupportedError for one that Spark does not have."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_timestamp(kind):
        # By its full name: spark.sql.timestampType may change what TIMESTAMP means.
        return "TIMESTAMP_LTZ" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        inner = (f"{quoted(field.name)}: {type_ddl(field.type)}" for field in kind)
        return f"STRUCT<{', '.join(inner)}>"
    if pa.types.is_map(kind):
        return f"MAP<{type_ddl(kind.key_type)}, {type_ddl(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"ARRAY<{type_ddl(kind.value_type)}>"
    raise UnsupportedError(f"Spark has no type for Arrow's {kind}")


def literal(value: bool | int | float | str, kind: pa.DataType) -> str:
    """A value of a type as an SQL expression."""
    if isinstance(value, str):  # a setting of Spark's changes what a backslash means
        return f"CAST(X'{value.encode().hex()}' AS {type_ddl(kind)})"
    return f"CAST('{value}' AS {type_ddl(kind)})"


def null(kind: pa.DataType) -> str:
    """NULL of a type, as an SQL expression."""
    return f"CAST(NULL AS {type_ddl(kind)})"


def grown(text: str, old: pa.DataType, new: pa.DataType) -> str:
    """The SQL expression ``text`` of type ``old`` as ``new``, which has more struct members.

    The expression itself where the types are equal.
    """
    if type_ddl(old) == type_ddl(new):
        return text
    if pa.types.is_struct(new):
        there = {field.name: field.type for field in old}
        members = []
        for field in new:
            inner = f"{text}.{quoted(field.name)}"
            there_already = field.name in there
            value = (
                grown(inner, there[field.name], field.type) if there_already else null(field.type)
            )
            members.append(f"{string_literal(field.name)}, {value}")
        made = f"named_struct({', '.join(members)})"
    elif pa.types.is_map(new):
        value = grown("v", old.item_type, new.item_type)
        made = f"transform_values({text}, (k, v) -> {value})"
    else:
        made = f"transform({text}, v -> {grown('v', old.value_type, new.value_type)})"
    return f"CASE WHEN {text} IS NOT NULL THEN {made} END"
