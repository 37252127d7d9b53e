"""What we send to a broker: whole frames, ``u32 size``, ``u32 size of the command``, the command.

The command is a ``BaseCommand`` (PulsarApi.proto): its type is field 1, and what it says is the
field whose number is that of the type. No I/O.
"""

from __future__ import annotations

import json
from enum import IntEnum

from reader.model import Position, SchemaInfo
from reader.wire import encoded

__all__ = [
    "PROTOCOL_VERSION",
    "SCHEMA_TYPES",
    "Command",
    "acknowledge",
    "auth_response",
    "close_consumer",
    "close_producer",
    "connect",
    "flow",
    "framed",
    "get_schema",
    "last_message_id",
    "lookup",
    "ping",
    "pong",
    "producer",
    "schema_message",
    "send",
    "subscribe",
]

PROTOCOL_VERSION = 21
"""Pulsar 4's. A broker that knows less answers with its own; from 11 on it sends checksums."""
_CLIENT = "pulsar-lake"
_EXCLUSIVE = 0
_CUMULATIVE = 1
_LATEST = 0
SCHEMA_TYPES = {
    "BYTES": 0,
    "STRING": 1,
    "JSON": 2,
    "PROTOBUF": 3,
    "AVRO": 4,
    "BOOLEAN": 5,
    "INT8": 6,
    "INT16": 7,
    "INT32": 8,
    "INT64": 9,
    "FLOAT": 10,
    "DOUBLE": 11,
    "DATE": 12,
    "TIME": 13,
    "TIMESTAMP": 14,
    "KEY_VALUE": 15,
    "INSTANT": 16,
    "LOCAL_DATE": 17,
    "LOCAL_TIME": 18,
    "LOCAL_DATE_TIME": 19,
    "PROTOBUF_NATIVE": 20,
    "AUTO_CONSUME": 21,
    "EXTERNAL": 22,
}
"""Schema.Type, by the names that the REST API has for them."""


class Command(IntEnum):
    """``BaseCommand.Type``, what is used of it."""

    CONNECT = 2
    CONNECTED = 3
    SUBSCRIBE = 4
    PRODUCER = 5
    SEND = 6
    SEND_RECEIPT = 7
    SEND_ERROR = 8
    MESSAGE = 9
    ACK = 10
    FLOW = 11
    SUCCESS = 13
    ERROR = 14
    CLOSE_PRODUCER = 15
    CLOSE_CONSUMER = 16
    PRODUCER_SUCCESS = 17
    PING = 18
    PONG = 19
    LOOKUP = 23
    LOOKUP_RESPONSE = 24
    REACHED_END_OF_TOPIC = 27
    GET_LAST_MESSAGE_ID = 29
    GET_LAST_MESSAGE_ID_RESPONSE = 30
    ACTIVE_CONSUMER_CHANGE = 31
    GET_SCHEMA = 34
    GET_SCHEMA_RESPONSE = 35
    AUTH_CHALLENGE = 36
    AUTH_RESPONSE = 37
    TOPIC_MIGRATED = 68


def framed(kind: Command, body: bytes = b"") -> bytes:
    """A frame with a command that has no payload."""
    command = encoded((1, int(kind)), (int(kind), body))
    size = len(command)
    return (size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + command


def connect(method: str, credential: bytes | None, broker: str | None) -> bytes:
    """``method``: of authentication. ``broker``: ``host:port`` that a proxy is to connect to."""
    features = encoded(
        (1, 1),  # that a token may be asked for again
        (2, 1),  # that entries may come with the broker's metadata
    )
    return framed(
        Command.CONNECT,
        encoded(
            (1, _CLIENT),
            (5, method),
            (3, credential),
            (4, PROTOCOL_VERSION),
            (6, broker),
            (10, features),
        ),
    )


def auth_response(method: str, credential: bytes) -> bytes:
    """The answer to AUTH_CHALLENGE."""
    data = encoded((1, method), (2, credential))
    return framed(Command.AUTH_RESPONSE, encoded((1, _CLIENT), (2, data), (3, PROTOCOL_VERSION)))


def lookup(request: int, topic: str, authoritative: bool) -> bytes:
    return framed(Command.LOOKUP, encoded((1, topic), (2, request), (3, int(authoritative))))


def subscribe(request: int, consumer: int, topic: str, name: str, first: Position | None) -> bytes:
    """Return the request for a non-durable, exclusive subscription.

    ``first``: the position of the first entry that the broker sends; None: only entries that are
    published later. The broker does not create a topic.
    """
    start = None
    if first is not None:
        start = encoded((1, first.ledger), (2, first.entry))
    return framed(
        Command.SUBSCRIBE,
        encoded(
            (1, topic),
            (2, name),
            (3, _EXCLUSIVE),
            (4, consumer),
            (5, request),
            (6, name),
            (8, 0),
            (9, start),
            (11, 0),
            (13, _LATEST),
            (15, 0),
        ),
    )


def flow(consumer: int, messages: int) -> bytes:
    """Permits for so many messages more."""
    return framed(Command.FLOW, encoded((1, consumer), (2, messages)))


def acknowledge(consumer: int, position: Position) -> bytes:
    """All entries up to a position, by a consumer without a durable subscription."""
    at = encoded((1, position.ledger), (2, position.entry))
    return framed(Command.ACK, encoded((1, consumer), (2, _CUMULATIVE), (3, at)))


def close_consumer(request: int, consumer: int) -> bytes:
    return framed(Command.CLOSE_CONSUMER, encoded((1, consumer), (2, request)))


def producer(
    request: int,
    number: int,
    topic: str,
    name: str | None,
    schema: bytes | None,
    *,
    encrypted: bool,
) -> bytes:
    """A producer that shares its topic with others. ``name``: None: the broker makes one up.

    ``schema``: what its messages have, as ``schema_message`` or a broker writes it; a topic that
    lacks it gets it, if its strategy allows.
    """
    return framed(
        Command.PRODUCER,
        encoded(
            (1, topic),
            (2, number),
            (3, request),
            (4, name),
            (5, int(encrypted)),
            (7, schema),
            (9, int(name is not None)),
        ),
    )


def send(number: int, sequence: int, highest: int, messages: int, size: int) -> bytes:
    """The head of a frame with an entry of ``size`` bytes, which are to follow.

    ``sequence``, ``highest``: ids of its first and last message.
    """
    body = encoded(
        (1, number),
        (2, sequence),
        (3, messages),
        (6, highest if highest != sequence else None),
    )
    command = encoded((1, int(Command.SEND)), (int(Command.SEND), body))
    inner = len(command)
    return (inner + 4 + size).to_bytes(4, "big") + inner.to_bytes(4, "big") + command


def close_producer(request: int, number: int) -> bytes:
    return framed(Command.CLOSE_PRODUCER, encoded((1, number), (2, request)))


def schema_message(schema: SchemaInfo) -> bytes:
    """A ``Schema`` of PulsarApi.proto."""
    data = schema.definition.encode()
    if schema.type == "KEY_VALUE":
        data = _key_value(schema.definition)
    pairs = [(5, encoded((1, name), (2, value))) for name, value in schema.properties.items()]
    return encoded((1, ""), (3, data), (4, SCHEMA_TYPES[schema.type]), *pairs)


def _key_value(definition: str) -> bytes:
    """Both schemas, each after its size (u32), out of the JSON that the REST API makes of them."""
    halves = json.loads(definition)
    out = b""
    for half in (halves["key"], halves["value"]):
        text = half if isinstance(half, str) else json.dumps(half, separators=(",", ":"))
        data = text.encode()
        out += len(data).to_bytes(4, "big") + data
    return out


def last_message_id(request: int, consumer: int) -> bytes:
    return framed(Command.GET_LAST_MESSAGE_ID, encoded((1, consumer), (2, request)))


def get_schema(request: int, topic: str, version: bytes | None) -> bytes:
    return framed(Command.GET_SCHEMA, encoded((1, request), (2, topic), (3, version)))


def ping() -> bytes:
    return framed(Command.PING)


def pong() -> bytes:
    return framed(Command.PONG)
