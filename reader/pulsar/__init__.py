"""What Pulsar tells of itself: its admin REST by concern, and who we are to it.

    admin            AdminClient: all requests, over one pool of connections
    http             the connections: redirections, identity, refusals; AdminPart
    topics           tenants, namespaces, topics, partitions, loaded topics
    ledgers          a partition's ledgers and its end
    ledger_metadata  what is known of one ledger, out of the text that Pulsar prints
    schemas          a topic's schema versions
    policies         what Pulsar would delete by itself; settings of the broker
    subscriptions    the hold: made, marked, moved
    transactions     which positions open transactions hide, which were aborted
    permissions      whether we may consume a topic
    credentials      the token, given or fetched by OAuth2

No decisions here: what follows from an answer is the caller's. Imports ``reader.config``,
``reader.model``, ``reader.errors``, ``reader.rotation``, ``reader.tls`` and ``reader.closing``.
"""

from __future__ import annotations

from reader.pulsar.admin import AdminClient
from reader.pulsar.credentials import current_token, identity_files, token_supplier
from reader.pulsar.ledgers import LedgerInfo, PartitionLedgers
from reader.pulsar.subscriptions import SubscriptionRequests
from reader.pulsar.topics import LoadedTopic, TopicRequests

__all__ = [
    "AdminClient",
    "LedgerInfo",
    "LoadedTopic",
    "PartitionLedgers",
    "SubscriptionRequests",
    "TopicRequests",
    "current_token",
    "identity_files",
    "token_supplier",
]
