"""A subscription of one topic, non-durable and exclusive: entries from a position on.

What the broker may send ahead is permitted by messages (FLOW): a thousand at first, then about as
many as ``_AHEAD_BYTES`` of the topic's have. It waits in sockets and not here: bytes are read only
when entries are asked for.

Where nothing is left the broker says: the last message that a consumer would get is asked for
(GET_LAST_MESSAGE_ID), and all up to it comes. What lies behind it is hidden, or not there. Where it
knows of none (so also of a topic that was terminated while its last ledger was empty), or where
that one does not come (older brokers name markers), what came is acknowledged: what the broker
hides it acknowledges itself, and it tells how far both reach without a gap.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from reader.errors import UnavailableError
from reader.model import EntryBlock, Partition, Position
from reader.pulsar.binary import commands
from reader.pulsar.binary.broker_connection import BrokerConnection
from reader.pulsar.binary.broker_errors import refusal
from reader.pulsar.binary.frames import ENTRY, LEDGER, LENGTH, MESSAGES, OFFSET, Rows
from reader.pulsar.binary.replies import ConsumerClosed, Failed, LastMessage

__all__ = ["ASK_AGAIN_SECONDS", "Consumer"]

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
_NOTHING = Position(-1, -1)


class Consumer:
    """Subscribed when made. ``first``: the position that it begins at; None: the end.

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
        before = _NOTHING if first is None else Position(first.ledger, first.entry - 1)
        self._taken = self._reached = before  # given out; came
        self._pending: deque[Rows] = deque()
        self._permits = 0
        self._messages = self._bytes = 0
        self._skipped = 0
        self._end: Position | None = None
        self._knows_end = False  # it was asked for since the range began, or lies behind it
        self._end_request: int | None = None
        self._passed = _NOTHING  # as the broker says
        self._unsure = False  # whether the broker knows of no message
        self._number = connection.next_number()
        connection.consumers[self._number] = None
        connection.follow(self._number, self._reached)
        name = f"pulsar-lake-{uuid.uuid4().hex[:12]}"
        request = connection.next_number()
        answer = connection.request(
            request,
            commands.subscribe(request, self._number, partition.full_name, name, first),
            deadline,
        )
        if isinstance(answer, Failed):
            del connection.consumers[self._number]
            raise refusal(answer.error, answer.text, str(partition))

    @property
    def moved(self) -> ConsumerClosed | None:
        """What the broker said when it closed this consumer; None while it is open."""
        return self.connection.consumers.get(self._number)

    @property
    def usable(self) -> bool:
        """Whether it can go on."""
        return not self.connection.broken and self.moved is None

    def goes_on_to(self, partition: Partition, wanted: Position) -> bool:
        """Whether it stands where ``wanted`` follows, as far as one can tell."""
        taken = self._taken
        near = wanted.ledger > taken.ledger or wanted.entry - taken.entry <= _MOST_SKIPPED
        return self.usable and self.partition == partition and wanted > taken and near

    def close(self, deadline: float | None = None) -> None:
        """Unsubscribe. ``deadline``: until when to wait for the broker to have done so."""
        connection = self.connection
        moved = connection.consumers.pop(self._number, None)
        if connection.broken or moved is not None:
            return
        connection.follow(-1, _NOTHING)
        number = connection.next_number()
        request = commands.close_consumer(number, self._number)
        if deadline is None:
            connection.send(request)
        else:
            connection.request(number, request, deadline)

    def ask_last_position(self) -> None:
        """Ask for the last entry that a consumer would get. For one that is sent no entries."""
        if self._end_request is not None:
            self.connection.forget(self._end_request)  # it may tell of an earlier time
        self._end_request = None
        self._ask_for_end()

    def take_last_position(self, deadline: float) -> Position:
        """What was asked for, waited for until ``deadline`` of the clock."""
        assert self._end_request is not None
        number, self._end_request = self._end_request, None
        answer = self.connection.awaited(number, deadline)
        if isinstance(answer, Failed):
            raise refusal(answer.error, answer.text, str(self.partition))
        if not isinstance(answer, LastMessage):
            raise self.connection.wrong_answer()
        return answer.position

    # -- entries -------------------------------------------------------------------------------

    def blocks(self, wanted: Position, last: int, block_bytes: int) -> Iterator[EntryBlock]:
        """Entries from ``wanted`` on, up to ``last`` of its ledger, that the broker gives.

        Raises UnavailableError, after all that came, where it cannot go on.
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
        """Whether all of the range has come that ever will."""
        if self._reached >= target or self._passed >= target:
            return True
        before = Position(wanted.ledger, wanted.entry - 1)
        return self._knows_end and self._end is not None and self._end <= max(self._reached, before)

    def _wait(self, patience: _Patience) -> None:
        """For entries or an answer."""
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
            self._end, self._knows_end = _NOTHING, True

    def _insist(self) -> None:
        """Ask for more, and how far we are."""
        # It may count messages in another way than we do.
        self._permits = 0
        self._permit(self._window())
        if self._reached.entry >= 0:
            self.connection.send(commands.acknowledge(self._number, self._reached))
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
        """What lies within the range and came in the first piece of memory that has any of it."""
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
            begin = _count_until(found, Position(wanted.ledger, wanted.entry - 1))
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
        """Have at least so many messages permitted that did not come yet."""
        if messages > self._permits:
            self.connection.send(commands.flow(self._number, messages - self._permits))
            self._permits = messages

    def _ask_for_end(self) -> None:
        if self._end_request is None:
            self._end_request = self.connection.next_number()
            request = commands.last_message_id(self._end_request, self._number)
            self.connection.ask(self._end_request, request)

    def _look_for_end(self) -> bool:
        """Whether the broker answered where its last message is."""
        if self._end_request is None:
            return False
        answer = self.connection.answer(self._end_request)
        if answer is None:
            return False
        self._end_request = None
        if isinstance(answer, Failed):
            raise refusal(answer.error, answer.text, str(self.partition))
        if not isinstance(answer, LastMessage):
            raise self.connection.wrong_answer()
        self._passed = max(self._passed, answer.passed or _NOTHING)
        self._unsure = answer.position.entry < 0
        if not self._unsure:
            self._end, self._knows_end = answer.position, True
        return True


def _count_until(values: npt.NDArray[np.int64], position: Position) -> int:
    """How many of the entries, which ascend, lie at or before a position."""
    ledgers, entries = values[LEDGER], values[ENTRY]
    low, high = np.searchsorted(ledgers, (position.ledger, position.ledger + 1))
    return int(low + np.searchsorted(entries[low:high], position.entry, side="right"))


class _Patience:
    """How long to wait, and when to ask again. ``timeout``: seconds in which nothing comes."""

    def __init__(self, clock: Callable[[], float], timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self.begin()

    def begin(self) -> None:
        """Something came."""
        now = self._clock()
        self._bytes = 0
        self._began = now
        self._soon = _UNSURE_PAUSE
        self._deadline = now + self._timeout
        self._pause = min(ASK_AGAIN_SECONDS, self._timeout / 4)
        self._ask_at = now + self._pause

    def seconds(self) -> float:
        """To wait now."""
        return max(min(self._deadline, self._ask_at) - self._clock(), 0.0)

    def waited(self) -> float:
        """For how many seconds."""
        return self._clock() - self._began

    def ask_soon(self) -> None:
        """Ask again in a moment, the next time after twice as long."""
        self._ask_at = min(self._ask_at, self._clock() + self._soon)
        self._pause, self._soon = self._soon, 2 * self._soon

    def ended(self, received: int) -> bool:
        """Whether it waited long enough. ``received``: bytes, of no whole entry."""
        self._bytes += received
        if self._bytes >= _PROGRESS_BYTES:
            self.begin()
        return self._clock() >= self._deadline

    def asks_again(self) -> bool:
        """Whether to ask again now, the next time after twice as long."""
        if self._clock() < self._ask_at:
            return False
        self._pause *= 2
        self._ask_at = self._clock() + self._pause
        return True
