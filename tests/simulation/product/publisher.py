"""The product's producers on a simulated broker: what they send never leaves the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from reader.config import PulsarConfig
from reader.errors import NotFoundError, UnavailableError
from reader.model import Position
from reader.pulsar.binary import Publisher
from reader.pulsar.binary.commands import Command
from reader.pulsar.binary.replies import Failed, ProducerClosed, ProducerOpen, Receipt, SendRefused
from reader.wire import Fields, signed
from testbed.simulation import ClusterState, Effects, FailureError, Frame, Producers, Reply

__all__ = ["SimulatedPublisher"]

_NOT_READY, _NOT_FOUND, _BUSY = 6, 11, 16
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

    def request(self, number: int, request: bytes, deadline: float) -> ProducerOpen | Failed:
        """Return the answer to a request."""
        kind, body = _command(request)
        try:
            with self._effects.effect(kind.name.lower(), "broker"):
                self._heard()
                if kind is Command.PRODUCER:
                    answer = self._opened(number, body)
                else:
                    assert kind is Command.GET_SCHEMA, kind
                    answer = Failed(number, _NOT_FOUND, "no schema")
        except FailureError as error:
            raise self._lost() from error
        self._heard()
        return answer

    def send(self, data: bytes) -> None:
        """Write a frame."""
        kind, body = _command(data)
        assert kind is Command.CLOSE_PRODUCER, kind
        self._heard()
        self._broker.work(self.session)
        self._broker.close(self.session, body.number(1))

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

    def wrong_answer(self) -> Exception:
        """No answer of this broker is wrong."""
        raise AssertionError

    def _opened(self, number: int, body: Fields) -> ProducerOpen | Failed:
        name, ml = body.text(4), self._state.partition(body.text(1))
        if ml is None:
            raise NotFoundError(f"topic {body.text(1)} does not exist")
        if self._state.clock.now_ms < ml.recovering_ms:
            return Failed(number, _NOT_READY, "the topic is being loaded")
        if self._broker.is_exclusive(ml):
            return Failed(number, _BUSY, "Topic has an existing exclusive producer: other")
        name = name or f"unnamed-{self._state.clock.now_ms}-{self._numbers}"
        last = self._broker.open(self.session, body.number(2), ml, name)
        if last is None:
            return Failed(number, _BUSY, f"Producer with name '{name}' is already connected")
        return ProducerOpen(number, name, last, b"")

    def _taken(self, reply: Reply) -> None:
        what, number, sequence, place = reply
        if (said := self.producers.get(number)) is None:
            return
        match what:
            case "receipt":
                said.append(Receipt(number, sequence, Position(*place)))
            case "refused":
                said.append(SendRefused(number, sequence, place[0], "simulated"))
            case "closed":
                said.append(ProducerClosed(number, "", ""))

    def _heard(self) -> None:
        if self.broken or not self.session.alive:
            # What was answered before may have come.
            raise self._lost()
        self.session.heard_ms = self._state.clock.now_ms

    def _lost(self) -> UnavailableError:
        self.close()
        return UnavailableError("the connection to the simulated broker is lost")


def _command(data: bytes) -> tuple[Command, Fields]:
    size = int.from_bytes(data[4:8], "big")
    command = Fields(data[8 : 8 + size], "a command")
    kind = Command(command.number(1))
    return kind, command.message(kind)


def _frames(data: bytes) -> list[Frame]:
    found = []
    while data:
        behind = 4 + int.from_bytes(data[:4], "big")
        _, body = _command(data)
        entry = data[8 + int.from_bytes(data[4:8], "big") : behind]
        sequence = signed(body.number(2))
        highest = body.number(6) if body.has(6) else sequence
        found.append(Frame(body.number(1), sequence, highest, entry))
        data = data[behind:]
    return found
