"""Which features of Delta's protocol a table may have to be read as plain Parquet files."""

from reader.errors import UnsupportedError
from reader.table.topic_table import TopicTable

_OURS = {"timestampNtz"}  # no other needs a reader that heeds it
_MAPPING = "delta.columnMapping.mode"


def foreign_features(table: TopicTable) -> list[str]:
    """What an external writer has given the table that changes how its files are read.

    With deletion vectors not all rows of a file are the table's, with column mapping they have
    other names, and partition columns are not in the files at all.
    """
    protocol = table.protocol
    found = set(protocol.reader_features or ()) - _OURS
    if protocol.min_reader_version == 2 or table.configuration.get(_MAPPING, "none") != "none":
        found.add("columnMapping")
    if table.partition_columns:
        found.add("partition columns")
    return sorted(found)


def require_readable(table: TopicTable) -> None:
    """Raises UnsupportedError for a table whose files alone are not its rows."""
    if found := foreign_features(table):
        raise UnsupportedError(
            f"the table of {table.topic} has {', '.join(found)}, which only Delta's own reader "
            "knows",
            hint="an external writer added it; purge it and drop the feature (REORG TABLE … APPLY "
            "(PURGE), ALTER TABLE … DROP FEATURE), or query the table by its path with Delta",
        )
