"""The catalogs in which Iceberg's readers find the tables.

    opening            the catalog that the settings name
    table_names        what a topic is called there, and where its metadata are
    rest_catalog       PyIceberg's REST catalog, with time limits
    sql_catalog        PyIceberg's catalog in a database, which makes a table with its first rows
    catalog_errors     what PyIceberg and catalogs' clients raise, as errors of ours

Imports ``storage_files`` and ``table_transactions`` of the room above, ``config`` and ``reader``.
"""

from offloader.iceberg.catalogs.catalog_errors import catalog_errors
from offloader.iceberg.catalogs.opening import check_options, open_catalog
from offloader.iceberg.catalogs.table_names import directory_of, identifier_of

__all__ = ["catalog_errors", "check_options", "directory_of", "identifier_of", "open_catalog"]
