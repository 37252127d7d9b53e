"""Ledgers read straight from the bookies, over BookKeeper's own protocol.

    client           BookKeeperClient: ranges of entries, as blocks, in their order
    piece            Piece: what is asked for together and becomes one block
    range_reads      RangeReads: pieces of ledgers that are not striped, each by one request
    entry_reads      EntryReads: entry by entry, over all replicas; also where a range read fails
    pool             BookiePool: connections, and which bookies failed recently
    connection       one socket to one bookie, for one of the two protocols
    handshake        TLS and authentication at the start of a connection
    v2               codec of the v2 protocol's batch read
    v3               codec of the v3 protocol: frames, reads of entries
    v3_handshake     codec of the v3 protocol: TLS and authentication
    sasl_digest_md5  SASL DIGEST-MD5
    digest           the digest of an entry

Nothing here ever fences or recovers a ledger. Imports only ``reader.model``, ``reader.kernels``,
``reader.errors``, ``reader.closing`` and ``reader.tls``.
"""

from __future__ import annotations

from reader.bookkeeper.client import BookKeeperClient
from reader.bookkeeper.handshake import BookieAccess

__all__ = ["BookKeeperClient", "BookieAccess"]
