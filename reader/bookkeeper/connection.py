"""One socket to one bookie: requests in one write, answers as they arrive.

A bookie takes the protocol of a connection from its first frame, so each protocol has its own.
"""

from __future__ import annotations

import selectors
import socket
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reader.bookkeeper.handshake import BookieAccess, open_session
from reader.bookkeeper.v2 import HEADER_BYTES, BatchReadHeader, decode_batch_header
from reader.bookkeeper.v3 import MAX_FRAME, Response, decode_response, frames
from reader.errors import ConfigurationError, UnavailableError
from reader.kernels.memory import empty_bytes

__all__ = ["EntryConnection", "RangeAnswer", "RangeConnection", "parse_address", "timed_out"]

_RECEIVE_BYTES = 1 << 20


def parse_address(bookie: str, address: str) -> tuple[str, int]:
    """(host, port) of ``host:port`` or ``[v6]:port``. Raises ConfigurationError otherwise."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(
            f"bookie id {bookie!r} is not an address",
            hint='name its host:port in [pulsar.bookies], "id" = "host:port"',
        )
    return host.strip("[]"), int(port)


def timed_out(error: BaseException) -> bool:
    """Whether an error of a connection is that the other side was silent for its timeout."""
    return isinstance(error.__cause__, TimeoutError)


class _Socket:
    """Connects at once; after a failure, an UnavailableError, the connection cannot be used.

    ``timeout``: seconds, of each operation of the socket. ``kept``: it was idle, and has not given
    an answer since.
    """

    kept = False

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        self._name = f"{host}:{port}"
        try:
            opened = socket.create_connection((host, port), timeout)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = open_session(opened, host, self._name, access)
        except OSError as error:
            raise UnavailableError(f"no connection to bookie {self._name}: {error}") from error

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def stays_idle(self) -> bool:
        """Whether nothing has arrived: without outstanding answers, only its end can."""
        # Not ``select``, which takes no descriptor above 1023.
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return not selector.select(0)

    def send(self, data: bytes) -> None:
        """Write whole frames."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error


class EntryConnection(_Socket):
    """For entry reads, by the v3 protocol."""

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        super().__init__(host, port, timeout, access)
        self._rest = bytearray()

    def receive(self) -> list[Response]:
        """The answers that one read of the socket completes; waits for some bytes.

        Raises UnavailableError, and CorruptError for what is not the protocol.
        """
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error
        if not data:
            raise UnavailableError(f"bookie {self._name} closed the connection")
        # Bodies are views into this buffer, so it is never written to again.
        buffer = bytes(self._rest) + data if self._rest else data
        found, used = frames(memoryview(buffer))
        self._rest = bytearray(buffer[used:])
        self.kept = False
        return [decode_response(frame) for frame in found]


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """``content``: the entries, each after its size."""

    header: BatchReadHeader
    content: npt.NDArray[np.uint8]


class RangeConnection(_Socket):
    """For range reads, by the v2 protocol.

    ``answered``: whether there ever was an answer. ``ended``: the bookie closed it in good order.
    """

    answered = False
    ended = False

    def receive(self) -> RangeAnswer:
        """Wait for one whole answer; the timeout is that of each wait for more bytes.

        Raises UnavailableError, and CorruptError for what is not the protocol.
        """
        opening = bytearray(HEADER_BYTES)
        self._fill(memoryview(opening))
        header = decode_batch_header(opening, MAX_FRAME)
        content = empty_bytes(header.size)
        self._fill(content.data)
        self.answered, self.kept = True, False
        return RangeAnswer(header, content)

    def _fill(self, target: memoryview) -> None:
        done = 0
        try:
            while done < len(target):
                got = self._socket.recv_into(target[done:])
                if not got:
                    self.ended = True
                    raise UnavailableError(f"bookie {self._name} closed the connection")
                done += got
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error
