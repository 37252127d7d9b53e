"""From files to a version of a topic's Delta table: commits, what they check, and vacuum.

    delta_committer       DeltaCommitter: additions and replacements, and the rules of all commits
    actions               what every commit is made of: its marks, its add actions
    retry                 a commit, tried until the log has it
    schema_changes        what is not rows: a table's first version, its columns and properties
    schema_compatibility  whether columns of one type can be read as columns of another (pure)
    file_age              how long after it was written a file may still be committed
    table_features        which features of Delta's protocol a table may have
    external_commits      commits that are not ours, found in the log and named
    storage_clock         whether this host and the storage agree what time it is
    vacuum                files that no table version in the window refers to, removed

Nothing here reads a message, and only ``vacuum`` deletes a file. Imports ``parquet``, ``output``,
``model``, ``config`` and ``reader``.
"""

from offloader.commit.delta_committer import DeltaCommitter
from offloader.commit.external_commits import ExternalCommit, ExternalCommits, external_commit
from offloader.commit.file_age import max_file_age_ms
from offloader.commit.schema_changes import recorded_statistics
from offloader.commit.schema_compatibility import is_compatible
from offloader.commit.storage_clock import check_clock, storage_clock_ms
from offloader.commit.table_features import check_table_features

__all__ = [
    "DeltaCommitter",
    "ExternalCommit",
    "ExternalCommits",
    "check_clock",
    "check_table_features",
    "external_commit",
    "is_compatible",
    "max_file_age_ms",
    "recorded_statistics",
    "storage_clock_ms",
]
