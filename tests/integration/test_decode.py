"""Entries of a real cluster, read from its bookies, decode to what was published."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pulsar
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from offloader.config import load_config
from reader.bookkeeper import BookKeeperClient
from reader.decode import EntryDecoder
from reader.model import Partition
from reader.pulsar.admin import AdminClient
from testbed.cluster import Cluster
from testbed.publish import Message, publish
from tests.unit.decode.entries import rows_of

COUNT = 200


def _messages(*, delayed: bool = True) -> list[Message]:
    """Every kind of key, property, time, payload; nothing repeats with the same period.

    ``delayed``: some with a time of delivery, which the client leaves out of batches and sends
    before them.
    """
    keys = [None, "key-%d", "", "ключ %d"]
    payloads = [b"", b"x", b"payload %d " * 40, bytes(range(256)), None]
    found = []
    for n in range(COUNT):
        key, payload = keys[n % 4], payloads[n % 5]
        found.append(
            Message(
                payload.replace(b"%d", b"%d" % n) if payload else payload,
                key=key.replace("%d", str(n)) if key else key,
                ordering_key=f"o{n}" if n % 3 == 0 else None,
                properties={f"p{k}": f"значение {n}" for k in range(n % 7)},
                event_time=1_600_000_000_000 + n if n % 6 else None,
                deliver_at=int(time.time() * 1000) if delayed and n % 11 == 0 else None,
            )
        )
    return found


def _decode(cluster: Cluster, topic: str, **options: Any) -> list[dict[str, Any]]:
    partition = Partition.parse(topic)
    config = load_config(
        {
            "pulsar": {"service_url": cluster.service_url, "admin_url": cluster.admin_url},
            "storage": {"uri": "s3://nowhere"},
        }
    )
    rows: list[dict[str, Any]] = []
    with AdminClient(config.pulsar) as admin, BookKeeperClient() as bookies:
        found = admin.ledgers(partition)
        for info in found.ledgers:
            assert info.metadata is not None
            last = info.metadata.last_entry if info.metadata.closed else found.last_confirmed.entry
            if last < 0:
                continue
            decoder = EntryDecoder(partition, **options)
            for block in bookies.read(info.metadata, 0, last):
                for messages in decoder.decode(block):
                    rows += rows_of(messages)
    return rows


def _read(client: Any, topic: str, count: int, **options: Any) -> list[Any]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest, **options)
    try:
        return [reader.read_next(20_000) for _ in range(count)]
    finally:
        reader.close()


def _place(message_id: Any) -> tuple[int, int, int]:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()


def _places(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return [(row["__ledgerId"], row["__entryId"], row["__batchIndex"]) for row in rows]


@pytest.mark.parametrize("batch", [0, 60], ids=["unbatched", "batched"])
@pytest.mark.parametrize("compression", ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"])
def test_what_was_published(
    cluster: Cluster, client: Any, topic_name: str, compression: str, batch: int
) -> None:
    before = time.time() * 1e6 - 1e5
    sent = publish(
        client,
        topic_name,
        _messages(delayed=not batch),
        compression=compression,
        batch=batch,
        ids=True,
    )
    after = time.time() * 1e6 + 1e5
    rows = _decode(cluster, topic_name)
    assert len(rows) == len(sent) == COUNT
    assert [row["rescued"] for row in rows] == [None] * COUNT
    where = [(m.message_id[0], m.message_id[1], m.message_id[3]) for m in sent if m.message_id]
    assert _places(rows) == where
    for row, message in zip(rows, sent, strict=True):
        assert row["payload"] == message.payload
        assert row["__key"] == message.key
        assert row["__keyBase64"] == (None if message.key is None else False)
        ordering = message.ordering_key
        assert row["__orderingKey"] == (None if ordering is None else ordering.encode())
        assert row["__messageProperties"] == message.properties
        event = message.event_time
        assert row["__eventTime"] == (None if event is None else event * 1000)
        deliver = message.deliver_at
        assert row["__deliverAt"] == (None if deliver is None else deliver * 1000)
        assert before < row["__publishTime"] < after
        assert before < row["__brokerPublishTime"] < after
        assert (row["__partition"], row["__schemaVersion"], row["__replicatedFrom"]) == (
            -1,
            None,
            None,
        )
    # The broker of the tests adds an index to each message.
    assert [row["__index"] for row in rows] == list(range(COUNT))
    assert [row["__sequenceId"] for row in rows] == list(range(COUNT))
    assert len({row["__batchIndex"] for row in rows}) == (batch or 1)


def test_what_the_client_reads(cluster: Cluster, client: Any, topic_name: str) -> None:
    """The same topic through pulsar-client: each value that it shows."""
    for batch, compression in ((0, "LZ4"), (50, "ZSTD"), (7, "NONE")):
        publish(client, topic_name, _messages(), batch=batch, compression=compression)
    rows = _decode(cluster, topic_name)
    read = _read(client, topic_name, len(rows))
    assert _places(rows) == [_place(message.message_id()) for message in read]
    for row, message in zip(rows, read, strict=True):
        assert (row["payload"] or b"") == message.data()
        assert (row["payload"] is None) == message.has_null_value()
        assert (row["__key"] or "") == message.partition_key()
        assert row["__messageProperties"] == message.properties()
        assert row["__publishTime"] == message.publish_timestamp() * 1000
        assert (row["__eventTime"] or 0) == message.event_timestamp() * 1000
        assert row["__producerName"] == message.producer_name()
        assert (row["__orderingKey"] or b"").decode() == (message.ordering_key() or "")


def test_publish_range(cluster: Cluster, client: Any, topic_name: str) -> None:
    publish(client, topic_name, _messages(), batch=10, compression="LZ4")
    time.sleep(0.05)
    publish(client, topic_name, _messages())
    rows = _decode(cluster, topic_name)
    middle = rows[COUNT]["__publishTime"]
    assert _decode(cluster, topic_name, publish_range=(middle, None)) == rows[COUNT:]
    assert _decode(cluster, topic_name, publish_range=(None, middle - 1)) == rows[:COUNT]


@pytest.mark.parametrize("batch", [0, 5], ids=["unbatched", "batched"])
def test_encrypted(
    cluster: Cluster, client: Any, topic_name: str, tmp_path: Path, batch: int
) -> None:
    """One row an entry, with what a client gets that consumes undecrypted."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    publish(
        client,
        topic_name,
        [b"secret %d" % n for n in range(10)],
        batch=batch,
        encryption_key="key",
        crypto_key_reader=pulsar.CryptoKeyReader(str(public), str(private)),
    )
    rows = _decode(cluster, topic_name)
    assert len(rows) == (2 if batch else 10)
    read = _read(
        client,
        topic_name,
        len(rows),
        crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME,
    )
    for row, message in zip(rows, read, strict=True):
        raw, reason = row["rescued"]
        assert reason == "encrypted"
        assert raw == message.data()
        assert b"secret" not in raw
        assert (row["payload"], row["__batchIndex"]) == (None, -1)
        assert row["__entryId"] == message.message_id().entry_id()
        assert row["__publishTime"] == message.publish_timestamp() * 1000
