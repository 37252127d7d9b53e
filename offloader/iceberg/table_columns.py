"""The Delta table's columns as Iceberg's: by name, because the files have no field ids."""

import pyarrow as pa
from pyiceberg.exceptions import ValidationError
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.schema import Schema, index_by_id, index_name_by_id
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AssertCurrentSchemaId,
    SetCurrentSchemaUpdate,
    UpdatesAndRequirements,
    UpdateTableMetadata,
)
from pyiceberg.types import BinaryType, PrimitiveType, StringType

from reader.errors import UnsupportedError, plain_text

_MAPPING = "schema.name-mapping.default"
_TEXT_AND_BYTES = {StringType, BinaryType}


def name_mapping(schema: Schema) -> dict[str, str]:
    """The property by which readers find the columns of files that have no field ids.

    Iceberg's specification, "Column Projection" and "Name Mapping Serialization".
    """
    return {_MAPPING: schema.name_mapping.model_dump_json()}


def grow(change: Transaction, columns: pa.Schema) -> None:
    """Add what is missing, if anything, and map its names. Raises UnsupportedError where Iceberg
    cannot have it: also a column of another type than before, as in a table that was made again.
    """
    try:
        with change.update_schema() as update:
            update.union_by_name(columns)
        _refuse_text_for_bytes(change.table_metadata.schema(), columns)
    except (ValidationError, ValueError, TypeError, NotImplementedError) as error:
        raise UnsupportedError(
            f"Iceberg cannot have these columns: {plain_text(error)}",
            hint="where a column's type is another one than before, drop the Iceberg table: it is "
            "made again",
        ) from error
    wanted = name_mapping(change.table_metadata.schema())
    if change.table_metadata.properties.get(_MAPPING) != wanted[_MAPPING]:
        change.set_properties(wanted)


def _refuse_text_for_bytes(schema: Schema, columns: pa.Schema) -> None:
    """Raises ValueError where one has text and the other bytes: PyIceberg takes each for the other.

    Its readers would make text of any bytes, or fail.
    """
    given = pyarrow_to_schema(columns, name_mapping=schema.name_mapping)
    for number, one in index_by_id(given).items():
        there = schema.find_type(number)
        if {type(there), type(one.field_type)} == _TEXT_AND_BYTES:
            raise ValueError(
                f"{schema.find_column_name(number)} is {there}, and now {one.field_type}"
            )


def followed_schema(table: Table, newest: Snapshot | None) -> Schema:
    """The schema that the table has to have before it is followed.

    The current one, unless another writer has added, renamed, dropped, moved or retyped a column
    since ``newest``, our last snapshot: then that one's, with the ids that its files' bounds have.
    The order of columns, and what is said of them, are anybody's to change.
    """
    now = table.schema()
    ours = (
        table.schemas().get(newest.schema_id) if newest and newest.schema_id is not None else None
    )
    return now if ours is None or _columns(ours) == _columns(now) else ours


def put_back(change: Transaction, schema: Schema) -> None:
    """Make one of the table's schemas the current one."""
    _CurrentSchema(change, schema.schema_id).commit()


class _CurrentSchema(UpdateTableMetadata["_CurrentSchema"]):
    """PyIceberg can make a schema, and has no way back to one that there was."""

    def __init__(self, change: Transaction, schema_id: int) -> None:
        super().__init__(change)
        self._before = change.table_metadata.current_schema_id
        self._schema_id = schema_id

    def _commit(self) -> UpdatesAndRequirements:
        return (
            (SetCurrentSchemaUpdate.model_validate({"schema-id": self._schema_id}),),
            (AssertCurrentSchemaId.model_validate({"current-schema-id": self._before}),),
        )


def _columns(schema: Schema) -> dict[int, tuple[str, str]]:
    """By id: the path, and the type; of what has parts, only which kind it is."""
    names = index_name_by_id(schema)
    return {
        number: (
            names[number],
            str(one.field_type)
            if isinstance(one.field_type, PrimitiveType)
            else type(one.field_type).__name__,
        )
        for number, one in index_by_id(schema).items()
    }
