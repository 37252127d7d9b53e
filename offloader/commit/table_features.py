"""Which features of Delta's protocol a table may have for us to write to it."""

from __future__ import annotations

from reader.errors import UnsupportedError
from reader.table import TopicTable

__all__ = ["check_table_features"]

_FEATURES = {"timestampNtz"}  # no other needs a writer that heeds it
_MAPPING = "delta.columnMapping.mode"


def check_table_features(table: TopicTable) -> None:
    """Raises UnsupportedError for a table that an external writer has changed too much.

    With deletion vectors, a file that is rewritten would bring deleted rows back; with column
    mapping, readers would not find the columns of a file of ours.
    """
    protocol = table.protocol
    found = set(protocol.reader_features or ()) - _FEATURES
    if protocol.min_reader_version == 2 or table.configuration.get(_MAPPING, "none") != "none":
        found.add("columnMapping")
    if found:
        raise UnsupportedError(
            f"the table of {table.topic} has {', '.join(sorted(found))}, which is not ours: "
            "nothing is committed to it",
            hint="only the offloader may change the table: see pulsar-lake status",
        )
