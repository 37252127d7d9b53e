"""A table that is not there yet: it comes with the commit of its first snapshot.

So no reader ever sees it without rows. PyIceberg stages tables for its catalogs, too, but where
there are no servers that do it, only for namespaces of one level.
"""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import SortOrder
from pyiceberg.typedef import Identifier, Properties

from offloader.iceberg.table_transactions import CreatingTransaction

__all__ = ["staged_table"]


def staged_table(
    catalog: Catalog,
    files: FileIO,
    identifier: str | Identifier,
    schema: Schema,
    location: str,
    partition_spec: PartitionSpec,
    sort_order: SortOrder,
    properties: Properties,
) -> CreatingTransaction:
    """Return what ``catalog.create_table_transaction`` does. ``location``: the table's, a URI."""
    metadata = new_table_metadata(
        schema=schema,
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
            io=files,
            catalog=catalog,
        )
    )
