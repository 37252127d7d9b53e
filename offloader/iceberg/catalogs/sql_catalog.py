"""PyIceberg's catalog in a database, which can make a table with its first rows in one commit."""

from __future__ import annotations

from typing import Literal

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CreateTableTransaction
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from offloader.iceberg.catalogs.staged_table import staged_table

__all__ = ["DatabaseCatalog"]

_FORMAT_VERSION: Literal[2] = 2


class DatabaseCatalog(SqlCatalog):
    """PyIceberg's, also for namespaces of more than one level."""

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> CreateTableTransaction:
        assert location is not None  # who follows knows where
        return staged_table(
            self,
            load_file_io(self.properties, location),
            identifier,
            self._convert_schema_if_needed(schema, _FORMAT_VERSION),
            location,
            partition_spec,
            sort_order,
            properties,
        )
