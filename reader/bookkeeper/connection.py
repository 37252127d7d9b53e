"""One socket to one bookie: requests in one write, answers as they arrive.

A bookie takes the protocol of a connection from its first frame, so each protocol has its own.
"""

from __future__ import annotations

import selectors
import socket
import ssl
from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reader.bookkeeper.bookie_session import BookieAccess, open_session
from reader.bookkeeper.v2 import HEADER_BYTES, BatchReadHeader, decode_batch_header
from reader.bookkeeper.v3 import MAX_FRAME, first_size, split_answers
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.kernels.memory import empty_bytes

__all__ = [
    "Answers",
    "EntryConnection",
    "Owed",
    "RangeAnswer",
    "RangeConnection",
    "parse_address",
    "timed_out",
]

_RECEIVE_BYTES = 1 << 20
_STAGE_BYTES = 1 << 16
_PROGRESS_BYTES = 1 << 14
"""Of answers that are not whole, for the bookie to count as not silent."""


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


class Owed:
    """The answers that a connection owes, and since when; times by the caller's clock."""

    def __init__(self) -> None:
        self.count = 0
        self._since = 0.0
        self._heard = 0  # bytes that had arrived then
        self._total = 0  # requests so far
        self._asked: deque[tuple[int, float]] = deque()  # (total then, when)

    def asked(self, count: int, now: float) -> None:
        """So many requests were sent."""
        if not self.count:
            self._since = now
        self.count += count
        self._total += count
        self._asked.append((self._total, now))

    def answered(self, count: int, now: float) -> None:
        """So many answers were received."""
        self.count -= count
        self._since = now
        while self._asked and self._asked[0][0] <= self._total - self.count:
            self._asked.popleft()

    def heard(self, received: int, now: float) -> None:
        """So many bytes have arrived so far: enough, and the bookie is not silent."""
        if received - self._heard >= _PROGRESS_BYTES:
            self._heard, self._since = received, now

    def silent(self, now: float) -> float:
        """Seconds since an answer, or much of one, or the first request after all were answered."""
        return now - self._since if self.count else 0.0

    def oldest(self, now: float) -> float:
        """Seconds since the request was sent that has waited longest, if they come in order."""
        return now - self._asked[0][1] if self.count else 0.0


class _Socket:
    """Connects at once; after a failure, an UnavailableError, the connection cannot be used.

    ``timeout``: seconds, of each operation of the socket. ``kept``: it was idle, and has not given
    an answer since. ``ended``: the bookie closed it in good order. ``received``: bytes so far.
    """

    ended = False

    kept = False

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        self._name = f"{host}:{port}"
        self._timeout = timeout
        self.owed = Owed()
        self.received = 0
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

    def send(self, data: bytes | memoryview) -> None:
        """Write whole frames."""
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error

    def _receive_into(self, target: memoryview) -> int:
        """Wait for some bytes; the timeout is that of each wait. Less than a record of TLS is 0."""
        try:
            by_tls = isinstance(self._socket, ssl.SSLSocket)
            got = self._receive_record(target) if by_tls else self._socket.recv_into(target)
        except ssl.SSLWantReadError:
            return 0
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error
        if not got:
            self.ended = True
            raise UnavailableError(f"bookie {self._name} closed the connection")
        self.received += got
        return got

    def _receive_record(self, target: memoryview) -> int:
        """By TLS, which would wait for the rest of a record, while others have something."""
        self._socket.settimeout(0)
        try:
            return self._socket.recv_into(target)
        finally:
            self._socket.settimeout(self._timeout)


@dataclass(frozen=True, slots=True)
class Answers:
    """``table``: a column each, as ``v3.split_answers`` gives them; bodies lie in ``buffer``.

    Valid until the connection receives more.
    """

    table: npt.NDArray[np.int64]
    buffer: npt.NDArray[np.uint8]


class EntryConnection(_Socket):
    """For entry reads, by the v3 protocol."""

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        super().__init__(host, port, timeout, access)
        self._buffer = empty_bytes(_RECEIVE_BYTES)
        self._begin = self._end = 0  # what was received and is not taken apart

    def receive(self) -> Answers:
        """The answers that one read of the socket completes; waits for some bytes.

        Raises UnavailableError, and CorruptError for what is not the protocol.
        """
        self._make_room()
        self._end += self._receive_into(self._buffer.data[self._end :])
        table, self._begin = split_answers(self._buffer, self._end)
        if table.shape[1]:
            self.kept = False
        return Answers(table, self._buffer)

    def _make_room(self) -> None:
        """Move the beginning of an answer to the front of a buffer that takes all of it."""
        left = self._buffer[self._begin : self._end]
        size = first_size(left, len(left))
        if size - 4 > MAX_FRAME:
            raise CorruptError(f"bookie {self._name} sent a frame of {size - 4} bytes")
        # Room for a whole record of TLS: what is left of one, no wait would tell of.
        fits = max(size, len(left) + _STAGE_BYTES) <= len(self._buffer)
        target = self._buffer if fits else empty_bytes(size + _RECEIVE_BYTES)
        target[: len(left)] = left
        self._buffer, self._begin, self._end = target, 0, len(left)


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """``content``: the entries, each after its size."""

    header: BatchReadHeader
    content: npt.NDArray[np.uint8]


class RangeConnection(_Socket):
    """For range reads, by the v2 protocol; ``answered``: whether there ever was an answer."""

    answered = False

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        super().__init__(host, port, timeout, access)
        self._stage = empty_bytes(_STAGE_BYTES)
        self._begin = self._end = 0  # what was received into it and is not taken
        self._part: RangeAnswer | None = None  # whose content has not arrived whole
        self._filled = 0  # bytes of its content

    def receive(self) -> list[RangeAnswer]:
        """The answers that one read of the socket completes; waits for some bytes.

        Raises UnavailableError, and CorruptError for what is not the protocol.
        """
        found: list[RangeAnswer] = []
        self._read()
        self._take_staged(found)
        # Of bytes that TLS holds no wait would tell.
        while isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            self._read()
            self._take_staged(found)
        if found:
            self.answered, self.kept = True, False
        return found

    def _read(self) -> None:
        if self._part is not None:
            self._filled += self._receive_into(self._part.content.data[self._filled :])
        else:
            left = self._stage[self._begin : self._end].copy()
            self._stage[: len(left)] = left
            self._begin, self._end = 0, len(left)
            self._end += self._receive_into(self._stage.data[self._end :])

    def _take_staged(self, found: list[RangeAnswer]) -> None:
        """Add the answers that are whole; the stage keeps less than a header."""
        while self._part is not None or self._end - self._begin >= HEADER_BYTES:
            if self._part is None:
                opening = self._stage[self._begin : self._begin + HEADER_BYTES].tobytes()
                header = decode_batch_header(opening, MAX_FRAME)
                self._begin += HEADER_BYTES
                self._part, self._filled = RangeAnswer(header, empty_bytes(header.size)), 0
            content = self._part.content
            count = min(len(content) - self._filled, self._end - self._begin)
            content[self._filled : self._filled + count] = self._stage[
                self._begin : self._begin + count
            ]
            self._begin += count
            self._filled += count
            if self._filled < len(content):
                return
            found.append(self._part)
            self._part = None
