"""Pulsar's binary protocol: what a broker gives of a topic, as it is stored.

    broker_client      BrokerClient: entries, the last position, schemas
    broker_requests    what the two share: connections, requests until they are answered
    publisher          Publisher: producers where their topics are served, newest schemas
    producer           a producer: the send window, receipts
    consumer           a subscription: permits, the end, entries as blocks
    topic_lookup       which broker serves a topic, redirects and proxies; the open connections
    broker_connection  one socket: TLS, authentication, keep-alive, requests and answers
    frames             what was received, taken apart in bulk: entries and commands
    commands           frames around commands, which ``reader.wire`` defines
    schema_messages    schemas as brokers write them
    broker_errors      what a broker refuses, as our errors
    service_address    pulsar:// URLs

A door of its own beside ``reader.pulsar``, which loads no kernels. Imports ``reader.pulsar``'s
credentials, ``reader.config``, ``reader.model``, ``reader.errors``, ``reader.closing``,
``reader.kernels``, ``reader.wire`` and ``reader.tls``.
"""

from reader.pulsar.binary.broker_client import BrokerClient
from reader.pulsar.binary.frames import prewarm
from reader.pulsar.binary.producer import OutgoingEntry, Producer
from reader.pulsar.binary.publisher import Publisher
from reader.pulsar.binary.service_address import parse_service_url

__all__ = ["BrokerClient", "OutgoingEntry", "Producer", "Publisher", "parse_service_url", "prewarm"]
