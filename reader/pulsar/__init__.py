"""What Pulsar tells of itself: its admin REST by concern, and who we are to it.

    admin            AdminClient: all requests, over one pool of connections
    answers          HTTP answers of a bounded size
    http             the connections: redirections, identity, refusals; AdminPart
    topics           tenants, namespaces, topics, partitions, loaded topics, schemas
    ledgers          a partition's ledgers and its end
    entries          what a single entry is
    ledger_metadata  what is known of one ledger, out of the text that Pulsar prints
    policies         what Pulsar would delete by itself; settings of the broker
    subscriptions    the hold: made, marked, moved; the table that it names
    transactions     which positions open transactions hide, which were aborted
    permissions      whether we may consume a topic
    credentials      the token, given or fetched by OAuth2
    binary           the brokers' own protocol; a door of its own, as it loads kernels

No decisions here: what follows from an answer is the caller's. Imports ``reader.config``,
``reader.model``, ``reader.errors``, ``reader.rotation``, ``reader.tls``, ``reader.closing`` and,
for the brokers' protocol alone, ``reader.kernels`` and ``reader.wire``.
"""

from reader.pulsar.admin import AdminClient
from reader.pulsar.ledgers import NO_LOG, CompactedLedger, LedgerInfo, LogEnd, PartitionLedgers
from reader.pulsar.subscriptions import (
    LOST_KEY,
    PARTITION_KEY,
    TABLE_ID_KEY,
    TABLE_KEY,
    WATERMARK_KEY,
    HeldTable,
    SubscriptionRequests,
)
from reader.pulsar.topics import LoadedTopic, TopicRequests

__all__ = [
    "LOST_KEY",
    "NO_LOG",
    "PARTITION_KEY",
    "TABLE_ID_KEY",
    "TABLE_KEY",
    "WATERMARK_KEY",
    "AdminClient",
    "CompactedLedger",
    "HeldTable",
    "LedgerInfo",
    "LoadedTopic",
    "LogEnd",
    "PartitionLedgers",
    "SubscriptionRequests",
    "TopicRequests",
]
