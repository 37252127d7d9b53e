"""What the offloader writes, and the interface, by verbs, of what writes it.

    verbs        LakeWriter, LakeCommitter, LakeFollower: the contract of all writing
    addition     what a commit adds to a table: files, watermarks, what is said of each ledger
    replacement  what a commit of maintenance takes out of a table and puts in
    files        files of a table: what tasks write into them, and what vacuum finds unused

Nothing here writes: ``parquet``, ``commit`` and ``iceberg`` do. Imports ``model`` and ``reader``.
"""

from offloader.output.addition import Addition, Advance
from offloader.output.files import LedgerRows, UnusedFile, WrittenFile
from offloader.output.replacement import ExpiredRows, Replacement
from offloader.output.verbs import LakeCommitter, LakeFollower, LakeWriter

__all__ = [
    "Addition",
    "Advance",
    "ExpiredRows",
    "LakeCommitter",
    "LakeFollower",
    "LakeWriter",
    "LedgerRows",
    "Replacement",
    "UnusedFile",
    "WrittenFile",
]
