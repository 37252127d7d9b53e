"""Maintenance of the tables: small files compacted, old rows expired, unused files removed.

    aborted_since     rows that Pulsar has called aborted since, for a warning
    expired_rows      what a commit says of rows that expire
    merge             rows of several files of one partition as one ordered stream
    rewrite           several files into one
    selection         which files compaction and expiry replace (pure)
    staged            what writes to topics have staged and never sent, removed
    table_files       the files of one table version, with what their statistics say
    table_maintainer  all maintenance of one topic's table

Nothing here moves a watermark, and only ``aborted_since`` talks to Pulsar. Imports ``commit``
(which replaces files in the log, and deletes them), ``parquet`` (the writer), ``output``,
``model``, ``config`` and ``reader``.
"""

from offloader.maintenance.selection import GROWTH

__all__ = ["GROWTH"]
