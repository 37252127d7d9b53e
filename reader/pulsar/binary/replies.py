"""What a broker says, except its messages: commands as values. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reader.errors import CorruptError
from reader.model import Position, SchemaInfo
from reader.pulsar.binary.commands import SCHEMA_TYPES, Command
from reader.wire import Fields, signed

__all__ = [
    "Challenge",
    "Connected",
    "ConsumerClosed",
    "Failed",
    "LastMessage",
    "Located",
    "Other",
    "Ping",
    "ProducerClosed",
    "ProducerOpen",
    "Receipt",
    "Reply",
    "SchemaFound",
    "SendRefused",
    "Success",
    "decode_reply",
]


@dataclass(frozen=True, slots=True)
class Connected:
    """``version``: of the protocol, that the broker speaks with us.

    ``most_bytes``: of a message; 0: it does not say.
    """

    version: int
    most_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Ping:
    """To be answered at once."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """The broker asks again who we are."""


@dataclass(frozen=True, slots=True)
class Success:
    request: int


@dataclass(frozen=True, slots=True)
class Failed:
    """``error``: of the enumeration ServerError; None where the answer says none."""

    request: int
    error: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Located:
    """Where a topic is served. ``redirect``: that broker has to be asked itself.

    ``url``, ``tls_url``: "" where the broker names none. ``by_proxy``: to be had through the proxy
    alone that was asked.
    """

    request: int
    url: str
    tls_url: str
    redirect: bool = False
    authoritative: bool = False
    by_proxy: bool = False


@dataclass(frozen=True, slots=True)
class LastMessage:
    """The last message that a consumer would get; entry -1: the broker knows of none.

    ``passed``: up to there the asking consumer has acknowledged, or been spared, all entries.
    """

    request: int
    position: Position
    passed: Position | None = None


@dataclass(frozen=True, slots=True)
class SchemaFound:
    """``message``: the schema as the broker writes it, to be given to it again.

    ``version``: as messages name it.
    """

    request: int
    schema: SchemaInfo
    message: bytes = b""
    version: bytes = b""


@dataclass(frozen=True, slots=True)
class ConsumerClosed:
    """By the broker, as the topic moves; to ``url`` or ``tls_url`` where it says so."""

    consumer: int
    url: str
    tls_url: str


@dataclass(frozen=True, slots=True)
class ProducerOpen:
    """``last_sequence``: the highest id of this name that the topic has, -1: the broker knows none.

    ``schema_version``: as messages name it; b"": the topic has none.
    """

    request: int
    name: str
    last_sequence: int
    schema_version: bytes


@dataclass(frozen=True, slots=True)
class ProducerClosed:
    """By the broker, as the topic moves; to ``url`` or ``tls_url`` where it says so."""

    producer: int
    url: str
    tls_url: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """An entry is stored. ``position``: ledger -1 where it was there already (deduplication)."""

    producer: int
    sequence: int
    position: Position


@dataclass(frozen=True, slots=True)
class SendRefused:
    """``error``: of the enumeration ServerError."""

    producer: int
    sequence: int
    error: int
    text: str


@dataclass(frozen=True, slots=True)
class Other:
    """Nothing that has to be acted upon: a PONG, the end of a topic, what is newer than we are."""


Reply = (
    Connected
    | Ping
    | Challenge
    | Success
    | Failed
    | Located
    | LastMessage
    | SchemaFound
    | ConsumerClosed
    | ProducerOpen
    | ProducerClosed
    | Receipt
    | SendRefused
    | Other
)

_KNOWN = frozenset(map(int, Command))
_REDIRECT, _CONNECT = 0, 1
_PRODUCER, _CONSUMER = 0, 1  # CommandTopicMigrated.ResourceType


def decode_reply(data: bytes) -> Reply:
    """Of a ``BaseCommand``. Raises CorruptError for what is none."""
    command = Fields(data, "a broker's command")
    kind = command.number(1)
    if kind == 0:
        raise CorruptError("a broker's command has no type")
    if kind not in _KNOWN:
        return Other()
    body = command.message(kind)
    match kind:
        case Command.CONNECTED:
            return Connected(body.number(2), body.number(3))
        case Command.PING:
            return Ping()
        case Command.AUTH_CHALLENGE:
            return Challenge()
        case Command.SUCCESS:
            return Success(body.number(1))
        case Command.ERROR:
            return Failed(body.number(1), body.number(2), body.text(3))
        case Command.LOOKUP_RESPONSE:
            return _located(body)
        case Command.GET_LAST_MESSAGE_ID_RESPONSE:
            passed = _position(body.message(3)) if body.has(3) else None
            return LastMessage(body.number(2), _position(body.message(1)), passed)
        case Command.GET_SCHEMA_RESPONSE:
            return _schema(body)
        case Command.CLOSE_CONSUMER:
            return ConsumerClosed(body.number(1), body.text(3), body.text(4))
        case Command.SEND_RECEIPT:
            return Receipt(body.number(1), body.number(2), _position(body.message(3)))
        case Command.SEND_ERROR:
            return SendRefused(body.number(1), body.number(2), body.number(3), body.text(4))
        case Command.PRODUCER_SUCCESS:
            last = signed(body.number(3, (1 << 64) - 1))
            return ProducerOpen(body.number(1), body.text(2), last, body.data(4) or b"")
        case Command.CLOSE_PRODUCER:
            return ProducerClosed(body.number(1), body.text(3), body.text(4))
        case Command.TOPIC_MIGRATED if body.number(2) == _PRODUCER:
            return ProducerClosed(body.number(1), "", "")
        case Command.TOPIC_MIGRATED if body.number(2) == _CONSUMER:
            # To another cluster: its URL is one for lookups, and the settings name the old one.
            return ConsumerClosed(body.number(1), "", "")
        case _:
            return Other()


def _position(found: Fields) -> Position:
    return Position(signed(found.number(1)), signed(found.number(2)))


def _located(body: Fields) -> Reply:
    answer = body.number(3)
    if answer not in (_REDIRECT, _CONNECT) or body.has(6):
        return Failed(body.number(4), body.number(6) if body.has(6) else None, body.text(7))
    return Located(
        body.number(4),
        body.text(1),
        body.text(2),
        answer == _REDIRECT,
        body.flag(5),
        body.flag(8),
    )


# -- schemas ---------------------------------------------------------------------------------------

_TYPES = {number: name for name, number in SCHEMA_TYPES.items()}


def _schema(body: Fields) -> Reply:
    request = body.number(1)
    if body.has(2) or not body.has(4):
        return Failed(request, body.number(2) if body.has(2) else None, body.text(3))
    schema = body.message(4)
    kind = _TYPES.get(schema.number(4), f"TYPE_{schema.number(4)}")
    data = schema.data(3) or b""
    version = int.from_bytes(body.data(5) or b"", "big", signed=True)
    definition = _key_value(data) if kind == "KEY_VALUE" else data.decode(errors="replace")
    properties = {one.text(1): one.text(2) for one in schema.messages(5)}
    return SchemaFound(
        request,
        SchemaInfo(version, kind, definition, properties),
        body.data(4) or b"",
        body.data(5) or b"",
    )


def _key_value(data: bytes) -> str:
    """Two schemas, each after its size, as the JSON that the REST API makes of them."""
    halves: list[object] = []
    at = 0
    for _ in range(2):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size > len(data) - at or len(data) < at:
            raise CorruptError("a broker's key-value schema ends too early")
        halves.append(_half(data[at : at + max(size, 0)]))
        at += max(size, 0)
    return json.dumps(dict(zip(("key", "value"), halves, strict=True)), ensure_ascii=False)


def _half(data: bytes) -> object:
    text = data.decode(errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text
