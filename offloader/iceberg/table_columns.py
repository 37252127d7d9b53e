"""The Delta table's columns as Iceberg's: by name, because the files have no field ids."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.types import IcebergType, ListType, MapType, StructType

from reader.errors import UnsupportedError

__all__ = ["grow", "lacks", "name_mapping"]

_MAPPING = "schema.name-mapping.default"


def name_mapping(schema: Schema) -> dict[str, str]:
    """The property by which readers find the columns of files that have no field ids.

    Iceberg's specification, "Column Projection" and "Name Mapping Serialization".
    """
    return {_MAPPING: schema.name_mapping.model_dump_json()}


def lacks(schema: Schema, columns: pa.Schema) -> bool:
    """Whether ``columns`` has any, or any member of a struct, that ``schema`` has not."""
    return _struct_lacks(schema.as_struct(), list(columns))


def grow(change: Transaction, columns: pa.Schema) -> None:
    """Add what is missing. Raises UnsupportedError where Iceberg cannot have it.

    The name mapping grows with it: PyIceberg sees to that where a table has one.
    """
    try:
        with change.update_schema() as update:
            update.union_by_name(columns)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise UnsupportedError(f"Iceberg cannot have these columns: {error}") from error


def _struct_lacks(known: StructType, fields: list[pa.Field]) -> bool:
    there = {field.name: field.field_type for field in known.fields}
    return any(one.name not in there or _lacks(there[one.name], one.type) for one in fields)


def _lacks(known: IcebergType, kind: Any) -> bool:
    if isinstance(known, StructType) and pa.types.is_struct(kind):
        return _struct_lacks(known, list(kind.fields))
    if isinstance(known, MapType) and pa.types.is_map(kind):
        return _lacks(known.value_type, kind.item_type)
    if isinstance(known, ListType) and pa.types.is_list(kind):
        return _lacks(known.element_type, kind.value_type)
    return False
