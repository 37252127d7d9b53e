"""Ledgers straight from the bookies, over BookKeeper's own protocol.

    wire         the v3 protocol's read: codecs without I/O
    digest       the digest in front of every entry
    connection   one socket to one bookie
    client       entries of a ledger, over all its replicas
    metadata     ledger metadata out of the admin REST's text

Nothing here ever fences or recovers a ledger. Imports ``reader.model``, ``errors``, ``closing``,
``crc32c``.
"""

from __future__ import annotations

from reader.bookkeeper.client import BookKeeperClient
from reader.bookkeeper.metadata import parse_ledger_metadata

__all__ = ["BookKeeperClient", "parse_ledger_metadata"]
