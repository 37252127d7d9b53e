"""Kinds that `pulsar-client` writes: what is published, and the payload columns that come out."""

import datetime as dt
import decimal
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.publish import BYTES, Message, avro_schema, json_schema, primitive_schema, publish
from tests.contract.corpus import Kind, Place
from tests.contract.rows import Key, Row, plain
from tests.support.schemas import avro_record


@dataclass(frozen=True)
class Case:
    """One topic. ``row`` gives the payload columns of a published message.

    options: options of ``publish``; the messages are sent once with each of them.
    """

    name: str
    messages: Sequence[Message]
    row: Callable[[Message], Row]
    schema: Any = BYTES
    options: Sequence[dict[str, Any]] = ({},)
    partitions: int = 0

    @property
    def producer(self) -> str:
        return f"of {self.name}"

    def send(self, client: Any, topic: str, part: Sequence[Message]) -> dict[Key, Row]:
        """Publish some messages with each of the options; the columns of their rows."""
        found = {}
        for options in self.options:
            sent = publish(
                client,
                topic,
                part,
                schema=self.schema,
                ids=True,
                producer_name=self.producer,
                **options,
            )
            for message in sent:
                assert message.message_id is not None
                ledger, entry, partition, batch = message.message_id
                key = partition, ledger, entry, batch
                found[key] = {n: plain(value) for n, value in self._columns(message).items()}
        return found

    def _columns(self, message: Message) -> Row:
        return {
            **self.row(message),
            "__key": message.key,
            "__orderingKey": message.ordering_key.encode() if message.ordering_key else None,
            "__messageProperties": list(message.properties.items()),
            "__eventTime": message.event_time * 1000 if message.event_time else None,
            "__deliverAt": message.deliver_at * 1000 if message.deliver_at else None,
            "__producerName": self.producer,
        }


def _kind(case: Case) -> Kind:
    """Two ledgers of each partition; messages alternate between partitions."""

    def publish(to: Place) -> Iterator[None]:
        half = (len(case.messages) + 1) // 2
        for number, part in enumerate((case.messages[:half], case.messages[half:])):
            if number:
                yield
            to.known |= case.send(to.client, to.topic, part)

    rows = len(case.messages) * len(case.options)
    # The payload columns are those of the published message, which win over these.
    return Kind(case.name, rows, publish, lambda _: {}, partitions=case.partitions, halves=True)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": "double"},
        {"name": "count", "type": ["null", "int"], "default": None},
        {"name": "paid", "type": "boolean"},
        {
            "name": "state",
            "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT", "DONE"]},
        },
        {
            "name": "address",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Address",
                    "fields": [
                        {"name": "street", "type": "string"},
                        {"name": "zip", "type": ["null", "int"], "default": None},
                    ],
                },
            ],
            "default": None,
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "scores", "type": {"type": "map", "values": "long"}},
    ],
}

EXACT = avro_record(
    "Exact",
    {
        "day": {"type": "int", "logicalType": "date"},
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "millis": {"type": "long", "logicalType": "timestamp-millis"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3},
        "raw": "bytes",
        "pair": {"type": "fixed", "name": "Pair", "size": 2},
        "either": ["null", "string", "long"],
    },
)


def _order(rng: random.Random, number: int) -> Row:
    return {
        "id": number,
        "customer": rng.choice([None, "", "Ada", "Grüße 🚀"]),
        "amount": rng.choice([0.0, -1.5, 1e300, rng.random()]),
        "count": rng.choice([None, 0, -(2**31), 2**31 - 1]),
        "paid": rng.random() < 0.5,
        "state": rng.choice(["NEW", "SENT", "DONE"]),
        "address": rng.choice(
            [None, {"street": "Main", "zip": None}, {"street": 'a "quoted" one', "zip": 12345}]
        ),
        "tags": rng.choice([[], ["a"], ["x\ny", "", "z"]]),
        "scores": rng.choice([{}, {"a": 1}, {"a": -(2**63), "b": 2**63 - 1}]),
    }


def _orders(count: int, seed: int) -> list[Message]:
    rng = random.Random(seed)
    return [
        Message(
            _order(rng, number),
            key=rng.choice([None, "k1", "schlüssel"]),
            properties=rng.choice([{}, {"a": "1"}, {"a": "", "b": "ü"}]),
            event_time=rng.choice([None, 1, 1_700_000_000_000 + number]),
            ordering_key=rng.choice([None, "o"]),
        )
        for number in range(count)
    ]


def _order_row(message: Message) -> Row:
    row = dict(message.value)
    row["scores"] = sorted(row["scores"].items())
    return row


def _exact(number: int) -> Row:
    return {
        "day": dt.date(1970, 1, 1) + dt.timedelta(days=number * 500 - 20_000),
        "at": dt.datetime(1960, 1, 1, tzinfo=dt.UTC)
        + dt.timedelta(days=number * 300, microseconds=1),
        "millis": dt.datetime(2020, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number),
        "price": decimal.Decimal(number * 1001 - 5000).scaleb(-3),
        "raw": bytes([number % 256, 0, 255]),
        "pair": bytes([number % 256, 7]),
        "either": [None, f"text {number}", number][number % 3],
    }


def _exact_row(message: Message) -> Row:
    row = dict(message.value)
    either = row["either"]
    row["either"] = (
        None
        if either is None
        else {
            "member0": either if isinstance(either, str) else None,
            "member1": either if isinstance(either, int) else None,
        }
    )
    return row


def _value(message: Message) -> Row:
    return {"value": message.value}


def _payload(message: Message) -> Row:
    """pulsar-client registers no schema for numbers: their topics are bytes."""
    return {"value": message.payload}


def _bytes_of(count: int, size: int, seed: int) -> list[Message]:
    rng = random.Random(seed)
    return [Message(rng.randbytes(rng.randrange(size))) for _ in range(count)]


CASES: list[Case] = [
    Case(
        "avro-orders",
        _orders(400, 1),
        _order_row,
        avro_schema(ORDER),
        [{"batch": 37, "compression": "LZ4"}],
    ),
    Case("avro-single", _orders(50, 2), _order_row, avro_schema(ORDER)),
    Case(
        "avro-partitioned",
        _orders(300, 3),
        _order_row,
        avro_schema(ORDER),
        [{"batch": 10, "compression": "ZSTD"}],
        partitions=3,
    ),
    Case(
        "json-orders",
        _orders(400, 4),
        _order_row,
        json_schema(ORDER),
        [{"batch": 50, "compression": "LZ4"}],
    ),
    Case(
        "avro-exact",
        [Message(_exact(number)) for number in range(90)],
        _exact_row,
        avro_schema(EXACT),
        [{"batch": 20}],
    ),
    Case(
        "strings",
        [Message(text) for text in ("", "a", "Grüße", "line\nbreak", "x" * 100_000)],
        _value,
        primitive_schema("STRING"),
        [{"batch": 3}],
    ),
    Case(
        "longs",
        [Message(n) for n in (0, -1, 2**63 - 1, -(2**63))],
        _payload,
        primitive_schema("INT64"),
    ),
    Case("ints", [Message(n) for n in (0, -1, 2**31 - 1)], _payload, primitive_schema("INT32")),
    Case(
        "doubles",
        [Message(x) for x in (0.0, -0.0, 1.5, 1e308, float("inf"))],
        _payload,
        primitive_schema("DOUBLE"),
    ),
    Case(
        "nulls",
        [
            Message(None, key="a"),
            Message(b"", key="a"),
            Message(b"x"),
            Message(None),
            Message(b"x", key=""),
            Message(b"x", deliver_at=1_700_000_000_123),  # the client leaves it out of batches
        ],
        _value,
        options=[{}, {"batch": 4}],
    ),
    Case(
        "bytes",
        # Empty messages stay out of single ZLIB entries: pulsar-client cannot read its own.
        [Message(message.value + b"x" * 200) for message in _bytes_of(60, 300, 7)],
        _value,
        options=[
            {"compression": kind, "batch": batch}
            for kind in ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")
            for batch in (0, 16)
        ],
    ),
]

KINDS = [_kind(case) for case in CASES]
