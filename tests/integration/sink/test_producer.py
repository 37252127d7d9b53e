"""Entries that we send, read by Pulsar's Java and Python clients: exactly what was written."""

import base64
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulsar
import pyarrow as pa
import pytest

from reader.clients import Clients
from reader.encode import Compression, Encryption, EntryFormat
from reader.errors import ConfigurationError, NotFoundError
from reader.model import Partition, Position, Topic
from reader.scan import TopicReader
from reader.sink import Target, resolve_target
from reader.sink.sending import outgoing
from testbed.admin import Admin
from testbed.oracle import Json, Oracle
from tests.unit.encode.messages.encoding import Row, encode, expected
from tests.unit.encode.messages.test_batches import EVERYTHING

ROWS = [*EVERYTHING, Row(b"later", "k", order=b"o", event=9, deliver=1_700_000_000_000)]


def write(
    clients: Clients,
    topic: str,
    rows: Sequence[Row],
    form: EntryFormat | None = None,
    keys: Mapping[str, str] | None = None,
    name: str = "pulsar-lake-test",
) -> list[int]:
    """Sends them to the topic's one partition; the sequence ids of the entries."""
    encryption = Encryption({one: pem.encode() for one, pem in keys.items()}) if keys else None
    target = resolve_target(clients, Topic.parse(topic))
    form = form or EntryFormat(entry_bytes=target.entry_bytes, schema_version=target.schema_version)
    sequence, found = 0, []
    with clients.publisher() as publisher:
        producer = publisher.producer(
            target.partition(0), name=name, schema=target.schema_message, encrypted=keys is not None
        )
        for one in encode(rows, form, encryption):
            producer.send(outgoing(producer.name, sequence, one, lambda: 1_700_000_000.5))
            found.append(sequence)
            sequence += one.ids
        producer.flush()
        assert producer.stored == len(found)
        assert producer.last is not None
        assert producer.last.entry >= 0
        producer.close()
    return found


def wanted(rows: Sequence[Row]) -> list[Json]:
    """As ``Oracle.read`` has them."""
    return [
        {
            "has_key": one["__key"] is not None,
            "key": one["__key"],
            "key_base64": bool(one["__keyBase64"]),
            "ordering_key": _text(one["__orderingKey"]),
            "properties": one["__messageProperties"],
            "event_time": (one["__eventTime"] or 0) // 1000,
            "deliver_at": (one["__deliverAt"] or 0) // 1000,
            "null": one["payload"] is None,
            "data": _text(one["payload"]),
            "publish_time": 1_700_000_000_500,
            "producer": "pulsar-lake-test",
            "replicated_from": None,
        }
        for one in expected(rows)
    ]


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def of_java(oracle: Oracle, topic: str, rows: Sequence[Row], **options: Any) -> list[Json]:
    """What the Java client reads is what was written; all that it says."""
    found = oracle.read(topic, schema={"type": "BYTES"}, **options)
    expected_rows = wanted(rows)
    assert [{name: row[name] for name in expected_rows[0]} for row in found] == expected_rows
    return found


def sequence_ids(clients: Clients, topic: str) -> list[int]:
    """Return what we read, in the order of the log."""
    with TopicReader(clients, Topic.parse(topic)) as opened:
        table = opened.tail(1000, columns=["__sequenceId"])
    return [int(one) for one in table["__sequenceId"].to_pylist()]


def of_python(client: Any, topic: str, rows: Sequence[Row], **options: Any) -> None:
    """What the Python client (C++) reads is what was written."""
    reader = client.create_reader(topic, pulsar.MessageId.earliest, **options)
    for row, one in zip(rows, expected(rows), strict=True):
        message = reader.read_next(timeout_millis=60_000)
        assert message.data() == (row.value or b"")
        assert message.properties() == dict(row.properties or {})
        assert message.event_timestamp() == (row.event or 0)
        assert message.partition_key() == (one["__key"] or "")
        assert message.ordering_key() == (row.order or b"").decode(errors="surrogateescape")
        assert message.publish_timestamp() == 1_700_000_000_500
        assert message.producer_name() == "pulsar-lake-test"
    assert not reader.has_message_available()
    reader.close()


PLAIN = [row for row in ROWS if row.order is None or row.order.isascii()]
"""The Python client takes ordering keys for text."""


@pytest.mark.parametrize("compression", list(Compression))
def test_each_compression(
    admin: Admin,
    oracle: Oracle,
    client: Any,
    clients: Clients,
    topic_name: str,
    compression: Compression,
) -> None:
    admin.create_topic(topic_name)
    form = EntryFormat(compression=compression)
    write(clients, topic_name, PLAIN, form)
    found = of_java(oracle, topic_name, PLAIN)
    assert [row["batch"] for row in found] == [*range(len(PLAIN) - 1), -1]
    assert [row["sequence_id"] for row in found] == list(range(len(PLAIN)))
    assert sequence_ids(clients, topic_name) == list(range(len(PLAIN)))
    of_python(client, topic_name, PLAIN)


@pytest.mark.parametrize("messages", [1, 2, 1000])
def test_batches(
    admin: Admin, oracle: Oracle, clients: Clients, topic_name: str, messages: int
) -> None:
    admin.create_topic(topic_name)
    rows = ROWS * 3
    write(clients, topic_name, rows, EntryFormat(messages=messages))
    found = of_java(oracle, topic_name, rows)
    positions = [(row["ledger"], row["entry"], row["batch"]) for row in found]
    assert positions == sorted(set(positions))


def test_keys_that_are_bytes(
    admin: Admin, oracle: Oracle, clients: Clients, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    rows = [Row(b"1", b"\x00\xff"), Row(b"2", b""), Row(b"3"), Row(b"4", b"key", deliver=5)]
    write(clients, topic_name, rows)
    assert [row["key"] for row in of_java(oracle, topic_name, rows)] == ["AP8=", "", None, "a2V5"]


def test_a_message_of_chunks(
    admin: Admin, oracle: Oracle, client: Any, clients: Clients, topic_name: str
) -> None:
    """12 MB of noise, which the broker takes in pieces of 5 MB at most."""
    admin.create_topic(topic_name)
    rows = [
        Row(b"before"),
        Row(random.Random(3).randbytes(12_000_000), "k", properties={"a": "b"}, event=5),
        Row(b"behind"),
    ]
    ids = write(clients, topic_name, rows)
    assert ids == [0, 1, 2, 3, 4]
    of_java(oracle, topic_name, rows)
    of_python(client, topic_name, rows)
    with TopicReader(clients, Topic.parse(topic_name)) as topic:
        table = topic.scan(columns=["value", "__sequenceId"]).read_all()
    assert table["value"].to_pylist() == [row.value for row in rows]
    assert table["__sequenceId"].to_pylist()[::2] == [0, 4]
    assert table["__sequenceId"].to_pylist()[1] in (1, 2, 3)


@pytest.mark.parametrize("kind", ["RSA", "ECDSA"])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_encryption(
    admin: Admin,
    oracle: Oracle,
    clients: Clients,
    topic_name: str,
    kind: str,
    compression: Compression,
) -> None:
    admin.create_topic(topic_name)
    public, private = oracle.make_keys(kind)
    form = EntryFormat(compression=compression, batch_bytes=20_000, entry_bytes=48_000)
    rows = [*ROWS, Row(random.Random(4).randbytes(100_000), "chunks"), Row(b"last")]
    write(clients, topic_name, rows, form, {"mine": public})
    found = of_java(oracle, topic_name, rows, decryption={"mine": private})
    batches = {(row["entry"], row["sequence_id"]) for row in found if row["batch"] >= 0}
    assert len(dict(batches)) == len(batches), "each shows its batch's first"
    # Without chunks: sealed ones are larger than their message, and the Java client (4.2) without
    # a key fails at them, closes its connection and begins again, for ever.
    other = admin.create_topic(f"{topic_name}-sealed")
    write(clients, other, ROWS, form, {"mine": public})
    sealed = oracle.read(other, schema={"type": "BYTES"})
    assert sealed
    assert all(row["encrypted"] for row in sealed)
    assert {one["name"] for row in sealed for one in row["encryption"]["keys"]} == {"mine"}


def test_encryption_for_several(
    admin: Admin, oracle: Oracle, clients: Clients, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    pairs = {"rsa": oracle.make_keys("RSA"), "ec": oracle.make_keys("ECDSA")}
    write(clients, topic_name, ROWS, keys={name: public for name, (public, _) in pairs.items()})
    for name, (_, private) in pairs.items():
        of_java(oracle, topic_name, ROWS, decryption={name: private})


def test_schema_versions(admin: Admin, oracle: Oracle, clients: Clients, topic_name: str) -> None:
    """Messages name the version that was the newest when the write began."""
    admin.create_topic(topic_name)

    def record(*names: str) -> str:
        fields = ",".join(
            f'{{"name":"{name}","type":["null","int"],"default":null}}' for name in names
        )
        return f'{{"type":"record","name":"R","fields":[{fields}]}}'

    for version, names in enumerate([("a",), ("a", "b")]):
        admin.upload_schema(topic_name, "JSON", record(*names), {"p": "q"})
        write(
            clients, topic_name, [Row(b'{"a":1}'), Row(b'{"a":2}', deliver=5)], name=f"n{version}"
        )
    found = oracle.read(topic_name)
    assert [row["schema_version"] for row in found] == [0, 0, 1, 1]
    assert [row["value"]["a"] for row in found] == [1, 2, 1, 2]
    assert len(admin.schemas(topic_name)) == 2, "producers show the schema as the broker wrote it"


def test_a_key_value_schema_as_the_broker_wrote_it(
    admin: Admin, oracle: Oracle, clients: Clients, topic_name: str
) -> None:
    admin.create_topic(topic_name)
    schema = {
        "type": "KEY_VALUE",
        "key": {"type": "STRING"},
        "value": {"type": "INT32"},
        "encoding": "SEPARATED",
    }
    oracle.write(topic_name, [{"value": {"key": "java", "value": 1}}], schema)
    write(clients, topic_name, [Row((7).to_bytes(4, "big"), b"ours")])
    assert len(admin.schemas(topic_name)) == 1
    found = oracle.read(topic_name, schema=schema)
    assert [row["value"] for row in found] == [
        {"key": "java", "value": 1},
        {"key": "ours", "value": 7},
    ]


def test_a_topic_without_a_schema(admin: Admin, clients: Clients, topic_name: str) -> None:
    admin.create_topic(topic_name)
    target = resolve_target(clients, Topic.parse(topic_name))
    assert replace(target, fields=None) == Target(
        Topic.parse(topic_name), 0, None, None, b"", 5 << 20
    )
    assert target.columns == pa.schema([("value", pa.binary())])


def test_what_does_not_exist(clients: Clients, topic_name: str) -> None:
    with pytest.raises(NotFoundError, match="does not exist"):
        resolve_target(clients, Topic.parse(topic_name))
    with clients.publisher() as publisher, pytest.raises(ConfigurationError, match="refuses"):
        publisher.producer(Partition.parse(f"{topic_name}-partition-0"))


def test_a_topic_that_is_terminated(admin: Admin, clients: Clients, topic_name: str) -> None:
    admin.create_topic(topic_name)
    admin.terminate(topic_name)
    with pytest.raises(ConfigurationError, match="terminated"):
        write(clients, topic_name, [Row(b"x")])


def test_where_it_is(admin: Admin, clients: Clients, topic_name: str) -> None:
    admin.create_topic(topic_name)
    with clients.publisher() as publisher:
        producer = publisher.producer(Partition.parse(topic_name), name="a name")
        entries = encode([Row(b"x")] * 3, EntryFormat(messages=1))
        for sequence, one in enumerate(entries):
            producer.send(outgoing("a name", sequence, one, lambda: 1.0))
        producer.flush()
        [ledger] = admin.ledgers(topic_name)
        assert producer.last == Position(ledger, 2)
        producer.close()
