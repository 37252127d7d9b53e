"""Which default of a schema is written where rows have no column for its field.

SQL fills a left-out column before rows are encoded, and only with a plain value. The same fields
have their defaults in rows of a DataFrame.
"""

import math
from dataclasses import dataclass
from typing import Any

from reader.encode.payload.arrow_columns.unions import null_index
from reader.model import SchemaInfo
from reader.payload.avro_schema import Enum, Node, Primitive, Record, Schema, Union
from reader.payload.column_types import mapped_union
from reader.payload.json.numbers import exact_double
from reader.payload.registry import registry_of

_MOST_FLOAT = 3.4028234663852886e38
Plain = bool | int | float | str


@dataclass(frozen=True, slots=True)
class FieldDefault:
    """The default of a field of a record.

    ``plain``: as the column shows the default; None if it is null, of a logical type, not of the
    field's type, or not a boolean, a number or a text.
    """

    field: str
    plain: Plain | None
    can_be_null: bool


def field_defaults(schema: SchemaInfo) -> list[FieldDefault]:
    """Return the defaults of the record of an AVRO or JSON schema."""
    value = registry_of([schema]).versions[0].value
    root = value.schema.root if isinstance(value.schema, Schema) else None
    if schema.type not in ("AVRO", "JSON") or not isinstance(root, Record):
        return []
    return [
        FieldDefault(name, _plain(node, root.defaults[name]), null_index(node) is not None)
        for name, node in root.fields
        if name in root.defaults
    ]


def has_default(record: Record, name: str, field: Node) -> bool:
    """Return whether a row without a column for the field ``name`` has the field's default.

    A field that may be null is null instead if the default is not plain.
    """
    if name not in record.defaults:
        return False
    return null_index(field) is None or _plain(field, record.defaults[name]) is not None


def _plain(node: Node, value: Any) -> Plain | None:
    branches = mapped_union(node) if isinstance(node, Union) else (node,)
    if len(branches) != 1:
        return None
    match branches[0]:
        case Enum(symbols=symbols):
            return value if type(value) is str and value in symbols else None
        case Primitive(kind="string", logical=None):
            return value if type(value) is str else None
        case Primitive(kind="boolean"):
            return value if type(value) is bool else None
        case Primitive(kind="int" | "long" as kind, logical=None):
            limit = 1 << (31 if kind == "int" else 63)
            return value if type(value) is int and -limit <= value < limit else None
        case Primitive(kind="float" | "double" as kind):
            if type(value) not in (int, float) or exact_double(str(value)) is None:
                return None
            fits = math.isfinite(value) and (kind == "double" or abs(value) <= _MOST_FLOAT)
            return value if fits else None
    return None
