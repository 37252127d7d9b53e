"""Opening a session with a bookie: TLS on the connection, then who we are.

    START_TLS   in the clear, on the bookie's usual port; the TLS handshake follows on the socket
    AUTH        in steps, until the bookie knows us; a bookie that has no plugin, or has taken the
                client certificate for it (BookieAuthZFactory), says so at the first

Always by the v3 protocol, whichever is spoken on the connection after it.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass

from reader.bookkeeper.sasl_digest_md5 import answer
from reader.bookkeeper.v3 import EOK
from reader.bookkeeper.v3_handshake import (
    AUTH,
    NO_PLUGIN,
    START_TLS,
    Reply,
    decode_reply,
    encode_auth,
    encode_start_tls,
)
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.tls import certificate_error

__all__ = ["BookieAccess", "open_session"]

_SASL = "sasl"
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class BookieAccess:
    """How to open sessions: with TLS, as whom. Neither: nothing is asked."""

    tls: ssl.SSLContext | None = None
    user: str = ""
    password: str = ""


def open_session(plain: socket.socket, host: str, name: str, access: BookieAccess) -> socket.socket:
    """The socket to go on with; ``plain`` is closed with it, or on an error.

    ``name``: the bookie, for errors. Raises ConfigurationError for what the bookie refuses, OSError
    or UnavailableError where it does not answer.
    """
    opened = plain
    try:
        if access.tls is not None:
            opened = _start_tls(plain, host, name, access.tls)
        if access.tls is not None or access.user:
            _authenticate(opened, name, access)
    except BaseException:
        opened.close()
        raise
    return opened


def _start_tls(
    plain: socket.socket, host: str, name: str, context: ssl.SSLContext
) -> socket.socket:
    plain.sendall(encode_start_tls())
    if _receive(plain, name).status != EOK:
        raise ConfigurationError(
            f"bookie {name} has no TLS", hint="set pulsar.bookkeeper.tls = false"
        )
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLError as error:
        if reason := certificate_error(error):
            raise ConfigurationError(
                f"the certificate of bookie {name} is not accepted: {reason}",
                hint="check pulsar.bookkeeper.tls_trust_certs_file; for a bookie reached by "
                "another name than its certificate's, tls_verify_hostname",
            ) from error
        raise _alert(error, name) from error


def _authenticate(opened: socket.socket, name: str, access: BookieAccess) -> None:
    plugin = _SASL if access.user else NO_PLUGIN
    reply = _step(opened, name, plugin, b"")
    if reply.plugin == NO_PLUGIN or not access.user:
        return
    response, proof = answer(reply.payload, access.user, access.password, secrets.token_hex(16))
    try:
        reply = _step(opened, name, plugin, response)
    except TimeoutError as error:
        # To a wrong name or password a bookie says nothing at all.
        raise ConfigurationError(
            f"bookie {name} does not accept the SASL user {access.user}",
            hint="check pulsar.bookkeeper.sasl_user and its password, and saslJaasClientAllowedIds",
        ) from error
    if not secrets.compare_digest(reply.payload, proof):
        raise ConfigurationError(
            f"bookie {name} does not know the password of the SASL user {access.user}",
            hint="it may not be the bookie that it seems to be",
        )


def _step(opened: socket.socket, name: str, plugin: str, payload: bytes) -> Reply:
    try:
        # One that does not like us may have hung up by now: its alert is still there to read.
        with suppress(ConnectionError, ssl.SSLEOFError):
            opened.sendall(encode_auth(plugin, payload))
        reply = _receive(opened, name)
        while reply.operation == START_TLS:
            # Of a handshake that has not said yet who we are, a bookie thinks that it failed.
            reply = _receive(opened, name)
    except ssl.SSLError as error:  # TLS 1.3: only now the client knows what the server thought
        raise _alert(error, name) from error
    if reply.operation != AUTH or reply.status != EOK:
        raise _refused(name, "it asks for another identity")
    return reply


def _alert(error: ssl.SSLError, name: str) -> Exception:
    """An alert is the bookie's word on our certificate; everything else may pass."""
    reason = error.reason or ""
    return _refused(name, reason) if "ALERT" in reason else error


def _refused(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"bookie {name} refuses us: {why}",
        hint="check the client certificate and sasl_user in [pulsar.bookkeeper]",
    )


def _receive(opened: socket.socket, name: str) -> Reply:
    size = int.from_bytes(_exactly(opened, 4, name), "big")
    if size > _MOST_BYTES:
        raise CorruptError(f"bookie {name} answers with {size} bytes where a few were due")
    return decode_reply(memoryview(_exactly(opened, size, name)))


def _exactly(opened: socket.socket, size: int, name: str) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = opened.recv(size - len(data))
        if not more:
            raise UnavailableError(f"bookie {name} closed the connection")
        data += more
    return bytes(data)
