"""What of Delta's protocol a table of ours has, and no more: who writes would have to heed it."""

from __future__ import annotations

from reader.errors import UnsupportedError
from reader.table import TopicTable

__all__ = ["check_protocol"]

_FEATURES = {"timestampNtz"}  # what a new file needs no care for
_MAPPING = "delta.columnMapping.mode"


def check_protocol(table: TopicTable) -> None:
    """Raises UnsupportedError for a table that a stranger has changed too much.

    With deletion vectors, a file that is rewritten would bring deleted rows back; with column
    mapping, readers would not find the columns of a file of ours.
    """
    protocol = table.handle.protocol()
    found = set(protocol.reader_features or ()) - _FEATURES
    if protocol.min_reader_version == 2 or table.configuration.get(_MAPPING, "none") != "none":
        found.add("columnMapping")
    if found:
        raise UnsupportedError(
            f"the table of {table.topic} has {', '.join(sorted(found))}, which is not ours: "
            "nothing is committed to it",
            hint="only the offloader may change the table: see pulsar-lake status",
        )
