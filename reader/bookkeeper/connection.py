"""One socket to one bookie: requests in one write, answers as they arrive.

A bookie takes the protocol of a connection from its first frame, so each protocol has its own.
"""

import selectors
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import numpy as np

from reader.bookkeeper.bookie_session import BookieAccess, open_session
from reader.bookkeeper.reads.read_messages import EntryAnswers, RangeAnswer
from reader.bookkeeper.v2 import HEADER_BYTES, decode_batch_header, encode_batch_read
from reader.bookkeeper.v3 import MAX_FRAME, answer_table, encode_reads, first_size, split_answers
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.kernels.memory import empty_bytes

_RECEIVE_BYTES = 1 << 20
_STAGE_BYTES = 1 << 16


def parse_address(bookie: str, address: str) -> tuple[str, int]:
    """Return (host, port) of ``host:port`` or ``[v6]:port``.

    Raises ConfigurationError if ``address`` is neither.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigurationError(
            f"bookie id {bookie!r} is not an address",
            hint='name its host:port in [pulsar.bookies], "id" = "host:port"',
        )
    return host.strip("[]"), int(port)


def timed_out(error: BaseException) -> bool:
    """Return whether an error of a connection is that the bookie was silent for the timeout."""
    return isinstance(error.__cause__, TimeoutError)


class _Socket:
    """A connection, opened at once. It cannot be used after an UnavailableError.

    ``timeout``: seconds, of each operation of the socket. ``is_kept``: it was idle between two
    runs, and has not given an answer since. ``has_ended``: the bookie closed it in good order.
    ``has_answered``: there ever was an answer. ``received``: bytes so far.
    """

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        self._name = f"{host}:{port}"
        self._timeout = timeout
        self.is_kept = False
        self.has_ended = False
        self.has_answered = False
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
        """Return whether nothing has arrived: without outstanding answers, only the end can."""
        # Not ``select``, which takes no descriptor above 1023.
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return not selector.select(0)

    def _send(self, data: bytes | memoryview) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error

    def _receive_into(self, target: memoryview) -> int:
        """Wait for some bytes, and return their number; 0 for less than a record of TLS."""
        try:
            by_tls = isinstance(self._socket, ssl.SSLSocket)
            count = self._receive_record(target) if by_tls else self._socket.recv_into(target)
        except ssl.SSLWantReadError:
            return 0
        except OSError as error:
            raise UnavailableError(f"bookie {self._name}: {error}") from error
        if not count:
            self.has_ended = True
            raise UnavailableError(f"bookie {self._name} closed the connection")
        self.received += count
        return count

    def _receive_record(self, target: memoryview) -> int:
        """Receive by TLS, without a wait for the rest of a record: other bookies have sent data."""
        self._socket.settimeout(0)
        try:
            return self._socket.recv_into(target)
        finally:
            self._socket.settimeout(self._timeout)


class EntryConnection(_Socket):
    """A connection for entry reads, by the v3 protocol."""

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        super().__init__(host, port, timeout, access)
        self._buffer = empty_bytes(_RECEIVE_BYTES)
        self._table = answer_table(_RECEIVE_BYTES)  # kept: page faults on a new one cost more
        self._begin = self._end = 0  # received, and not decoded yet

    def request(self, reads: Sequence[Any]) -> None:
        """Send requests, each an ``EntryRead``, in one write. Raises UnavailableError."""
        frames = [encode_reads(read.ledger_id, read.entries, read.requests) for read in reads]
        self._send(np.concatenate(frames).data)

    def receive(self) -> EntryAnswers:
        """Wait for some bytes, and return the answers that they complete.

        Raises UnavailableError, and CorruptError for what is not the protocol.
        """
        self._make_room()
        self._end += self._receive_into(self._buffer.data[self._end :])
        table, self._begin = split_answers(self._buffer, self._end, self._table)
        if table.shape[1]:
            self.has_answered, self.is_kept = True, False
        return EntryAnswers(table, self._buffer)

    def _make_room(self) -> None:
        """Move the beginning of an answer to the front of a buffer that takes all of it."""
        left = self._buffer[self._begin : self._end]
        size = first_size(left, len(left))
        if size - 4 > MAX_FRAME:
            raise CorruptError(f"bookie {self._name} sent a frame of {size - 4} bytes")
        # Room for a whole record of TLS: data that TLS has decrypted does not wake poll().
        fits = max(size, len(left) + _STAGE_BYTES) <= len(self._buffer)
        target = self._buffer if fits else empty_bytes(size + _RECEIVE_BYTES)
        if not fits:
            self._table = answer_table(len(target))
        target[: len(left)] = left
        self._buffer, self._begin, self._end = target, 0, len(left)


class RangeConnection(_Socket):
    """A connection for range reads, by the v2 protocol."""

    def __init__(self, host: str, port: int, timeout: float, access: BookieAccess) -> None:
        super().__init__(host, port, timeout, access)
        self._stage = empty_bytes(_STAGE_BYTES)
        self._begin = self._end = 0  # received, and not decoded yet
        self._part: RangeAnswer | None = None  # an answer whose content is incomplete
        self._filled = 0  # bytes of its content

    def request(self, reads: Sequence[Any]) -> None:
        """Send requests, each a ``RangeRead``, in one write. Raises UnavailableError."""
        self._send(
            b"".join(
                encode_batch_read(
                    read.request, read.ledger_id, read.first, read.max_entries, read.max_bytes
                )
                for read in reads
            )
        )

    def receive(self) -> list[RangeAnswer]:
        """Wait for some bytes, and return the answers that they complete.

        Raises UnavailableError, and CorruptError for what is not the protocol.
        """
        answers: list[RangeAnswer] = []
        self._read()
        self._take_staged(answers)
        # Data that TLS has already decrypted does not wake poll().
        while isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            self._read()
            self._take_staged(answers)
        if answers:
            self.has_answered, self.is_kept = True, False
        return answers

    def _read(self) -> None:
        if self._part is not None:
            self._filled += self._receive_into(self._part.content.data[self._filled :])
        else:
            left = self._stage[self._begin : self._end].copy()
            self._stage[: len(left)] = left
            self._begin, self._end = 0, len(left)
            self._end += self._receive_into(self._stage.data[self._end :])

    def _take_staged(self, answers: list[RangeAnswer]) -> None:
        """Append the answers that are whole; the stage keeps less than a header."""
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
            answers.append(self._part)
            self._part = None
