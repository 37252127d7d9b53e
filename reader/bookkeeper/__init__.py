"""Ledgers straight from the bookies, over BookKeeper's own protocol.

    wire         the v3 protocol's read: codecs without I/O
    batch_wire   the v2 protocol's read of a range: the same
    digest       the digest in front of every entry
    session_wire, digest_md5, session    TLS and identity, before anything is read
    connection   one socket to one bookie
    bookies      all of them, and who failed lately
    singles      entries one by one, over all their replicas
    batches      ranges of entries, of ledgers that are not striped; singles where that fails
    client       the one or the other
    metadata     ledger metadata out of the admin REST's text

Nothing here ever fences or recovers a ledger. Imports ``reader.model``, ``errors``, ``closing``,
``crc32c``, ``kernels``, ``memory``, ``tls``.
"""

from __future__ import annotations

from reader.bookkeeper.client import BookKeeperClient
from reader.bookkeeper.handshake import BookieAccess
from reader.pulsar.ledger_metadata import parse_ledger_metadata

__all__ = ["BookKeeperClient", "BookieAccess", "parse_ledger_metadata"]
