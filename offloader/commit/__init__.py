"""From files to a version of a topic's Delta table: appends, replacements, what else is checked.

    append                files and watermarks, in one commit; the rules of all commits
    replace               files for files: what maintenance commits
    addition              what an append adds: files, watermarks, what is said of each ledger
    actions               what every commit is made of: its marks, its add actions
    retry                 a commit, tried until the log has it
    schema_changes        what is not rows: a table's first version, its columns and properties
    schema_compatibility  whether columns of one type can be read as columns of another (pure)
    file_age              how long after it was written a file may still be committed
    table_features        which features of Delta's protocol a table may have
    external_commits      commits that are not ours, found in the log and named

Nothing here reads a message or deletes a file. Imports ``parquet``, ``model``, ``config``
and ``reader``.
"""

__all__: list[str] = []
