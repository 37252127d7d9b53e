"""Pulsar.

admin                Pulsar's admin REST: what exists, and how far it reaches.
credentials          Who we are to Pulsar: a token, given or fetched, for the admin and the
http                 Requests to Pulsar's admin REST: who asks, which broker answers, what
ledger_metadata      Ledger metadata out of the text that Pulsar's admin REST prints.
"""

__all__: list[str] = []
