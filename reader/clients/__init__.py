"""All that is expensive to open: once a process, for all who read.

    open_clients  Clients: the clients of one configuration; those of this process
    lending       how clients for one thread at a time are lent and kept

Imports ``reader.bookkeeper``, ``reader.closing``, ``reader.config``, ``reader.decode``,
``reader.model``, ``reader.private_keys``, ``reader.pulsar``, ``reader.rotation``,
``reader.storage``, ``reader.table``, ``reader.tiered`` and ``reader.tls``: many of them when they
are first needed.
"""

from reader.clients.open_clients import Clients, close_process_clients, process_clients

__all__ = ["Clients", "close_process_clients", "process_clients"]
