"""A producer of one partition: entries out, in order; receipts in.

Several may be under way: as many as ``WINDOW_ENTRIES`` and ``_MOST_BYTES`` permit, the send window.
Receipts are read where the window is full, and at the end.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reader.errors import ConfigurationError, PulsarLakeError, UnavailableError
from reader.kernels.crc32c import crc32c
from reader.model import Partition, Position
from reader.pulsar.binary.broker_connection import BrokerConnection, ToProducer
from reader.pulsar.binary.broker_errors import broker_text, refusal
from reader.pulsar.binary.commands import framed, position_of
from reader.wire import pulsar_pb2 as api

WINDOW_ENTRIES = 1000
_MOST_BYTES = 32 << 20
SEND_BYTES = 1 << 20
"""Bytes of entries that are written to the socket together."""
_QUOTA = (
    api.ServerError.ProducerBlockedQuotaExceededError,
    api.ServerError.ProducerBlockedQuotaExceededException,
)
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
    of it need have been stored: only a receipt says that. ``schema``: of its messages, as a broker
    writes it; a topic that lacks it gets it, if its strategy allows. ``stored``: how many entries
    the broker has confirmed; ``repeated``: (first, highest id) of those among them that it had
    already. ``last``: the highest position that was confirmed. ``refused``: whether the broker has
    refused an entry.
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
        self._received: deque[ToProducer] = deque()
        connection.producers[self._number] = self._received
        request = api.CommandProducer(
            topic=partition.full_name,
            producer_id=self._number,
            producer_name=name,
            encrypted=encrypted,
            schema=schema,
            user_provided_producer_name=name is not None,
        )
        try:
            opened = connection.request(
                request, api.CommandProducerSuccess, deadline, self._refusal
            )
        except PulsarLakeError:
            connection.producers.pop(self._number, None)
            raise
        self.name = opened.producer_name
        self.last_sequence = opened.last_sequence_id
        self.schema_version = opened.schema_version

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
        command = api.CommandSend(
            producer_id=self._number, sequence_id=entry.sequence, num_messages=entry.messages
        )
        if entry.highest != entry.sequence:
            command.highest_sequence_id = entry.highest
        begin = framed(command, len(_MAGIC) + 4 + len(head) + len(entry.payload))
        self._pieces += (begin + _MAGIC + checksum.to_bytes(4, "big") + head, entry.payload)
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
        number = self.connection.ask(api.CommandCloseProducer(producer_id=self._number))
        if deadline is None:
            self.connection.forget(number)
        else:
            self.connection.awaited(number, deadline)

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
        while self._received:
            match command := self._received.popleft():
                case api.CommandSendReceipt():
                    self._stored(command)
                case api.CommandSendError():
                    # What is on its way behind it must not be stored, or it never could be.
                    self.refused = True
                    self.connection.close()
                    raise self._refusal(command)
                case api.CommandCloseProducer():
                    self.connection.producers.pop(self._number, None)
                    raise UnavailableError(f"the broker has closed {self.partition}")

    def _stored(self, receipt: api.CommandSendReceipt) -> None:
        """Each entry has one of its own; what was there already is confirmed ahead of others."""
        sent = self._window.pop(receipt.sequence_id, None)
        if sent is None:
            return
        highest, size = sent
        self._window_bytes -= size
        self.stored += 1
        position = position_of(receipt.message_id)
        if position.ledger < 0:
            self.repeated.append((receipt.sequence_id, highest))
        else:
            self.last = max(self.last or position, position)

    def _refusal(self, failed: api.CommandError | api.CommandSendError) -> PulsarLakeError:
        return producer_error(failed, self.partition)


def producer_error(
    failed: api.CommandError | api.CommandSendError, partition: Partition
) -> PulsarLakeError:
    """Return the error for what a broker refuses to a producer."""
    error, said = failed.error, broker_text(failed)
    if error in _QUOTA:
        return UnavailableError(
            f"the backlog quota of {partition} is exceeded, so nothing can be published",
            hint=f"subscriptions have to catch up: {said}",
        )
    if error == api.ServerError.PersistenceError:
        return UnavailableError(f"{partition} has it, and has not stored it yet: {said}")
    # One code for a name that is taken (which the text has in it), and for a topic that is.
    busy = error == api.ServerError.ProducerBusy
    full = busy and b"is already connected" not in failed.message
    if error == api.ServerError.ProducerFenced or (
        full and b"exclusive producer" in failed.message
    ):
        return ConfigurationError(
            f"an exclusive producer has {partition} for itself, as long as it is connected",
            hint=said,
        )
    if full and b"reached max" in failed.message:
        return ConfigurationError(f"{partition} takes no more producers", hint=said)
    if busy:
        return UnavailableError(
            f"another producer of that name is connected to {partition}",
            hint=f"another run of the same query? {said}",
        )
    if error == api.ServerError.IncompatibleSchema:
        return ConfigurationError(
            f"the schema is not compatible with that of {partition}", hint=said
        )
    if error == api.ServerError.TopicTerminatedError:
        return ConfigurationError(
            f"{partition} is terminated: nothing can be published any more", hint=said
        )
    if error == api.ServerError.NotAllowedError:
        return ConfigurationError(f"the broker refuses what is sent to {partition}", hint=said)
    return refusal(failed, f"producing to {partition}")
