"""Rows out of the ledgers that Pulsar's compaction writes, of which it has deleted the originals.

    raw_messages    entries of a compacted ledger to entries of the partition
    compacted_rows  the rows of a partition's compacted ledger

Imports ``reader.{decode,errors,model,plan,pulsar,wire}`` and
``reader.sources.{base,rows,source_clients}``.
"""

from reader.sources.compacted.compacted_rows import read_compacted

__all__ = ["read_compacted"]
