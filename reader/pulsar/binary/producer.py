"""A producer of one partition: entries out, in order; receipts in.

Several may be under way: as many as ``WINDOW_ENTRIES`` and ``_MOST_BYTES`` permit, the send window.
Receipts are read where the window is full, and at the end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError, plain_text
from reader.kernels.crc32c import crc32c
from reader.model import Partition, Position
from reader.pulsar.binary import commands
from reader.pulsar.binary.broker_connection import BrokerConnection
from reader.pulsar.binary.broker_errors import refusal
from reader.pulsar.binary.replies import Failed, ProducerClosed, ProducerOpen, Receipt, SendRefused

__all__ = ["OutgoingEntry", "Producer", "producer_error"]

WINDOW_ENTRIES = 1000
_MOST_BYTES = 32 << 20
SEND_BYTES = 1 << 20
"""Bytes of entries that are written to the socket together."""
_QUOTA = (7, 8)  # ProducerBlockedQuotaExceededError, …Exception
_UNSURE, _TERMINATED, _BUSY, _INCOMPATIBLE, _NOT_ALLOWED, _FENCED = 2, 15, 16, 18, 22, 25
_MAGIC = b"\x0e\x01"


@dataclass(frozen=True, slots=True)
class OutgoingEntry:
    """What is sent as one entry.

    ``sequence``, ``highest``: ids of its first and last message, as in ``metadata``, which is a
    whole MessageMetadata; ``payload``: as it is stored.
    """

    sequence: int
    highest: int
    messages: int
    metadata: bytes
    payload: memoryview | bytes


class Producer:
    """Open when made; for one thread. After an UnavailableError a new one has to be made.

    ``name``: None: the broker makes one up. ``last_sequence``: the highest id of this name that
    was given to the topic's ledger, as far as the broker remembers; -1: it knows of none. Not all
    of it need have been stored: only a receipt says that. ``schema``: as ``commands.producer``
    takes it. ``stored``: how many entries the broker has confirmed; ``repeated``: (first, highest
    id) of those among them that it had already. ``last``: the highest position that was confirmed.
    ``refused``: whether the broker has refused an entry.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        partition: Partition,
        *,
        name: str | None,
        schema: bytes | None,
        encrypted: bool,
        deadline: float,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        self.partition = partition
        self.stored = 0
        self.repeated: list[tuple[int, int]] = []
        self.refused = False
        self.last: Position | None = None
        self._timeout = timeout
        self._clock = clock
        self._window: dict[int, tuple[int, int]] = {}  # (highest id, bytes) by first id, ascending
        self._window_bytes = 0
        self._pieces: list[bytes | memoryview] = []
        self._pieces_bytes = 0
        self._number = connection.next_number()
        self._said: deque[Receipt | SendRefused | ProducerClosed] = deque()
        connection.producers[self._number] = self._said
        request = connection.next_number()
        answer = connection.request(
            request,
            commands.producer(
                request, self._number, partition.full_name, name, schema, encrypted=encrypted
            ),
            deadline,
        )
        if isinstance(answer, ProducerOpen):
            self.name = answer.name
            self.last_sequence = answer.last_sequence
            self.schema_version = answer.schema_version
            return
        del connection.producers[self._number]
        if isinstance(answer, Failed):
            raise producer_error(answer.error, answer.text, partition)
        raise connection.wrong_answer()

    @property
    def first_waiting(self) -> int | None:
        """The lowest id that was sent, or is about to be, and not confirmed."""
        return next(iter(self._window), None)

    def send(self, entry: OutgoingEntry) -> None:
        """Send it once the window has room.

        Raises UnavailableError where the broker takes nothing, or closes the topic;
        ConfigurationError where it refuses it for good.
        """
        size = len(entry.metadata) + len(entry.payload)
        if size > self.connection.most_bytes:
            raise ConfigurationError(
                f"an entry of {size} bytes is more than {self.partition} takes "
                f"({self.connection.most_bytes} bytes)",
                hint="see the broker's maxMessageSize",
            )
        self._window[entry.sequence] = (entry.highest, size)
        self._window_bytes += size
        while len(self._window) > 1 and (
            len(self._window) > WINDOW_ENTRIES or self._window_bytes > _MOST_BYTES
        ):
            self._write()
            self._take_receipts()
        head = len(entry.metadata).to_bytes(4, "big") + entry.metadata
        checksum = crc32c(
            np.frombuffer(entry.payload, np.uint8),
            0,
            len(entry.payload),
            crc32c(np.frombuffer(head, np.uint8), 0, len(head)),
        )
        framed = commands.send(
            self._number,
            entry.sequence,
            entry.highest,
            entry.messages,
            len(_MAGIC) + 4 + len(head) + len(entry.payload),
        )
        self._pieces += (framed + _MAGIC + checksum.to_bytes(4, "big") + head, entry.payload)
        self._pieces_bytes += size
        if self._pieces_bytes >= SEND_BYTES:
            self._write()
            self.connection.poll(0.0)
            self._confirm()

    def flush(self) -> None:
        """Wait until all that was sent is confirmed. Raises as ``send``."""
        self._write()
        while self._window:
            self._take_receipts()

    def close(self, deadline: float | None = None) -> None:
        """Give the name up. ``deadline``: until when to wait for the broker to have done so."""
        self.connection.producers.pop(self._number, None)
        if self.connection.broken:
            return
        number = self.connection.next_number()
        request = commands.close_producer(number, self._number)
        if deadline is None:
            self.connection.send(request)
        else:
            self.connection.request(number, request, deadline)

    def _write(self) -> None:
        if self._pieces:
            pieces, self._pieces, self._pieces_bytes = self._pieces, [], 0
            self.connection.publish(pieces)

    def _take_receipts(self) -> None:
        """Wait until the broker has confirmed something more."""
        before, waited = len(self._window), 0.0
        self._confirm()
        while len(self._window) == before and self._window:
            began = self._clock()
            came = self.connection.poll(self._timeout / 10)
            self._confirm()
            waited += max(self._clock() - began, 0.0)
            # A broker that answers PINGs lives, but it may never store what it was given.
            if not came and waited >= 4 * self._timeout:
                self.connection.close()  # or the name would stay taken
                raise UnavailableError(
                    f"the broker stores nothing of what is sent to {self.partition}",
                    hint="see its log: bookies, publish rate limits, backlog quotas",
                )

    def _confirm(self) -> None:
        while self._said:
            match said := self._said.popleft():
                case Receipt():
                    self._stored(said)
                case SendRefused():
                    # What is on its way behind it must not be stored, or it never could be.
                    self.refused = True
                    self.connection.close()
                    raise producer_error(said.error, said.text, self.partition)
                case ProducerClosed():
                    self.connection.producers.pop(self._number, None)
                    raise UnavailableError(f"the broker has closed {self.partition}")

    def _stored(self, said: Receipt) -> None:
        """Each entry has one of its own; what was there already is confirmed ahead of others."""
        sent = self._window.pop(said.sequence, None)
        if sent is None:
            return
        highest, size = sent
        self._window_bytes -= size
        self.stored += 1
        if said.position.ledger < 0:
            self.repeated.append((said.sequence, highest))
        else:
            self.last = max(self.last or said.position, said.position)


def producer_error(error: int | None, text: str, partition: Partition) -> PulsarLakeError:
    """What a broker refuses to a producer."""
    said = plain_text(text)
    if error in _QUOTA:
        return UnavailableError(
            f"the backlog quota of {partition} is exceeded, so nothing can be published",
            hint=f"subscriptions have to catch up: {said}",
        )
    if error == _UNSURE:
        return UnavailableError(f"{partition} has it, and has not stored it yet: {said}")
    # One code for a name that is taken (which the text has in it), and for a topic that is.
    full = error == _BUSY and "is already connected" not in text
    if error == _FENCED or (full and "exclusive producer" in text):
        return ConfigurationError(
            f"an exclusive producer has {partition} for itself, as long as it is connected",
            hint=said,
        )
    if full and "reached max" in text:
        return ConfigurationError(f"{partition} takes no more producers", hint=said)
    if error == _BUSY:
        return UnavailableError(
            f"another producer of that name is connected to {partition}",
            hint=f"another run of the same query? {said}",
        )
    if error == _INCOMPATIBLE:
        return ConfigurationError(
            f"the schema is not compatible with that of {partition}", hint=said
        )
    if error == _TERMINATED:
        return ConfigurationError(
            f"{partition} is terminated: nothing can be published any more", hint=said
        )
    if error == _NOT_ALLOWED:
        return ConfigurationError(f"the broker refuses what is sent to {partition}", hint=said)
    return refusal(error, text, f"producing to {partition}")
