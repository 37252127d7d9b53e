"""Commits, compaction, expiry and vacuum of tables in a directory, and on S3 where that differs."""
