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
    row_format      RowFormat: how messages become rows
    rows            messages to rows: metadata, payload columns, what had to be rescued
    salvage         what can be read of a ledger that is declared lost
    split_reader    splits read one after the other, from whichever source can give them
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat, conform

if TYPE_CHECKING:  # kernels: not where only files are read
    from reader.sources.base import EntrySource
    from reader.sources.broker import BrokerEntries
    from reader.sources.lookback import Lookback
    from reader.sources.rows import RowBuilder
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
_WITH_KERNELS = {
    "BrokerEntries": "broker",
    "EntrySource": "base",
    "Lookback": "lookback",
    "RowBuilder": "rows",
    "StoredEntries": "stored",
}


def __getattr__(name: str) -> Any:
    if name not in _WITH_KERNELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WITH_KERNELS[name]}"), name)
