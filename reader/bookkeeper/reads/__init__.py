"""What is asked of which bookie, and what follows from the answers. No sockets, no clock.

The retry policy: ``entry_reads`` decides when an entry is requested again, and ``bookie_health`` of
which replica.

    ledger_reads     LedgerReads: the rules; actions to perform, from what arrived and the time
    read_messages    the actions, and what arrives: values
    block_planner    ranges of entries, split into blocks
    range_reads      blocks by one range read each
    entry_reads      blocks entry by entry, over all replicas
    pending_block    PendingBlock: a block whose entries are requested
    pending_entries  PendingEntries: the entries of a block that arrive one by one
    entry_retry      EntryRetry: one entry that is requested from one replica after the other
    outstanding      OutstandingRequests: how long bookies have not answered
    bookie_health    BookieHealth: which bookies failed or were slow, and which one is asked next
    silent_bookies   SilentBookies: those that all clients of a process leave alone for a while

Imports only ``reader.model``, ``reader.kernels``, ``reader.errors``, and the codecs
``reader.bookkeeper.v2``, ``v3`` and ``digest``.
"""

from reader.bookkeeper.reads.bookie_health import BookieHealth
from reader.bookkeeper.reads.ledger_reads import LedgerReads
from reader.bookkeeper.reads.silent_bookies import SilentBookies

__all__ = ["BookieHealth", "LedgerReads", "SilentBookies"]
