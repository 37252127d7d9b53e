"""The Delta table's columns as Iceberg's: by name, because the files have no field ids."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction

from reader.errors import UnsupportedError, plain_text

__all__ = ["grow", "name_mapping"]

_MAPPING = "schema.name-mapping.default"


def name_mapping(schema: Schema) -> dict[str, str]:
    """The property by which readers find the columns of files that have no field ids.

    Iceberg's specification, "Column Projection" and "Name Mapping Serialization".
    """
    return {_MAPPING: schema.name_mapping.model_dump_json()}


def grow(change: Transaction, columns: pa.Schema) -> None:
    """Add what is missing, if anything. Raises UnsupportedError where Iceberg cannot have it: also
    a column of another type than before, as in a table that was made again.

    The name mapping grows with it: PyIceberg sees to that where a table has one.
    """
    try:
        with change.update_schema() as update:
            update.union_by_name(columns)
    except (ValidationError, ValueError, TypeError, NotImplementedError) as error:
        raise UnsupportedError(
            f"Iceberg cannot have these columns: {plain_text(error)}",
            hint="where a column's type is another one than before, drop the Iceberg table: it is "
            "made again",
        ) from error
