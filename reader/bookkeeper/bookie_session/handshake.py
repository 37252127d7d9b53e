"""The start of a connection to a bookie: TLS, then authentication.

    START_TLS   without TLS, on the bookie's usual port; the TLS handshake follows on the socket
    AUTH        in steps, until the bookie has authenticated the client; a bookie that has no
                plugin, or authenticates by the client certificate (BookieAuthZFactory), answers so
                at the first step

Always by the v3 protocol, whichever follows on the connection.
"""

import secrets
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from reader.bookkeeper.bookie_session import v3_handshake
from reader.bookkeeper.bookie_session.sasl_digest_md5 import answer
from reader.bookkeeper.v3 import EOK
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.tls import certificate_error

_SASL = "sasl"
_MOST_BYTES = 1 << 16


class TlsContext(Protocol):
    """What is needed of an ``ssl.SSLContext``."""

    def wrap_socket(self, sock: socket.socket, *, server_hostname: str) -> ssl.SSLSocket: ...


@dataclass(frozen=True, slots=True)
class BookieAccess:
    """How to open connections. ``tls`` None: without; ``user`` "": without SASL."""

    tls: TlsContext | None = None
    user: str = ""
    password: str = ""


def open_session(plain: socket.socket, host: str, name: str, access: BookieAccess) -> socket.socket:
    """The socket to use from now on; ``plain`` is closed with it, or on an error.

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


def _start_tls(plain: socket.socket, host: str, name: str, context: TlsContext) -> socket.socket:
    plain.sendall(v3_handshake.encode_start_tls())
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
    plugin = _SASL if access.user else v3_handshake.NO_PLUGIN
    reply = _step(opened, name, plugin, b"")
    if reply.plugin == v3_handshake.NO_PLUGIN or not access.user:
        return
    response, proof = answer(reply.payload, access.user, access.password, secrets.token_hex(16))
    try:
        reply = _step(opened, name, plugin, response)
    except TimeoutError as error:
        # A bookie does not answer to a wrong name or password.
        raise ConfigurationError(
            f"bookie {name} does not accept the SASL user {access.user}",
            hint="check pulsar.bookkeeper.sasl_user and its password, and saslJaasClientAllowedIds",
        ) from error
    if not secrets.compare_digest(reply.payload, proof):
        raise ConfigurationError(
            f"bookie {name} does not prove that it has the password of the SASL user {access.user}",
            hint="it may not be the bookie that it seems to be",
        )


def _step(opened: socket.socket, name: str, plugin: str, payload: bytes) -> v3_handshake.Reply:
    try:
        # A bookie that refuses may have closed the connection: its alert can still be read.
        with suppress(ConnectionError, ssl.SSLEOFError):
            opened.sendall(v3_handshake.encode_auth(plugin, payload))
        reply = _receive(opened, name)
        while reply.operation == v3_handshake.START_TLS:
            # A bookie also reports START_TLS as failed while the client has no identity yet.
            reply = _receive(opened, name)
    except ssl.SSLError as error:  # with TLS 1.3 the server's alert arrives only now
        raise _alert(error, name) from error
    if reply.operation != v3_handshake.AUTH or reply.status != EOK:
        raise _refused(name, "it requires another identity")
    return reply


def _alert(error: ssl.SSLError, name: str) -> Exception:
    """An alert refuses the client's certificate; other errors may be temporary."""
    reason = error.reason or ""
    return _refused(name, reason) if "ALERT" in reason else error


def _refused(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"bookie {name} refuses the connection: {why}",
        hint="check the client certificate and sasl_user in [pulsar.bookkeeper]",
    )


def _receive(opened: socket.socket, name: str) -> v3_handshake.Reply:
    return v3_handshake.decode_reply(receive_frame(opened, name, _MOST_BYTES))


def receive_frame(opened: socket.socket, name: str, most: int) -> bytes:
    """The next frame, without its size.

    Raises CorruptError for one of more than ``most`` bytes, and as ``open_session``.
    """
    size = int.from_bytes(_exactly(opened, 4, name), "big")
    if size > most:
        raise CorruptError(f"bookie {name} answers with {size} bytes")
    return _exactly(opened, size, name)


def _exactly(opened: socket.socket, size: int, name: str) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = opened.recv(size - len(data))
        if not more:
            raise UnavailableError(f"bookie {name} closed the connection")
        data += more
    return bytes(data)
