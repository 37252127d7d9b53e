"""A broker of one topic on a real socket, that does on demand what a real one does seldom."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from google.protobuf.message import Message

from reader.closing import Closing
from reader.pulsar.binary.commands import framed, parsed_command
from reader.wire import encoded
from reader.wire import pulsar_pb2 as api
from testbed.admin import wait_until

At = tuple[int, int]
Reaction = Callable[["Session", Any], None]
_MESSAGE = 9


def entry(payload: bytes, messages: int | None = None) -> bytes:
    """A stored entry: checksum (of any value), metadata, payload."""
    metadata = api.MessageMetadata(
        producer_name="producer", sequence_id=1, publish_time=1, num_messages_in_batch=messages
    ).SerializeToString()
    return b"\x0e\x01abcd" + struct.pack(">I", len(metadata)) + metadata + payload


def message(consumer: int, at: At, data: bytes) -> bytes:
    """The frame of a MESSAGE."""
    position = encoded((1, at[0]), (2, at[1]), (3, -1))
    body = encoded((1, consumer), (2, position), (3, 0))
    command = encoded((1, _MESSAGE), (_MESSAGE, body))
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

    def send(self, *data: Message | bytes) -> None:
        """Send commands, and whole frames, at once."""
        frames = (one if isinstance(one, bytes) else framed(one) for one in data)
        self.connection.sendall(b"".join(frames))

    def error(self, request: int, code: int, text: str = "no") -> None:
        answer = api.CommandError(request_id=request, message=text.encode())
        answer.error = code  # type: ignore[assignment]  # brokers may have newer ones
        self.send(answer)

    def wait_closed(self) -> None:
        """Wait until the client has closed it."""
        wait_until("the connection to close", lambda: self.closed, interval=0.01)

    def close_consumer(self, consumer: int, url: str | None = None) -> None:
        self.next.pop(consumer, None)
        self.send(
            api.CommandCloseConsumer(
                consumer_id=consumer, request_id=-1, assignedBrokerServiceUrl=url
            )
        )

    def serve(self) -> None:
        file = self.connection.makefile("rb")
        with suppress(OSError, ValueError):
            while size := file.read(4):
                frame = file.read(int.from_bytes(size, "big"))
                behind = 4 + int.from_bytes(frame[:4], "big")
                command, self.entry = parsed_command(frame[4:behind]), frame[behind:]
                assert command is not None
                kind = type(command)
                self.broker.heard.append(kind)
                reaction = self.broker.reactions.get(kind, REACTIONS.get(kind))
                if reaction is not None:
                    reaction(self, command)
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


def connected(session: Session, command: api.CommandConnect) -> None:
    session.broker.connects.append(command)
    session.send(api.CommandConnected(max_message_size=5 << 20))


def looked_up(session: Session, command: api.CommandLookupTopic) -> None:
    session.send(
        api.CommandLookupTopicResponse(
            brokerServiceUrl=session.broker.url,
            response=api.CommandLookupTopicResponse.Connect,
            request_id=command.request_id,
        )
    )


def subscribed(session: Session, command: api.CommandSubscribe) -> None:
    consumer = command.consumer_id
    session.next[consumer] = (1 << 60, 0)
    if command.HasField("start_message_id"):
        at = _place(command.start_message_id)
        session.next[consumer], session.passed[consumer] = at, (at[0], at[1] - 1)
    session.broker.subscribes.append(command)
    session.permits[consumer] = 0
    session.send(api.CommandSuccess(request_id=command.request_id))


def flowed(session: Session, command: api.CommandFlow) -> None:
    consumer = command.consumer_id
    if consumer in session.next:
        session.permits[consumer] += command.messagePermits
        session.dispatch(consumer)


def last(session: Session, command: api.CommandGetLastMessageId) -> None:
    ledger, number = session.broker.last
    before, entry = session.passed.get(command.consumer_id, (-1, -1))
    while (before, entry + 1) in session.broker.hidden:
        entry += 1
    session.send(
        api.CommandGetLastMessageIdResponse(
            last_message_id=api.MessageIdData(ledgerId=ledger, entryId=number),
            request_id=command.request_id,
            consumer_mark_delete_position=api.MessageIdData(ledgerId=before, entryId=entry),
        )
    )


def acknowledged(session: Session, command: api.CommandAck) -> None:
    assert command.ack_type == api.CommandAck.Cumulative
    session.passed[command.consumer_id] = _place(command.message_id[0])


def closed(session: Session, command: api.CommandCloseConsumer) -> None:
    session.next.pop(command.consumer_id, None)
    session.send(api.CommandSuccess(request_id=command.request_id))


def pinged(session: Session, command: api.CommandPing) -> None:
    session.send(api.CommandPong())


def _place(message_id: api.MessageIdData) -> At:
    return message_id.ledgerId, message_id.entryId


REACTIONS: Mapping[type[Message], Reaction] = {
    api.CommandConnect: connected,
    api.CommandLookupTopic: looked_up,
    api.CommandSubscribe: subscribed,
    api.CommandFlow: flowed,
    api.CommandAck: acknowledged,
    api.CommandGetLastMessageId: last,
    api.CommandCloseConsumer: closed,
    api.CommandPing: pinged,
}


class FakeBroker(Closing):
    """Listens on loopback and gives ``entries``; ``reactions`` replaces what it does.

    ``before_message`` is called before each MESSAGE. ``counts``: messages of an entry, if not one.
    ``last``: what it answers as the last message. ``hidden``: entries that it acknowledges itself.
    ``heard``: the commands that came; ``done``: those it is done with; ``connects``,
    ``subscribes``: each of its kind. ``tls``: with TLS.
    """

    def __init__(
        self,
        entries: Mapping[At, bytes] | None = None,
        reactions: Mapping[type[Message], Reaction] | None = None,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.entries = dict(entries or {})
        self.last = max(self.entries, default=(-1, -1))
        self.hidden: set[At] = set()
        self.reactions = dict(reactions or {})
        self.before_message: Callable[[Session, int, At], None] | None = None
        self.counts: dict[At, int] = {}
        self.heard: list[type[Message]] = []
        self.done: list[type[Message]] = []
        self.connects: list[api.CommandConnect] = []
        self.subscribes: list[api.CommandSubscribe] = []
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

    @property
    def subscriptions(self) -> list[At]:
        """Where each subscription began."""
        return [_place(one.start_message_id) for one in self.subscribes]

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
