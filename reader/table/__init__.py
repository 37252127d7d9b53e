"""A topic's Delta table as readers see it: the metadata index of what is cold.

The commit that adds a ledger's files also carries ``txn(appId = the partition's full name,
version = ledger id)``, so a table version *is* a set of watermarks: ledgers at or below it are in
the table, all others are not. More ``txn`` say how far back a message may begin that ends above
the watermark, which ledger is the next, when the last was closed, that some rows are ciphertext,
or that some messages are lost. The table's properties name the cluster and each partition's
creation time.

    topic_table        TopicTable: one version of a table
    followed_tables    the newest version, by the commits since the one that is known
    definition         what a version says of itself: identity, properties, columns
    external_features  what an external writer may have changed about how files are read
    file_paths         files lie below the table's directory, whatever its log says
    log                single commits, and the log from the newest one back
    log_numbers        the numbers that the log keeps of a topic and of each partition
    offloaded_ledgers  what a commit says of the ledgers that it added
    reading_errors     what can go wrong while log and files are read
    properties         names of the table's properties
    remembered_schemas  schema versions as the text of a property

Reads only: nothing here commits (``offloader/commit``). Imports ``reader.storage``,
``reader.model``, ``reader.errors`` and ``reader.background``. Format: ``docs/formats.md``, "The
Delta log".
"""

from reader.table.external_features import foreign_features, require_readable
from reader.table.file_paths import is_inside, stored_name
from reader.table.followed_tables import MOST_FILES, FollowedTables
from reader.table.log import AddedFile, FileChanges, LoggedCommit, read_file_changes, records_upto
from reader.table.log_numbers import PartitionNumbers, TopicNumbers
from reader.table.offloaded_ledgers import LEDGERS_KEY, OffloadedLedger, encode_ledgers
from reader.table.properties import CLUSTER_KEY, CREATED_KEY, PARTITIONS_KEY, SCHEMAS_KEY
from reader.table.reading_errors import file_errors
from reader.table.remembered_schemas import decode_schemas, encode_schemas
from reader.table.topic_table import TopicTable

__all__ = [
    "CLUSTER_KEY",
    "CREATED_KEY",
    "LEDGERS_KEY",
    "MOST_FILES",
    "PARTITIONS_KEY",
    "SCHEMAS_KEY",
    "AddedFile",
    "FileChanges",
    "FollowedTables",
    "LoggedCommit",
    "OffloadedLedger",
    "PartitionNumbers",
    "TopicNumbers",
    "TopicTable",
    "decode_schemas",
    "encode_ledgers",
    "encode_schemas",
    "file_errors",
    "foreign_features",
    "is_inside",
    "read_file_changes",
    "records_upto",
    "require_readable",
    "stored_name",
]
