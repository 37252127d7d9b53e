"""One socket to one broker: commands out, answers and entries in.

It answers the broker's PING and AUTH_CHALLENGE whenever it reads, and sends a PING of its own
where it waits for long: a broker that is gone is noticed before ``pulsar.timeout``.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.message import Message

from reader.closing import Closing
from reader.config import PulsarConfig
from reader.errors import ConfigurationError, CorruptError, PulsarLakeError, UnavailableError
from reader.model import Position
from reader.pulsar.binary.broker_errors import failed_answer, refusal
from reader.pulsar.binary.commands import PROTOCOL_VERSION, framed, parsed_command
from reader.pulsar.binary.frames import FrameReader, Rows
from reader.pulsar.binary.service_address import Address
from reader.pulsar.credentials import Identity, current_token
from reader.tls import certificate_error, client_context
from reader.wire import pulsar_pb2 as api

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

_AT_ONCE = 256 << 10
"""Bytes that are read from the socket before they are taken apart, where there are so many."""
_MOST_BYTES = 5 << 20
"""Of a message, where a broker does not say: Pulsar's ``maxMessageSize`` as it comes."""
_QUIET_SECONDS = 10.0
_CHALLENGES = 4
_PIECES = 512
_TLS_AT_ONCE = 1 << 20
_CLIENT = "pulsar-lake"

Answer = (
    api.CommandError
    | api.CommandGetLastMessageIdResponse
    | api.CommandGetSchemaResponse
    | api.CommandLookupTopicResponse
    | api.CommandProducerSuccess
    | api.CommandSuccess
)
Request = (
    api.CommandCloseConsumer
    | api.CommandCloseProducer
    | api.CommandGetLastMessageId
    | api.CommandGetSchema
    | api.CommandLookupTopic
    | api.CommandProducer
    | api.CommandSubscribe
)
ToProducer = api.CommandSendReceipt | api.CommandSendError | api.CommandCloseProducer
"""A command that a broker sends to a producer."""
Refuse = Callable[[api.CommandError], PulsarLakeError]
T = TypeVar("T", bound=Answer)


class BrokerConnection(Closing):
    """Connected when made; for one thread. After an UnavailableError it cannot be used any more.

    ``broker``: behind the proxy at ``address``, that the proxy is to connect to. ``identity``: with
    which it was opened. ``rows``: entries of ``consumer`` that have come and were not taken yet.
    ``consumers``: their numbers; what the broker says where it closed one. ``producers``: what the
    broker has said to each, by number, and was not taken yet. ``most_bytes``: of a message, as the
    broker says. Raises as ``BrokerClient.read``.
    """

    def __init__(
        self,
        address: Address,
        broker: str | None,
        config: PulsarConfig,
        identity: Identity,
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = f"{broker} (through {address})" if broker else str(address)
        self.identity = identity
        self.rows: deque[Rows] = deque()
        self.consumers: dict[int, api.CommandCloseConsumer | None] = {}
        self.producers: dict[int, deque[ToProducer]] = {}
        self.most_bytes = _MOST_BYTES
        self.broken = False
        self.received = 0  # bytes, ever
        self._config = config
        self._clock = clock
        self._answers: dict[int, Answer] = {}
        self._wanted: set[int] = set()
        self._connected = False
        self._failure: api.CommandError | None = None
        self._challenges = 0
        self._frames = FrameReader()
        self._silent = 0.0
        self._pinged = False
        self._requests = 0
        timeout = config.timeout.total_seconds()
        self._quiet = min(_QUIET_SECONDS, timeout / 4)
        self._socket = self._open(address, seconds)
        try:
            self._shake_hands(broker, clock() + seconds)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the socket; the broker closes what was opened through it."""
        self.broken = True
        self._socket.close()

    # -- what comes ----------------------------------------------------------------------------

    def follow(self, consumer: int, after: Position) -> None:
        """From now on give the entries of this consumer behind a position, and of no other."""
        self.rows.clear()
        self._frames.follow(consumer, after.ledger, after.entry)

    def size_blocks(self, size: int) -> None:
        """How many bytes are received to one piece of memory, from the next one on."""
        self._frames.arena_bytes = size

    def next_number(self) -> int:
        """Of a request or a consumer."""
        self._requests += 1
        return self._requests

    def send(self, command: Message) -> None:
        """Write a command."""
        try:
            self._socket.settimeout(self._config.timeout.total_seconds())
            self._socket.sendall(framed(command))
        except OSError as error:
            raise self._lost(error) from error

    def publish(self, pieces: Sequence[Buffer]) -> None:
        """Write whole frames, in pieces, as fast as the broker takes them.

        A broker that takes nothing for ``pulsar.timeout`` is gone; one that limits publishing takes
        little at a time.
        """
        left = [memoryview(one).cast("B") for one in pieces]
        if isinstance(self._socket, ssl.SSLSocket):
            left = [memoryview(b"".join(left))]
        try:
            self._socket.settimeout(self._config.timeout.total_seconds())
            while left:
                if isinstance(self._socket, ssl.SSLSocket):
                    sent = self._socket.send(left[0][:_TLS_AT_ONCE])
                else:
                    sent = self._socket.sendmsg(left[:_PIECES])
                while left and sent >= len(left[0]):
                    sent -= len(left.pop(0))
                if sent:
                    left[0] = left[0][sent:]
        except OSError as error:
            raise self._lost(error) from error

    def ask(self, request: Request) -> int:
        """Send a request under a number of its own, and return the number."""
        request.request_id = number = self.next_number()
        self._wanted.add(number)
        self.send(request)
        return number

    def answer(self, number: int) -> Answer | None:
        """Return the answer to a request, once, or None if it has not arrived."""
        return self._answers.pop(number, None)

    def forget(self, number: int) -> None:
        """Drop the answer to a request, also if it arrives later."""
        self._wanted.discard(number)
        self._answers.pop(number, None)

    def awaited(self, number: int, deadline: float) -> Answer:
        """Wait until ``deadline`` of the clock for the answer to a request, and return it."""
        while (answer := self.answer(number)) is None:
            self._wait(deadline, "an answer")
        return answer

    def request(self, request: Request, expected: type[T], deadline: float, refuse: Refuse) -> T:
        """Send a request, and return its answer as ``checked`` does."""
        return self.checked(self.awaited(self.ask(request), deadline), expected, refuse)

    def checked(self, answer: Answer, expected: type[T], refuse: Refuse) -> T:
        """Return an answer that is of the expected type.

        refuse: makes the error that is raised if the broker refuses the request. Raises
        CorruptError if the answer belongs to another kind of request.
        """
        if (failed := failed_answer(answer)) is not None:
            raise refuse(failed)
        if not isinstance(answer, expected):
            self.broken = True
            raise CorruptError(f"the broker {self.name} answers what was not asked")
        return answer

    def poll(self, seconds: float) -> bool:
        """Wait so long for bytes at most, and take apart what came; whether anything did."""
        before = self._clock()
        if not self._receive(min(max(seconds, 0.0), self._quiet)):
            self._silent += max(self._clock() - before, 0.0)
            self._keep_alive()
            return False
        self._silent, self._pinged = 0.0, False
        return True

    def drain(self, most: int) -> None:
        """Take what has come meanwhile. Raises UnavailableError if that is more bytes."""
        seen = 0
        while got := self._receive(0.0):
            seen += got
            if seen > most:
                raise self._lost(OSError("more has come than was asked for"))

    # -- within --------------------------------------------------------------------------------

    def _open(self, address: Address, seconds: float) -> socket.socket:
        opened: socket.socket | None = None
        try:
            opened = socket.create_connection((address.host, address.port), seconds)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._secured(opened, address.host) if address.tls else opened
        except (OSError, UnicodeError) as error:
            if opened is not None:
                opened.close()
            if reason := certificate_error(error):
                raise ConfigurationError(
                    f"the certificate of the broker {self.name} is not accepted: {reason}",
                    hint="check pulsar.tls_trust_certs_file and the host in pulsar.service_url",
                ) from error
            raise self._lost(error) from error

    def _secured(self, opened: socket.socket, host: str) -> socket.socket:
        config = self._config
        context = client_context(
            "pulsar (broker)",
            trust=config.tls_trust_certs_file,
            certificate=config.tls_certificate_file,
            key=config.tls_key_file,
            verify_hostname=config.tls_verify_hostname,
        )
        return context.wrap_socket(opened, server_hostname=host)

    def _shake_hands(self, broker: str | None, deadline: float) -> None:
        method, credential = self._credential(self.identity[0])
        self.send(
            api.CommandConnect(
                client_version=_CLIENT,
                auth_method_name=method,
                auth_data=credential,
                protocol_version=PROTOCOL_VERSION,
                proxy_to_broker_url=broker,
                feature_flags=api.FeatureFlags(
                    supports_auth_refresh=True, supports_broker_entry_metadata=True
                ),
            )
        )
        while not self._connected:
            self._wait(deadline, "the end of the handshake")

    def _credential(self, token: str | None) -> tuple[str, bytes | None]:
        if token:
            return "token", token.encode()
        return ("tls" if self._config.tls_certificate_file else "none"), None

    def _wait(self, deadline: float, what: str) -> None:
        left = deadline - self._clock()
        if left <= 0:
            raise self._lost(TimeoutError(f"{what} is not there in time"))
        self.poll(left)
        if self._failure is not None:
            failure = self._failure
            self.broken = True
            raise refusal(failure, f"a connection to {self.name}")

    def _keep_alive(self) -> None:
        if self._silent < self._quiet:
            return
        if not self._pinged:
            self._pinged = True
            self.send(api.CommandPing())
        elif self._silent >= 2 * self._quiet:
            raise self._lost(TimeoutError("nothing comes, not even the answer to a PING"))

    def _receive(self, seconds: float) -> int:
        """Bytes that came within so many seconds; 0: none did."""
        got = 0
        try:
            # The other thing that settimeout(0) could mean is "for ever".
            self._socket.settimeout(seconds)
            while True:
                count = self._socket.recv_into(self._frames.room())
                if not count:
                    raise self._lost(OSError("the broker closed the connection"))
                self._frames.received(count)
                got += count
                if got >= _AT_ONCE or not self._more_at_hand():
                    break
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError as error:
            raise self._lost(error) from error
        if got:
            self.received += got
            self._take_apart()
        return got

    def _more_at_hand(self) -> bool:
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def _take_apart(self) -> None:
        try:
            while True:
                while (rows := self._frames.messages()) is not None:
                    self.rows.append(rows)
                if (command := self._frames.command()) is None:
                    return
                self._take(parsed_command(command))
        except PulsarLakeError:
            self.broken = True
            raise

    def _take(self, command: Message | None) -> None:
        match command:
            case api.CommandPing():
                self.send(api.CommandPong())
            case api.CommandConnected():
                self._connected = True
                self.most_bytes = command.max_message_size or self.most_bytes
            case api.CommandAuthChallenge():
                self._answer_challenge()
            case api.CommandCloseConsumer():
                if command.consumer_id in self.consumers:
                    self.consumers[command.consumer_id] = command
            case api.CommandSendReceipt() | api.CommandSendError() | api.CommandCloseProducer():
                if command.producer_id in self.producers:
                    self.producers[command.producer_id].append(command)
            case api.CommandTopicMigrated():
                # To another cluster: its URL is for lookups, and the settings name the old one.
                number, kind = command.resource_id, command.resource_type
                if kind == api.CommandTopicMigrated.Producer:
                    self._take(api.CommandCloseProducer(producer_id=number))
                elif kind == api.CommandTopicMigrated.Consumer:
                    self._take(api.CommandCloseConsumer(consumer_id=number))
            case _ if isinstance(command, Answer):
                if command.request_id in self._wanted:
                    self._wanted.discard(command.request_id)
                    self._answers[command.request_id] = command
                elif isinstance(command, api.CommandError) and not self._connected:
                    self._failure = command

    def _answer_challenge(self) -> None:
        self._challenges += 1
        if not self._connected and self._challenges > _CHALLENGES:
            raise self._lost(OSError("the broker never believes who we are"))
        method, credential = self._credential(current_token(self._config))
        self.send(
            api.CommandAuthResponse(
                client_version=_CLIENT,
                response=api.AuthData(auth_method_name=method, auth_data=credential or b""),
                protocol_version=PROTOCOL_VERSION,
            )
        )

    def _lost(self, error: Exception) -> UnavailableError:
        self.broken = True
        return UnavailableError(
            f"no connection to the broker {self.name}: {error or type(error).__name__}",
            hint="check pulsar.service_url and that the broker runs",
        )
