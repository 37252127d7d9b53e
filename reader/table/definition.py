"""What a version of a table says of itself: its identity, properties and columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.table import ProtocolVersions


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """``metaData`` and ``protocol`` of the Delta protocol, as the newest of each up to a version.

    ``schema``: Arrow's, in the table's order.
    """

    id: str
    configuration: Mapping[str, str]
    schema: pa.Schema
    protocol: ProtocolVersions
    partition_columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, handle: DeltaTable) -> Self:
        """Of the handle's version."""
        metadata = handle.metadata()
        columns = pa.schema(handle.schema().to_arrow())
        return cls(
            id=str(metadata.id),
            configuration=dict(metadata.configuration),
            schema=pa.schema([_plain_field(one) for one in columns]),
            protocol=handle.protocol(),
            partition_columns=tuple(metadata.partition_columns),
        )


def _plain_field(field: pa.Field) -> pa.Field:
    """Return the field with its metadata, which says what the column stands for."""
    return pa.field(field.name, _plain(field.type), metadata=field.metadata)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Arrow types as this project writes them: no views, no large variants, usual field names."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(field) for field in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    return kind
