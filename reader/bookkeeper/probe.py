"""Whether a bookie answers: one connection, one entry that is asked for, and no kernel.

For diagnosis, where each bookie is to be named with what is wrong with it; reading has the pool.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from reader.bookkeeper.bookie_session import BookieAccess, open_session, receive_frame
from reader.bookkeeper.connection import parse_address
from reader.bookkeeper.v3 import ENOENTRY, ENOLEDGER, EOK, EUA, READ_ENTRY, framed
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.wire import Fields, encoded

_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class BookieAnswer:
    """``status``: BookKeeper's code; ``has_entry``: it gave the entry that was asked for."""

    status: int

    @property
    def has_entry(self) -> bool:
        return self.status == EOK

    @property
    def lacks_entry(self) -> bool:
        """It says that it has no such ledger, or no such entry."""
        return self.status in (ENOLEDGER, ENOENTRY)


def bookie_address(bookie: str, addresses: Mapping[str, str]) -> tuple[str, int]:
    """(host, port) to connect to for a bookie's id; ``addresses`` are those that settings name.

    Raises ConfigurationError where the id is no address.
    """
    return parse_address(bookie, addresses.get(bookie, bookie))


def probe_bookie(
    address: tuple[str, int], access: BookieAccess, timeout: float, *, ledger: int, entry: int
) -> BookieAnswer:
    """Connect, with TLS and identity as ``access`` says, and ask for one entry, without fencing.

    ``timeout``: seconds, of each step. Raises UnavailableError where it does not answer,
    ConfigurationError for what it refuses, CorruptError for what is not the protocol.
    """
    host, port = address
    name = f"{host}:{port}"
    try:
        plain = socket.create_connection(address, timeout)
        with open_session(plain, host, name, access) as opened:
            body = encoded((1, ledger), (2, entry))
            opened.sendall(framed(READ_ENTRY, 100, body, 1))
            frame = receive_frame(opened, name, _MOST_BYTES)
    except OSError as error:
        raise UnavailableError(f"no connection to bookie {name}: {error}") from error
    answer = Fields(frame, "a bookie's answer")
    status = answer.message(100).number(1, answer.number(2, -1))
    if status < 0:
        raise CorruptError(f"bookie {name} answers what is not BookKeeper's protocol")
    if status == EUA:
        raise ConfigurationError(
            f"bookie {name} requires authentication",
            hint="set [pulsar.bookkeeper]: tls, a client certificate or sasl_user",
        )
    return BookieAnswer(status)
