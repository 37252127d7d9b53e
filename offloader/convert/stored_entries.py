"""The entries of a partition, from where ``offload.source`` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from reader.clients import Clients
from reader.model import LedgerMetadata, Partition
from reader.sources import BookKeeperEntries, BrokerEntries, EntrySource

__all__ = ["Source", "stored_entries"]

Source = Literal["bookkeeper", "broker"]


def stored_entries(
    clients: Clients,
    partition: Partition,
    source: Source,
    known: Mapping[int, LedgerMetadata] | None = None,
) -> EntrySource:
    """``known``: metadata of ledgers that the bookies are asked by; see ``BookKeeperEntries``."""
    if source == "broker":
        return BrokerEntries(clients, partition)
    return BookKeeperEntries(clients, partition, known)
