"""A broker of one topic on a real socket, that does on demand what a real one does seldom."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from reader.closing import Closing
from reader.pulsar.binary.commands import Command, framed
from reader.wire import Fields, encoded, signed
from testbed.admin import wait_until

__all__ = ["REACTIONS", "FakeBroker", "Reaction", "Session", "entry", "message"]

At = tuple[int, int]
Reaction = Callable[["Session", Fields], None]


def entry(payload: bytes, messages: int | None = None) -> bytes:
    """A stored entry: checksum (of any value), metadata, payload."""
    metadata = encoded((1, "producer"), (2, 1), (3, 1), (11, messages))
    return b"\x0e\x01abcd" + struct.pack(">I", len(metadata)) + metadata + payload


def message(consumer: int, at: At, data: bytes) -> bytes:
    """The frame of a MESSAGE."""
    position = encoded((1, at[0]), (2, at[1]), (3, -1))
    body = encoded((1, consumer), (2, position), (3, 0))
    command = encoded((1, int(Command.MESSAGE)), (int(Command.MESSAGE), body))
    size = len(command) + 4 + len(data)
    return struct.pack(">II", size, len(command)) + command + data


class Session:
    """One connection: what a broker knows of it, and how it answers."""

    def __init__(self, broker: FakeBroker, connection: socket.socket) -> None:
        self.broker = broker
        self.connection = connection
        self.sent = 0  # messages
        self.next: dict[int, At] = {}
        self.permits: dict[int, int] = {}
        self.passed: dict[int, At] = {}  # up to where all is acknowledged
        self.entry = b""  # behind the command that came last
        self.closed = False

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def error(self, request: int, code: int, text: str = "no") -> None:
        self.send(framed(Command.ERROR, encoded((1, request), (2, code), (3, text))))

    def wait_closed(self) -> None:
        """Wait until the client has closed it."""
        wait_until("the connection to close", lambda: self.closed, interval=0.01)

    def close_consumer(self, consumer: int, url: str | None = None) -> None:
        self.next.pop(consumer, None)
        self.send(framed(Command.CLOSE_CONSUMER, encoded((1, consumer), (2, -1), (3, url))))

    def serve(self) -> None:
        file = self.connection.makefile("rb")
        with suppress(OSError, ValueError):
            while size := file.read(4):
                frame = file.read(int.from_bytes(size, "big"))
                behind = 4 + int.from_bytes(frame[:4], "big")
                command, self.entry = Fields(frame[4:behind], "a command"), frame[behind:]
                kind = Command(command.number(1))
                self.broker.heard.append(kind)
                reaction = self.broker.reactions.get(kind, REACTIONS.get(kind))
                if reaction is not None:
                    reaction(self, command.message(kind))
                self.broker.done.append(kind)
        self.closed = True
        self.connection.close()

    def dispatch(self, consumer: int) -> None:
        """Send what is permitted."""
        entries = self.broker.entries
        for at in sorted(one for one in entries if one >= self.next[consumer]):
            if self.permits[consumer] <= 0 or consumer not in self.next:
                return
            hook = self.broker.before_message
            if hook is not None:
                hook(self, consumer, at)
                if consumer not in self.next:
                    return
            self.send(message(consumer, at, entries[at]))
            self.sent += 1
            self.next[consumer] = (at[0], at[1] + 1)
            self.permits[consumer] -= self.broker.counts.get(at, 1)


def connected(session: Session, body: Fields) -> None:
    session.broker.connects.append(body)
    session.send(framed(Command.CONNECTED, encoded((1, "fake"), (2, 21), (3, 5 << 20))))


def looked_up(session: Session, body: Fields) -> None:
    answer = ((1, session.broker.url), (3, 1), (4, body.number(2)))
    session.send(framed(Command.LOOKUP_RESPONSE, encoded(*answer)))


def subscribed(session: Session, body: Fields) -> None:
    start = body.message(9)
    consumer = body.number(4)
    session.next[consumer] = (1 << 60, 0)
    if body.has(9):
        at = (signed(start.number(1)), signed(start.number(2)))
        session.next[consumer], session.passed[consumer] = at, (at[0], at[1] - 1)
    session.broker.subscriptions.append(session.next[consumer])
    session.permits[consumer] = 0
    session.send(framed(Command.SUCCESS, encoded((1, body.number(5)))))


def flowed(session: Session, body: Fields) -> None:
    consumer = body.number(1)
    if consumer in session.next:
        session.permits[consumer] += body.number(2)
        session.dispatch(consumer)


def last(session: Session, body: Fields) -> None:
    ledger, number = session.broker.last
    position = encoded((1, ledger), (2, number), (3, -1), (4, -1))
    before, entry = session.passed.get(body.number(1), (-1, -1))
    while (before, entry + 1) in session.broker.hidden:
        entry += 1
    answer = encoded((1, position), (2, body.number(2)), (3, encoded((1, before), (2, entry))))
    session.send(framed(Command.GET_LAST_MESSAGE_ID_RESPONSE, answer))


def acknowledged(session: Session, body: Fields) -> None:
    at = body.message(3)
    session.passed[body.number(1)] = at.number(1), at.number(2)


def closed(session: Session, body: Fields) -> None:
    session.next.pop(body.number(1), None)
    session.send(framed(Command.SUCCESS, encoded((1, body.number(2)))))


def pinged(session: Session, body: Fields) -> None:
    session.send(framed(Command.PONG))


REACTIONS: Mapping[Command, Reaction] = {
    Command.CONNECT: connected,
    Command.LOOKUP: looked_up,
    Command.SUBSCRIBE: subscribed,
    Command.FLOW: flowed,
    Command.ACK: acknowledged,
    Command.GET_LAST_MESSAGE_ID: last,
    Command.CLOSE_CONSUMER: closed,
    Command.PING: pinged,
}


class FakeBroker(Closing):
    """Listens on loopback and gives ``entries``; ``reactions`` replaces what it does.

    ``before_message`` is called before each MESSAGE. ``counts``: messages of an entry, if not one.
    ``last``: what it answers as the last message. ``hidden``: entries that it acknowledges itself.
    ``heard``: the commands that came; ``done``: those it is done with; ``connects``: what each
    CONNECT said; ``subscriptions``: where each began. ``tls``: with TLS.
    """

    def __init__(
        self,
        entries: Mapping[At, bytes] | None = None,
        reactions: Mapping[Command, Reaction] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.entries = dict(entries or {})
        self.last = max(self.entries, default=(-1, -1))
        self.hidden: set[At] = set()
        self.reactions = dict(reactions or {})
        self.before_message: Callable[[Session, int, At], None] | None = None
        self.counts: dict[At, int] = {}
        self.heard: list[Command] = []
        self.done: list[Command] = []
        self.connects: list[Fields] = []
        self.subscriptions: list[At] = []
        self.sessions: list[Session] = []
        self._tls = tls
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.url = f"pulsar{'+ssl' if tls else ''}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.hang_up()

    def hang_up(self) -> None:
        """End all present connections. Connections that come later are served."""
        # A client may connect again before the last of them has ended: such a session is new.
        for session in list(self.sessions):
            session.closed = True
            with suppress(OSError):
                session.connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as brokers do
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
        except OSError:
            return
        session = Session(self, connection)
        self.sessions.append(session)
        session.serve()
