"""A non-durable, exclusive subscription of one topic, which reads entries from a position on.

The reader permits the broker to send a number of messages (FLOW): a thousand at first, then as many
as fill about ``_AHEAD_BYTES``. Sent entries wait in the sockets, because bytes are received only
when the caller asks for entries.

A range ends at the last message that a consumer would get (GET_LAST_MESSAGE_ID). The broker sends
all messages up to it. Entries behind it are hidden or do not exist. The answer has no message for
an empty topic, and for a topic that was terminated while its last ledger was empty. Older brokers
name a marker, which they never send. In these cases the reader acknowledges the entries that it
received. The broker acknowledges the entries that it hides, and its answer contains the position up
to which all entries are acknowledged.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from reader.errors import PulsarLakeError, UnavailableError
from reader.model import BEFORE_ALL, EntryBlock, Partition, Position
from reader.pulsar.binary.broker_connection import BrokerConnection
from reader.pulsar.binary.broker_errors import refusal
from reader.pulsar.binary.commands import message_id_of, position_of
from reader.pulsar.binary.frames import ENTRY, LEDGER, LENGTH, MESSAGES, OFFSET, Rows
from reader.wire import pulsar_pb2 as api

_FIRST_PERMITS = 1000
_LEAST_PERMITS = 4
_MOST_PERMITS = 100_000
_AHEAD_BYTES = 8 << 20
ASK_AGAIN_SECONDS = 1.0
_UNSURE_PAUSE, _UNSURE_SECONDS = 0.02, 2.0
"""For a broker that knows of no message: when to ask again first, and how long to doubt it."""
_PROGRESS_BYTES = 64 << 10
"""A broker that sends less of one entry within ``pulsar.timeout`` counts as silent."""
_MOST_SKIPPED = 1000
"""Entries that are read and left out before a new subscription is the shorter way."""


class Consumer:
    """A subscription, which the constructor makes.

    ``first``: the position of the first entry; None: only entries that are published later.
    ``timeout``: seconds that the broker may be silent. Raises as ``BrokerClient.read``.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        partition: Partition,
        first: Position | None,
        *,
        deadline: float,
        timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.connection = connection
        self.partition = partition
        self._timeout = timeout
        self._clock = clock
        # Given out; came.
        self._taken = self._reached = BEFORE_ALL if first is None else first.before
        self._pending: deque[Rows] = deque()
        self._permits = 0
        self._messages = self._bytes = 0
        self._skipped = 0
        self._end: Position | None = None
        self._knows_end = False  # it was asked for since the range began, or lies behind it
        self._end_request: int | None = None
        self._passed = BEFORE_ALL  # as the broker says
        self._unsure = False  # whether the broker knows of no message
        self._number = connection.next_number()
        connection.consumers[self._number] = None
        connection.follow(self._number, self._reached)
        name = f"pulsar-lake-{uuid.uuid4().hex[:12]}"
        request = api.CommandSubscribe(
            topic=partition.full_name,
            subscription=name,
            subType=api.CommandSubscribe.Exclusive,
            consumer_id=self._number,
            consumer_name=name,
            durable=False,
            start_message_id=None if first is None else message_id_of(first),
            read_compacted=False,
            initialPosition=api.CommandSubscribe.Latest,
            force_topic_creation=False,
        )
        try:
            connection.request(request, api.CommandSuccess, deadline, self._refusal)
        except PulsarLakeError:
            connection.consumers.pop(self._number, None)
            raise

    @property
    def moved(self) -> api.CommandCloseConsumer | None:
        """The broker's CLOSE_CONSUMER for this consumer, or None while it is open."""
        return self.connection.consumers.get(self._number)

    @property
    def usable(self) -> bool:
        """Return whether the connection and this consumer are open."""
        return not self.connection.broken and self.moved is None

    def goes_on_to(self, partition: Partition, wanted: Position) -> bool:
        """Return whether this consumer can read ``wanted`` without skipping many entries."""
        taken = self._taken
        near = wanted.ledger > taken.ledger or wanted.entry - taken.entry <= _MOST_SKIPPED
        return self.usable and self.partition == partition and wanted > taken and near

    def close(self, deadline: float | None = None) -> None:
        """Unsubscribe. ``deadline``: until when to wait for the broker's confirmation."""
        connection = self.connection
        moved = connection.consumers.pop(self._number, None)
        if connection.broken or moved is not None:
            return
        connection.follow(-1, BEFORE_ALL)
        number = connection.ask(api.CommandCloseConsumer(consumer_id=self._number))
        if deadline is None:
            connection.forget(number)
        else:
            connection.awaited(number, deadline)

    def ask_last_position(self) -> None:
        """Request the last entry's position. Only for a consumer without permits."""
        if self._end_request is not None:
            self.connection.forget(self._end_request)  # it may tell of an earlier time
        self._end_request = None
        self._ask_for_end()

    def take_last_position(self, deadline: float) -> Position:
        """Wait until ``deadline`` and return the position that was requested."""
        assert self._end_request is not None
        number, self._end_request = self._end_request, None
        answer = self.connection.awaited(number, deadline)
        last = self.connection.checked(answer, api.CommandGetLastMessageIdResponse, self._refusal)
        return position_of(last.last_message_id)

    # -- entries -------------------------------------------------------------------------------

    def blocks(self, wanted: Position, last: int, block_bytes: int) -> Iterator[EntryBlock]:
        """Yield the entries that the broker sends, from ``wanted`` up to ``last`` of its ledger.

        Raises UnavailableError, after all received entries, if the subscription cannot continue.
        """
        target = Position(wanted.ledger, last)
        self._begin(wanted, target, block_bytes)
        patience = _Patience(self._clock, self._timeout)
        lost: UnavailableError | None = None
        try:
            while not self._complete(wanted, target):
                if self._pending and self._pending[0].arena is not self._pending[-1].arena:
                    if (block := self._take(wanted, target)) is not None:
                        yield block
                        patience.begin()
                else:
                    self._wait(patience)
        except UnavailableError as error:
            lost = error
        while (block := self._take(wanted, target)) is not None:
            yield block
        if lost is not None:
            raise lost
        self._taken = max(self._taken, target)

    def _begin(self, wanted: Position, target: Position, block_bytes: int) -> None:
        self.connection.size_blocks(block_bytes)
        self._skipped = 0
        self._unsure = False
        self._knows_end = self._end is not None and self._end >= target
        if self._end_request is not None:
            self.connection.forget(self._end_request)  # it may tell of an earlier time
            self._end_request = None
        if self._reached < target:
            self._permit(min(target.entry - wanted.entry + 1, self._window()))
            if not self._knows_end:
                self._ask_for_end()

    def _complete(self, wanted: Position, target: Position) -> bool:
        """Return whether the broker will send no further entry of the range."""
        if self._reached >= target or self._passed >= target:
            return True
        if not self._knows_end or self._end is None:
            return False
        return self._end <= max(self._reached, wanted.before)

    def _wait(self, patience: _Patience) -> None:
        """Wait for entries or an answer."""
        reached, received = self._reached, self.connection.received
        rows = self.connection.rows
        if not rows:  # some may have come while the client was idle
            self.connection.poll(patience.seconds())
        while rows:
            self._arrived(rows.popleft())
        answered = self._look_for_end()
        if self.moved is not None:
            raise UnavailableError(f"the broker gives {self.partition} to another one")
        came = self._reached > reached
        if came:
            patience.begin()
        if self._unsure and (came or answered):
            patience.ask_soon()
        if came:
            return
        if patience.ended(self.connection.received - received):
            raise UnavailableError(
                f"the broker {self.connection.name} is silent about {self.partition}"
            )
        if patience.asks_again():
            self._insist()
        elif self._unsure and patience.waited() >= min(_UNSURE_SECONDS, self._timeout / 2):
            self._end, self._knows_end = BEFORE_ALL, True

    def _insist(self) -> None:
        """Permit messages again, acknowledge, and request the last position."""
        # It may count messages in another way than we do.
        self._permits = 0
        self._permit(self._window())
        if self._reached.entry >= 0:
            self.connection.send(
                api.CommandAck(
                    consumer_id=self._number,
                    ack_type=api.CommandAck.Cumulative,
                    message_id=[message_id_of(self._reached)],
                )
            )
        self._ask_for_end()

    def _arrived(self, rows: Rows) -> None:
        values = rows.values
        self._pending.append(rows)
        self._reached = Position(int(values[LEDGER, -1]), int(values[ENTRY, -1]))
        count = int(values[MESSAGES].sum())
        self._messages += count
        self._bytes += int(values[LENGTH].sum())
        self._permits -= count
        if 2 * self._permits < self._window():
            self._permit(self._window())

    def _take(self, wanted: Position, target: Position) -> EntryBlock | None:
        """Return pending entries of the range in one arena, or None if none are pending."""
        while self._pending:
            arena, parts = self._pending[0].arena, []
            while self._pending and self._pending[0].arena is arena:
                values = self._pending[0].values
                end = _count_until(values, target)
                if end:
                    parts.append(values[:, :end])
                if end < values.shape[1]:
                    self._pending[0] = Rows(arena, values[:, end:])
                    break
                self._pending.popleft()
            if not parts:
                return None
            found = np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
            self._taken = Position(int(found[LEDGER, -1]), int(found[ENTRY, -1]))
            begin = _count_until(found, wanted.before)
            self._skipped += begin
            if begin < found.shape[1]:
                found = found[:, begin:]
                return EntryBlock(wanted.ledger, found[ENTRY], found[OFFSET], found[LENGTH], arena)
            if self._skipped > _MOST_SKIPPED:
                raise UnavailableError(f"{wanted} of {self.partition} is too far ahead")
        return None

    # -- permits, and the end ------------------------------------------------------------------

    def _window(self) -> int:
        if not self._messages:
            return _FIRST_PERMITS
        mean = max(self._bytes // self._messages, 1)
        return min(max(_AHEAD_BYTES // mean, _LEAST_PERMITS), _MOST_PERMITS)

    def _permit(self, messages: int) -> None:
        """Raise the number of permitted messages in flight to at least ``messages``."""
        if messages > self._permits:
            more = messages - self._permits
            self.connection.send(api.CommandFlow(consumer_id=self._number, messagePermits=more))
            self._permits = messages

    def _ask_for_end(self) -> None:
        if self._end_request is None:
            request = api.CommandGetLastMessageId(consumer_id=self._number)
            self._end_request = self.connection.ask(request)

    def _look_for_end(self) -> bool:
        """Return whether the broker answered the request for its last position."""
        if self._end_request is None:
            return False
        answer = self.connection.answer(self._end_request)
        if answer is None:
            return False
        self._end_request = None
        last = self.connection.checked(answer, api.CommandGetLastMessageIdResponse, self._refusal)
        if last.HasField("consumer_mark_delete_position"):
            self._passed = max(self._passed, position_of(last.consumer_mark_delete_position))
        end = position_of(last.last_message_id)
        self._unsure = end.entry < 0
        if not self._unsure:
            self._end, self._knows_end = end, True
        return True

    def _refusal(self, failed: api.CommandError) -> PulsarLakeError:
        return refusal(failed, str(self.partition))


def _count_until(values: npt.NDArray[np.int64], position: Position) -> int:
    """Return how many entries, which ascend, are at or before a position."""
    ledgers, entries = values[LEDGER], values[ENTRY]
    low, high = np.searchsorted(ledgers, (position.ledger, position.ledger + 1))
    return int(low + np.searchsorted(entries[low:high], position.entry, side="right"))


class _Patience:
    """The deadline of a wait, and the time of the next retry.

    ``timeout``: seconds without progress after which the wait fails.
    """

    def __init__(self, clock: Callable[[], float], timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self.begin()

    def begin(self) -> None:
        """Start again after progress."""
        now = self._clock()
        self._bytes = 0
        self._began = now
        self._soon = _UNSURE_PAUSE
        self._deadline = now + self._timeout
        self._pause = min(ASK_AGAIN_SECONDS, self._timeout / 4)
        self._ask_at = now + self._pause

    def seconds(self) -> float:
        """Return the seconds until the next retry or the deadline."""
        return max(min(self._deadline, self._ask_at) - self._clock(), 0.0)

    def waited(self) -> float:
        """Return the seconds since the last progress."""
        return self._clock() - self._began

    def ask_soon(self) -> None:
        """Retry in a moment. The pause doubles with each retry."""
        self._ask_at = min(self._ask_at, self._clock() + self._soon)
        self._pause, self._soon = self._soon, 2 * self._soon

    def ended(self, received: int) -> bool:
        """Return whether the deadline has passed. ``received``: bytes of an incomplete entry."""
        self._bytes += received
        if self._bytes >= _PROGRESS_BYTES:
            self.begin()
        return self._clock() >= self._deadline

    def asks_again(self) -> bool:
        """Return whether a retry is due. The pause doubles with each retry."""
        if self._clock() < self._ask_at:
            return False
        self._pause *= 2
        self._ask_at = self._clock() + self._pause
        return True
