"""The product's producers on a simulated broker: what they send never leaves the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from reader.config import PulsarConfig
from reader.errors import NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Position
from reader.pulsar.binary import Publisher
from reader.pulsar.binary.commands import message_id_of, parsed_command
from reader.wire import pulsar_pb2 as api
from testbed.simulation import ClusterState, Effects, FailureError, Frame, Producers, Reply

_FRAMES_AT_ONCE = 4
"""What the broker looks at while a producer only asks whether anything has come."""


class SimulatedPublisher(Publisher):
    """For one process: the product's own, above the last step to a socket."""

    def __init__(
        self, config: PulsarConfig, state: ClusterState, producers: Producers, effects: Effects
    ) -> None:
        clock = state.clock
        super().__init__(config, clock=lambda: clock.now_ms / 1000, sleep=clock.sleep)
        self.connections = SimulatedConnections(state, producers, effects)
        self._connections = self.connections  # type: ignore[assignment]


class SimulatedConnections:
    """``BrokerConnections``, of one broker."""

    def __init__(self, state: ClusterState, producers: Producers, effects: Effects) -> None:
        self._state = state
        self._producers = producers
        self._effects = effects
        self._open: SimulatedConnection | None = None

    def served(self, topic: str, deadline: float) -> str:
        """Ask for the topic's broker."""
        try:
            with self._effects.effect("lookup", "broker"):
                return topic
        except FailureError as error:
            raise UnavailableError("no answer from the simulated broker") from error

    def connection(self, served: str, deadline: float, *, entries: bool) -> SimulatedConnection:
        """Return the connection, a new one if that is broken."""
        self.drop_broken()
        if self._open is None:
            self._open = SimulatedConnection(self._state, self._producers, self._effects)
        return self._open

    def resume(self, most: int) -> None:
        """Drop the connection if it has ended meanwhile."""
        self.drop_broken()

    def drop_broken(self) -> None:
        """Drop the connection if it is broken."""
        if self._open is not None and (self._open.broken or not self._open.session.alive):
            self._open = None

    def close(self) -> None:
        """End the connection."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def die(self, *, silent: bool, frames: int) -> None:
        """The process dies. ``frames``: so many of those on their way come to the broker.

        ``silent``: its host is gone, so that the broker keeps the connection for a while.
        """
        if self._open is not None:
            self._producers.work(self._open.session, frames)
            if not silent:
                self.close()
            self._open = None


class SimulatedConnection:
    """``BrokerConnection``, as far as a producer knows it."""

    def __init__(self, state: ClusterState, producers: Producers, effects: Effects) -> None:
        self._state = state
        self._broker = producers
        self._effects = effects
        self._numbers = 0
        self.broken = False
        self.most_bytes = 5 << 20
        self.producers: dict[int, deque[Any]] = {}
        self.session = producers.connect()

    def next_number(self) -> int:
        """Of a request or a producer."""
        self._numbers += 1
        return self._numbers

    def close(self) -> None:
        """Close the socket; the broker closes what was opened through it."""
        self.broken = True
        if self.session.alive:
            self._broker.work(self.session)
            self._broker.end(self.session)

    def request(
        self,
        request: api.CommandProducer | api.CommandGetSchema,
        expected: object,
        deadline: float,
        refuse: Callable[[api.CommandError], PulsarLakeError],
    ) -> api.CommandProducerSuccess:
        """Return the answer to a request."""
        opens = isinstance(request, api.CommandProducer)
        try:
            with self._effects.effect("producer" if opens else "get_schema", "broker"):
                self._heard()
                answer = (
                    self._opened(request)
                    if isinstance(request, api.CommandProducer)
                    else api.CommandError(error="TopicNotFound", message=b"no schema")
                )
        except FailureError as error:
            raise self._lost() from error
        self._heard()
        if isinstance(answer, api.CommandError):
            raise refuse(answer)
        return answer

    def ask(self, request: api.CommandCloseProducer) -> int:
        """Close a producer."""
        self._heard()
        self._broker.work(self.session)
        self._broker.close(self.session, request.producer_id)
        return 0

    def forget(self, number: int) -> None:
        """Ignore the answer to a request."""

    def publish(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Write entries; the broker looks at them later."""
        data = b"".join(pieces)
        try:
            with self._effects.effect("send", "broker"):
                self._heard()
                self.session.incoming += _frames(data)
        except FailureError as error:
            raise self._lost() from error
        self._heard()

    def poll(self, seconds: float) -> bool:
        """Take what the broker has answered; let time pass if that is nothing."""
        try:
            with self._effects.effect("receipts", "broker"):
                self._heard()
                self._broker.work(self.session, None if seconds else _FRAMES_AT_ONCE)
        except FailureError as error:
            raise self._lost() from error
        came = bool(self.session.replies)
        while self.session.replies:
            self._taken(self.session.replies.popleft())
        if not came:
            self._heard()
            self._state.clock.advance(int(seconds * 1000))
        return came

    def _opened(
        self, request: api.CommandProducer
    ) -> api.CommandProducerSuccess | api.CommandError:
        ml = self._state.partition(request.topic)
        if ml is None:
            raise NotFoundError(f"topic {request.topic} does not exist")
        if self._state.clock.now_ms < ml.recovering_ms:
            return api.CommandError(error="ServiceNotReady", message=b"the topic is being loaded")
        if self._broker.is_exclusive(ml):
            why = b"Topic has an existing exclusive producer: other"
            return api.CommandError(error="ProducerBusy", message=why)
        name = request.producer_name or f"unnamed-{self._state.clock.now_ms}-{self._numbers}"
        last = self._broker.open(self.session, request.producer_id, ml, name)
        if last is None:
            why = f"Producer with name '{name}' is already connected".encode()
            return api.CommandError(error="ProducerBusy", message=why)
        return api.CommandProducerSuccess(producer_name=name, last_sequence_id=last)

    def _taken(self, reply: Reply) -> None:
        what, number, sequence, place = reply
        if (said := self.producers.get(number)) is None:
            return
        match what:
            case "receipt":
                said.append(
                    api.CommandSendReceipt(
                        producer_id=number,
                        sequence_id=sequence,
                        message_id=message_id_of(Position(*place)),
                    )
                )
            case "refused":
                refused = api.CommandSendError(producer_id=number, sequence_id=sequence)
                refused.error = place[0]  # type: ignore[assignment]
                said.append(refused)
            case "closed":
                said.append(api.CommandCloseProducer(producer_id=number))

    def _heard(self) -> None:
        if self.broken or not self.session.alive:
            # What was answered before may have come.
            raise self._lost()
        self.session.heard_ms = self._state.clock.now_ms

    def _lost(self) -> UnavailableError:
        self.close()
        return UnavailableError("the connection to the simulated broker is lost")


def _frames(data: bytes) -> list[Frame]:
    found = []
    while data:
        behind = 4 + int.from_bytes(data[:4], "big")
        begin = 8 + int.from_bytes(data[4:8], "big")
        command = parsed_command(data[8:begin])
        assert isinstance(command, api.CommandSend)
        sequence, several = command.sequence_id, command.HasField("highest_sequence_id")
        highest = command.highest_sequence_id if several else sequence
        found.append(Frame(command.producer_id, sequence, highest, data[begin:behind]))
        data = data[behind:]
    return found
