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
    offloaded_ledgers  what a commit says of the ledgers that it added
    reading_errors     what can go wrong while log and files are read
    txn                names of the numbers that the log keeps
    properties         names of the table's properties
    remembered_schemas  schema versions as the text of a property

Reads only: nothing here commits (``offloader/commit``). Imports ``reader.storage``,
``reader.model``, ``reader.errors`` and ``reader.background``. Format: ``docs/formats.md``, "The
Delta log".
"""

from __future__ import annotations

from reader.table.external_features import foreign_features, require_readable
from reader.table.file_paths import is_inside, stored_name
from reader.table.followed_tables import MOST_FILES, FollowedTables
from reader.table.log import (
    AddedFile,
    FileChanges,
    LoggedCommit,
    read_file_changes,
    records_upto,
)
from reader.table.offloaded_ledgers import (
    LEDGERS_KEY,
    OffloadedLedger,
    decode_ledgers,
    encode_ledgers,
)
from reader.table.properties import CLUSTER_KEY, CREATED_KEY, PARTITIONS_KEY, SCHEMAS_KEY
from reader.table.reading_errors import file_errors
from reader.table.remembered_schemas import decode_schemas, encode_schemas
from reader.table.topic_table import TopicTable
from reader.table.txn import (
    added_key,
    ciphertext_key,
    closed_keys,
    compaction_start_key,
    data_loss_key,
    earlier_key,
    expected_key,
    expired_before_key,
    expired_from_key,
    expired_given_up_keys,
    expired_keys,
    first_keys,
    given_up_keys,
    last_entry_key,
    lookback_keys,
    open_key,
)

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
    "TopicTable",
    "added_key",
    "ciphertext_key",
    "closed_keys",
    "compaction_start_key",
    "data_loss_key",
    "decode_ledgers",
    "decode_schemas",
    "earlier_key",
    "encode_ledgers",
    "encode_schemas",
    "expected_key",
    "expired_before_key",
    "expired_from_key",
    "expired_given_up_keys",
    "expired_keys",
    "file_errors",
    "first_keys",
    "foreign_features",
    "given_up_keys",
    "is_inside",
    "last_entry_key",
    "lookback_keys",
    "open_key",
    "read_file_changes",
    "records_upto",
    "require_readable",
    "stored_name",
]
