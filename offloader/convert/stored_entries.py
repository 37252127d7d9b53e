"""The entries of a partition, from where ``offload.source`` says."""

from collections.abc import Mapping
from typing import Literal

from reader.clients import Clients
from reader.model import Partition, Stored
from reader.sources import BrokerEntries, EntrySource, StoredEntries

Source = Literal["bookkeeper", "broker"]


def stored_entries(
    clients: Clients,
    partition: Partition,
    source: Source,
    known: Mapping[int, Stored] | None = None,
) -> EntrySource:
    """``known``: by what ledgers are read; see ``StoredEntries``."""
    if source == "broker":
        return BrokerEntries(clients, partition)
    return StoredEntries(clients, partition, known)
