"""Publishing: what was sent comes back as a list, which is the oracle of a test.

    sent = publish(url, topic, ({"id": n} for n in range(1000)), schema=json_schema(ORDER))
    sent[0].value, sent[0].payload

Schemas take Python values and also ready bytes, which are sent as they are, so that a test can
put broken payloads into a topic.
"""

import io
import json
import os
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import _pulsar
import fastavro
import pulsar
from pulsar.schema import Schema

MessageId = tuple[int, int, int, int]
"""(ledger, entry, partition, batch index); -1 where there is none."""

T = TypeVar("T")

_STRIDE = 100
_LARGE = 100_000

_PATIENCE = 240
"""Seconds for an answer of the broker: no test is about how long it takes."""

BYTES: Any = pulsar.schema.BytesSchema()


class PublishError(RuntimeError):
    """The broker did not take a message."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message, to be sent or sent already. What is None or empty is left out."""

    value: Any
    """As the schema takes it; None is a null value (a tombstone)."""
    key: str | None = None
    ordering_key: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    event_time: int | None = None
    """Milliseconds since 1970."""
    deliver_at: int | None = None
    """Milliseconds since 1970."""
    sequence_id: int | None = None
    payload: bytes | None = None
    """Once sent: the value as the schema wrote it."""
    message_id: MessageId | None = None
    """Once sent with `ids`: where it is."""


@contextmanager
def quiet_client(service_url: str, **options: Any) -> Iterator[Any]:
    """A `pulsar.Client` that prints nothing, and waits for slow servers; closed at the end."""
    options.setdefault("operation_timeout_seconds", _PATIENCE)
    options.setdefault("logger", pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull))
    client = pulsar.Client(service_url, **options)
    try:
        yield client
    finally:
        client.close()


def publish(
    to: Any,
    topic: str,
    messages: Iterable[Any],
    *,
    schema: Any = BYTES,
    batch: int = 0,
    compression: str = "NONE",
    chunking: bool = False,
    in_flight: int = 5_000,
    ids: bool = False,
    producer_name: str | None = None,
    send_timeout: float = _PATIENCE,
    **options: Any,
) -> list[Message]:
    """Send everything in order; returns what was sent, in that order.

    to: a service URL, or an open client.
    messages: `Message`s, or plain values.
    batch: messages to a batch; 0 sends each as an entry of its own.
    compression: NONE, LZ4, ZLib, ZSTD or SNAPPY.
    chunking: split what is larger than the broker's limit; not with batches.
    in_flight: how many may wait for their receipt at a time.
    ids: also ask for message ids, which is four times slower.
    options: of `pulsar.Client.create_producer`.
    Raises `PublishError` with the first failure.
    """
    if isinstance(to, str):
        with quiet_client(to) as client:
            return publish(
                client,
                topic,
                messages,
                schema=schema,
                batch=batch,
                compression=compression,
                chunking=chunking,
                in_flight=in_flight,
                ids=ids,
                producer_name=producer_name,
                send_timeout=send_timeout,
                **options,
            )
    in_flight = max(in_flight, 4 * batch)  # or batches would wait for ever to become full
    settings: dict[str, Any] = {
        "schema": schema,
        "producer_name": producer_name,
        "send_timeout_millis": int(send_timeout * 1000),
        "compression_type": pulsar.CompressionType.__members__[compression],
        "chunking_enabled": chunking,
        "max_pending_messages": 2 * in_flight + _STRIDE,
        "max_pending_messages_across_partitions": 128 * in_flight + _STRIDE,
        "batching_enabled": batch > 0,
    }
    if batch > 0:
        settings |= {
            "batching_max_messages": batch,
            "batching_max_allowed_size_in_bytes": 4 * 1024 * 1024,
            # Batches are cut by their count, however slow we are; the rest leaves with the flush at
            # the end.
            "batching_max_publish_delay_ms": 60_000,
        }
    producer = to.create_producer(topic, **(settings | options))
    try:
        return _send_all(producer, schema, messages, in_flight, ids)
    finally:
        producer.close()


def _send_all(
    producer: Any, schema: Any, messages: Iterable[Any], in_flight: int, ids: bool
) -> list[Message]:
    sent: list[Message] = []
    where: list[tuple[int, MessageId]] = []
    failures: list[str] = []
    # A receipt costs more than a send (two threads fight for the GIL): without ids, only some
    # messages ask for one. They come in order, so it speaks for those before it; a large
    # message may be refused by itself, and flush() does not tell.
    stride = 1 if ids else _STRIDE
    permits = max(in_flight // stride, 1)
    room = threading.Semaphore(permits)

    def receipt(number: int) -> Callable[[Any, Any], None]:
        def received(result: Any, at: Any) -> None:  # on a thread of the client
            if result == pulsar.Result.Ok:
                place = (at.ledger_id(), at.entry_id(), at.partition(), at.batch_index())
                where.append((number, place))
            else:
                failures.append(f"message {number}: {result}")
            room.release()

        return received

    for number, (item, last) in enumerate(_with_last(messages)):
        message = item if isinstance(item, Message) else Message(item)
        payload = None if message.value is None else schema.encode(message.value)
        callback = None
        if last or number % stride == stride - 1 or len(payload or b"") > _LARGE:
            room.acquire()
            callback = receipt(number)
        if failures:
            break
        producer._producer.send_async(_build(message, payload), callback)
        sent.append(replace(message, payload=payload))
    if not failures:
        try:
            producer.flush()
        except pulsar.exceptions.PulsarException as error:
            failures.append(f"flush: {error}")
    if not failures:
        for _ in range(permits):  # callbacks may still be running when flush() returns
            room.acquire()
    if failures:
        raise PublishError(failures[0])
    if ids:
        sent = [replace(sent[number], message_id=place) for number, place in sorted(where)]
    return sent


def _with_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Each item, and whether it is the last one."""
    held: list[T] = []
    for item in items:
        if held:
            yield held.pop(), False
        held.append(item)
    if held:
        yield held.pop(), True


def _build(message: Message, payload: bytes | None) -> Any:
    """Straight to the extension: `Producer.send_async` checks types for longer than it sends,
    and leaves out empty keys and sequence id 0."""
    builder = _pulsar.MessageBuilder()
    if payload is None:
        builder.set_null_value()
    else:
        builder.content(payload)
    for name, value in message.properties.items():
        builder.property(name, value)
    if message.key is not None:
        builder.partition_key(message.key)
    if message.ordering_key is not None:
        builder.ordering_key(message.ordering_key)
    if message.event_time is not None:
        builder.event_timestamp(message.event_time)
    if message.deliver_at is not None:
        builder.deliver_at(message.deliver_at)
    if message.sequence_id is not None:
        builder.sequence_id(message.sequence_id)
    return builder.build()


# --- schemas ---


def avro_schema(definition: Any) -> Any:
    """Avro records. `definition`: a schema as a dict, or a `pulsar.schema.Record` class."""
    definition = _definition(definition)
    parsed = fastavro.parse_schema(definition)

    def encode(value: Any) -> bytes:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, value)
        return buffer.getvalue()

    return _schema("AVRO", json.dumps(definition), encode)


def json_schema(definition: Any) -> Any:
    """JSON objects, written compactly. `definition`: as for `avro_schema`."""
    encoder = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)
    definition = json.dumps(_definition(definition))
    return _schema("JSON", definition, lambda value: encoder.encode(value).encode())


_PRIMITIVES: dict[str, Callable[[Any], bytes]] = {
    "INT8": struct.Struct(">b").pack,
    "INT16": struct.Struct(">h").pack,
    "INT32": struct.Struct(">i").pack,
    "INT64": struct.Struct(">q").pack,
    "FLOAT": struct.Struct(">f").pack,
    "DOUBLE": struct.Struct(">d").pack,
    "STRING": str.encode,
}


def primitive_schema(kind: str) -> Any:
    """INT8 … INT64, FLOAT, DOUBLE or STRING.

    Only STRING is registered by the client: upload the others with `Admin.upload_schema`;
    their messages carry no schema version all the same.
    """
    return _schema(kind, "", _PRIMITIVES[kind])


def _definition(given: Any) -> Any:
    return given.schema() if hasattr(given, "schema") else given


def _schema(kind: str, definition: str, encode: Callable[[Any], bytes]) -> Any:
    """The client's schema object with our `encode`, which lets ready bytes through."""
    member = _pulsar.SchemaType.__members__[kind]
    made = Schema(object, member, None, kind)
    made._schema_info = _pulsar.SchemaInfo(member, kind, definition)
    made.encode = lambda value: value if isinstance(value, bytes) else encode(value)
    return made
