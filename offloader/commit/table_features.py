"""Which features of Delta's protocol a table may have for us to write to it."""

from reader.errors import UnsupportedError
from reader.table import TopicTable, foreign_features


def check_table_features(table: TopicTable) -> None:
    """Raises UnsupportedError for a table that an external writer has changed too much.

    With deletion vectors, a file that is rewritten would bring deleted rows back; with column
    mapping, readers would not find the columns of a file of ours.
    """
    if found := foreign_features(table):
        raise UnsupportedError(
            f"the table of {table.topic} has {', '.join(found)}, which is not ours: "
            "nothing is committed to it",
            hint="only the offloader may change the table: see pulsar-lake status",
        )
