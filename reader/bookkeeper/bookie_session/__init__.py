"""The start of a connection to a bookie: TLS and authentication.

    handshake        TLS and authentication, on a socket that is open
    v3_handshake     codec of the v3 protocol: TLS and authentication
    sasl_digest_md5  SASL DIGEST-MD5

Imports only ``reader.bookkeeper.v3``, ``reader.errors``, ``reader.tls`` and
``reader.wire``.
"""

from reader.bookkeeper.bookie_session.handshake import BookieAccess, open_session, receive_frame

__all__ = ["BookieAccess", "open_session", "receive_frame"]
