"""Columns to messages, for sinks: what ``reader.decode`` and ``reader.payload`` read.

    payload  payload columns to payload bytes, by a topic's schema

No I/O. Imports only ``reader.model``, ``reader.errors``, ``reader.kernels``,
``reader.payload`` and ``reader.wire``.
"""

__all__: list[str] = []
