"""Ledgers read straight from the bookies, over BookKeeper's own protocol.

    client              BookKeeperClient: ranges of entries, as blocks; sends, waits and receives
    reads               what is asked of which bookie, and what follows from the answers; no sockets
    bookie_connections  BookieConnections: the open connections of a client
    connection          one socket to one bookie, for one of the two protocols
    bookie_session      TLS and authentication at the start of a connection
    v2                  codec of the v2 protocol's batch read
    v3                  codec of the v3 protocol: frames, reads of entries
    digest              the digest of an entry
    probe               a diagnosis: whether a bookie answers at all, and has an entry
    prewarm             compiles the kernels before the first query needs them

Nothing here ever fences or recovers a ledger. Imports only ``reader.model``, ``reader.kernels``,
``reader.wire``, ``reader.errors``, ``reader.closing`` and ``reader.tls``.
"""

from reader.bookkeeper.bookie_session import BookieAccess
from reader.bookkeeper.client import BookKeeperClient
from reader.bookkeeper.prewarm import prewarm
from reader.bookkeeper.probe import BookieAnswer, bookie_address, probe_bookie
from reader.bookkeeper.reads import SilentBookies

__all__ = [
    "BookKeeperClient",
    "BookieAccess",
    "BookieAnswer",
    "SilentBookies",
    "bookie_address",
    "prewarm",
    "probe_bookie",
]
