"""Commit.

append               Files and watermarks into the Delta log, in one commit. What else comm
external_commits     Commits that are not ours, found in the log and named: RESTORE, DELETE
file_age             How long after it was written a file may still be committed.
replace              Files for files in the Delta log: what maintenance commits. Watermarks stay
retry                A commit, tried until the log has it: rules 2 and 3 of ``commit.py``;
schema_compatibility Whether columns of one type fit columns of another. Pure.
table_features       What of Delta's protocol a table of ours has, and no more: who writes
"""

__all__: list[str] = []
