"""Rows through the broker, by ``pulsar-client``.

    broker_rows      BrokerRows: the row source
    broker_reader    messages of a range of entries
    broker_messages  messages of the client as columns
    entry_account    which entries need no row, though the client gave no message

Imports, of ``reader.sources``, ``base`` and ``rows`` alone.
"""

from __future__ import annotations

from reader.sources.broker.broker_reader import BrokerReader
from reader.sources.broker.broker_rows import BrokerRows

__all__ = ["BrokerReader", "BrokerRows"]
