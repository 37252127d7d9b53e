"""Where rows come from: one file a source, behind the interfaces and the contract of ``base``.

A new source is a new file here, a stage in ``fallback``, a line in ``split_reader`` and a subclass
of the contract kit (``tests/contract/kit.py``). Which tier a segment is *planned* for is decided
in ``reader.plan``. Imports ``reader.{bookkeeper,decode,kernels,model,payload,plan,pulsar,storage,
table,tiered}``; not Spark.

    base            the interfaces: entry source, row source, and their contract
    source_clients  SourceClients: what sources ask of the clients
    broker          entries through the broker
    compacted       rows out of the ledgers that Pulsar's compaction writes
    encrypted       encrypted entries that a table holds, decrypted when they are read
    entry_rows      rows of an entry source: fetched, decoded, built
    fallback        which source follows which when one fails
    lookback        the rest of a partition: chunks and transactions before and behind a range
    moved_ledger    rows of a ledger that has moved to the table since the snapshot
    parquet_files   rows out of a table's Parquet files
    reading         read_rows: the one executor of what is planned
    stored          entries from the bookies, and from the objects of Pulsar's tiered storage
    rows            messages to rows: metadata, payload columns, what had to be rescued
    salvage         what can be read of a ledger that is declared lost
    split_reader    splits read one after the other, from whichever source can give them
"""

from reader.sources.base import EntrySource
from reader.sources.broker import BrokerEntries
from reader.sources.lookback import Lookback
from reader.sources.reading import read_rows
from reader.sources.rows import RowBuilder, RowFormat, conform
from reader.sources.stored import StoredEntries

__all__ = [
    "BrokerEntries",
    "EntrySource",
    "Lookback",
    "RowBuilder",
    "RowFormat",
    "StoredEntries",
    "conform",
    "read_rows",
]
