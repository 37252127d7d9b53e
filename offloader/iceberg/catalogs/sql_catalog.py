"""PyIceberg's catalog in a database, which makes a table with the commit of its first snapshot.

So no reader ever sees the table without rows. PyIceberg stages tables for catalogs in databases as
well, but only for namespaces of one level.
"""

from typing import Literal

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from offloader.iceberg.table_transactions import CreatingTransaction

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
    ) -> CreatingTransaction:
        """Return the transaction that makes a table. ``location``: the table's, a URI."""
        assert location is not None  # who follows knows where
        metadata = new_table_metadata(
            schema=self._convert_schema_if_needed(schema, _FORMAT_VERSION),
            partition_spec=partition_spec,
            sort_order=sort_order,
            location=location,
            properties=dict(properties),
        )
        return CreatingTransaction(
            StagedTable(
                identifier=Catalog.identifier_to_tuple(identifier),
                metadata=metadata,
                metadata_location=f"{location}/metadata/none.metadata.json",  # the commit makes it
                io=load_file_io(self.properties, location),
                catalog=self,
            )
        )
