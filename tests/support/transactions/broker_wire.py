"""`BrokerWire`: a connection to a broker that sends what no client library would.

Producers by name, sequence id and access mode; chunks by hand; transactions by their id, also of
another connection and after their end. Only for tests: one broker, no TLS, no authentication.
"""

import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlparse

import numpy as np

from reader.kernels.crc32c import crc32c
from reader.wire import encoded, fields

Transaction = tuple[int, int]
"""(most, least significant bits)"""

_CONNECT, _CONNECTED = 2, 3
_PRODUCER, _SEND, _SEND_RECEIPT, _SEND_ERROR = 5, 6, 7, 8
_ERROR, _CLOSE_PRODUCER = 14, 15
_PING, _PONG, _LOOKUP, _LOOKUP_RESPONSE = 18, 19, 23, 24
_NEW_TXN, _ADD_PARTITION, _END_TXN, _END_ON_PARTITION, _TC_CONNECT = 50, 52, 56, 58, 62

_CODES = {_ERROR: 2, **dict.fromkeys((51, 53, 57, 59), 4), 63: 2}
"""Where an answer says that it is an error: the field of the code, which the reason follows."""

_COORDINATOR = "persistent://pulsar/system/transaction_coordinator_assign-partition-0"

Fields = dict[int, list[Any]]


class RefusedError(RuntimeError):
    """The broker's answer is an error: `code` is PulsarApi.proto's ServerError."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class ProducerAnswer:
    name: str
    last_sequence_id: int
    topic_epoch: int | None


@dataclass(frozen=True)
class Outcome:
    """Of one send: where it was stored, (-1, -1) for a duplicate; or the error."""

    sequence_id: int
    position: tuple[int, int] | None = None
    error: tuple[int, str] | None = None
    highest: int = 0


class BrokerWire:
    """``closed``: producers that the broker has closed; ``over``: set when the connection ends."""

    def __init__(self, service_url: str, timeout: float = 60) -> None:
        address = urlparse(service_url)
        self._timeout = timeout
        self._socket = socket.create_connection((address.hostname or "", address.port or 6650))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._answers: dict[int, tuple[int, Fields]] = {}
        self._outcomes: dict[int, list[Outcome]] = {}
        self.closed: list[int] = []
        self.over = False
        self.max_message_size = 0
        self._command(_CONNECT, (1, "test"), (4, 21))
        threading.Thread(target=self._receive, daemon=True).start()
        self._wait("the connection", lambda: self.max_message_size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    # --- producers ---

    def producer(
        self,
        topic: str,
        name: str | None = None,
        *,
        number: int = 1,
        mode: int = 0,
        epoch: int = 0,
        topic_epoch: int | None = None,
        transactional: bool = False,
    ) -> ProducerAnswer:
        """``mode``: 0 shared, 1 exclusive, 2 waits, 3 fences; ``number``: of the producer."""
        self.ask(_LOOKUP, (1, topic), (2, ...))
        _, answer = self.ask(
            _PRODUCER,
            (1, topic),
            (2, number),
            (3, ...),
            (4, name),
            (8, epoch),
            (9, int(name is not None)),
            (10, mode),
            (11, topic_epoch),
            (12, int(transactional)),
        )
        return ProducerAnswer(
            answer[2][0].decode(),
            signed(answer[3][0]) if 3 in answer else -1,
            answer[5][0] if 5 in answer else None,
        )

    def close_producer(self, number: int = 1) -> None:
        self.ask(_CLOSE_PRODUCER, (1, number), (2, ...))

    def send(
        self,
        sequence_id: int,
        payload: bytes,
        *,
        name: str,
        number: int = 1,
        highest: int | None = None,
        count: int | None = None,
        transaction: Transaction | None = None,
        chunk: tuple[str, int, int, int] | None = None,
        chunk_sequence: bool = True,
        corrupt: bool = False,
    ) -> None:
        """One entry; does not wait. ``payload``: of a batch of ``count`` messages, if given.

        ``chunk``: (uuid, number, of how many, bytes of all). ``chunk_sequence``: say to the broker
        that it is one. ``corrupt``: with a wrong checksum.
        """
        most, least = transaction or (None, None)
        uuid, chunk_id, chunks, size = chunk or (None, None, None, None)
        metadata = encoded(
            (1, name),
            (2, sequence_id),
            (3, time.time_ns() // 1_000_000),
            (9, len(payload)),
            (11, count),
            (22, least),
            (23, most),
            (24, highest),
            (26, uuid),
            (27, chunks),
            (28, size),
            (29, chunk_id),
        )
        body = struct.pack(">I", len(metadata)) + metadata + payload
        checksum = int(crc32c(np.frombuffer(body, np.uint8), 0, len(body))) ^ corrupt
        self._command(
            _SEND,
            (1, number),
            (2, sequence_id),
            (3, count or 1),
            (4, least),
            (5, most),
            (6, highest),
            (7, 1 if chunk and chunk_sequence else None),
            extra=struct.pack(">HI", 0x0E01, checksum) + body,
        )

    def outcomes(self, count: int, number: int = 1, timeout: float | None = None) -> list[Outcome]:
        """Of sends, in the order of their answers: ``count`` of them, or as many as come."""
        with self._changed:
            self._changed.wait_for(
                lambda: len(self._outcomes.get(number, [])) >= count or self.over,
                self._timeout if timeout is None else timeout,
            )
            return self._outcomes.pop(number, [])

    # --- transactions ---

    def begin(self, milliseconds: int) -> Transaction:
        """Of coordinator 0. It ends itself, aborted, after this time."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                self.ask(_LOOKUP, (1, _COORDINATOR), (2, ...))
                self.ask(_TC_CONNECT, (1, ...), (2, 0))
                _, answer = self.ask(_NEW_TXN, (1, ...), (2, milliseconds), (3, 0))
            except RefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return answer.get(3, [0])[0], answer.get(2, [0])[0]

    def register(self, transaction: Transaction, *topics: str) -> None:
        """What the transaction writes to; to be said before it does."""
        partitions = [(4, topic) for topic in topics]
        self.ask(_ADD_PARTITION, (1, ...), *self._ids(transaction), *partitions)

    def commit(self, transaction: Transaction) -> None:
        self.ask(_END_TXN, (1, ...), *self._ids(transaction), (4, 0))

    def abort(self, transaction: Transaction) -> None:
        self.ask(_END_TXN, (1, ...), *self._ids(transaction), (4, 1))

    def end_on_partition(self, transaction: Transaction, topic: str, *, commit: bool) -> None:
        """What only the coordinator says to a broker; whoever is a superuser may, too."""
        ending = (5, 0 if commit else 1)
        self.ask(_END_ON_PARTITION, (1, ...), *self._ids(transaction), (4, topic), ending)

    @staticmethod
    def _ids(transaction: Transaction) -> tuple[tuple[int, int], tuple[int, int]]:
        most, least = transaction
        return (2, least), (3, most)

    # --- frames ---

    def ask(self, kind: int, *given: tuple[int, Any]) -> tuple[int, Fields]:
        """The answer; ``...`` stands for the request's number. Raises RefusedError."""
        request = next(self._numbers)
        self._command(kind, *[(one, request if value is ... else value) for one, value in given])
        self._wait(f"the answer to {kind}", lambda: request in self._answers)
        with self._changed:
            answer_kind, answer = self._answers.pop(request)
        code = _CODES.get(answer_kind, 0)
        if code in answer:
            raise RefusedError(answer[code][0], answer.get(code + 1, [b""])[0].decode())
        return answer_kind, answer

    def _command(self, kind: int, *given: tuple[int, Any], extra: bytes = b"") -> None:
        command = encoded((1, kind), (kind, encoded(*given)))
        size = 4 + len(command) + len(extra)
        frame = struct.pack(">II", size, len(command)) + command + extra
        with self._writing:  # a pong comes from another thread
            self._socket.sendall(frame)

    def _wait(self, what: str, ready: Callable[[], object]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: ready() or self.over, self._timeout)
            if not ready():
                raise TimeoutError(f"no sign of {what}{' before the end' if self.over else ''}")

    def _receive(self) -> None:
        try:
            with self._socket.makefile("rb") as stream:
                while len(head := stream.read(8)) == 8:
                    size, command = struct.unpack(">II", head)
                    self._take(stream.read(size - 4)[:command])
        except OSError:
            pass
        with self._changed:
            self.over = True
            self._changed.notify_all()

    def _take(self, data: bytes) -> None:
        command = _read(data)
        kind = command[1][0]
        said = _read(command[kind][0]) if kind in command else {}
        with self._changed:
            if kind == _CONNECTED:
                self.max_message_size = said.get(3, [5 << 20])[0]
            elif kind == _PING:
                self._command(_PONG)
            elif kind in (_SEND_RECEIPT, _SEND_ERROR):
                self._outcomes.setdefault(said[1][0], []).append(_outcome(kind, said))
            elif kind == _CLOSE_PRODUCER:
                self.closed.append(said[1][0])
            else:
                number = 4 if kind == _LOOKUP_RESPONSE else 1  # the request's
                self._answers[said[number][0]] = (kind, said)
            self._changed.notify_all()


def _read(data: bytes) -> Fields:
    found: Fields = {}
    for number, value in fields(data, "a command"):
        found.setdefault(number, []).append(value)
    return found


def signed(value: int) -> int:
    """Return a number of 64 bits that was read as unsigned, as Java reads it: 2^64 - 1 is -1."""
    return value - (1 << 64) if value >> 63 else value


def _outcome(kind: int, said: Fields) -> Outcome:
    sequence_id = said[2][0]
    if kind == _SEND_ERROR:
        return Outcome(sequence_id, error=(said[3][0], said[4][0].decode()))
    at = _read(said[3][0])
    position = (signed(at[1][0]), signed(at[2][0]))
    return Outcome(sequence_id, position, highest=said.get(4, [0])[0])
