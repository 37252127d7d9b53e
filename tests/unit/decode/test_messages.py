"""Values of the columns, and the bounds of what one Messages holds."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reader.decode import EntryDecoder, prewarm
from reader.decode.decoder import HEADER_COLUMNS
from reader.decode.passes import portions as limits
from reader.model import EntryBlock, Partition, Topic
from reader.model.columns import METADATA, METADATA_NAMES
from tests.unit.decode.entries import (
    PARTITION,
    block_of,
    broker,
    decode,
    entry,
    metadata,
    rows_of,
    single,
)

COMPRESSIONS = pytest.mark.parametrize(
    "compression", range(5), ids=["NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"]
)


def test_types_are_those_of_the_table() -> None:
    (messages,) = EntryDecoder(PARTITION).decode(block_of([entry(b"x")]))
    made = set(METADATA_NAMES) - {"__topic", "__kind", "__rescued", "__error"}
    assert list(messages.columns) == [name for name in METADATA_NAMES if name in made]
    for name, array in messages.columns.items():
        assert array.type == METADATA.field(name).type
    assert messages.payload is not None
    assert messages.payload.data.dtype == np.uint8
    assert messages.schema_versions.dtype == np.int64


def test_unbatched_message() -> None:
    raw = entry(
        b"payload",
        head=broker(1_700_000_000_500, 41),
        sequence_id=12,
        publish_time=1_700_000_000_123,
        properties=[(b"a", b"1"), (b"b", b"2"), (b"a", b"3")],
        replicated_from="west",
        partition_key="a2V5",
        partition_key_b64_encoded=True,
        ordering_key=b"\x00\xff",
        event_time=1_600_000_000_000,
        deliver_at_time=1_800_000_000_000,
        schema_version=(258).to_bytes(8, "big"),
    )
    assert decode([raw]) == [
        {
            "__partition": 3,
            "__ledgerId": 42,
            "__entryId": 10,
            "__batchIndex": -1,
            "__key": "a2V5",
            "__keyBase64": True,
            "__orderingKey": b"\x00\xff",
            "__messageProperties": {"a": "3", "b": "2"},
            "__publishTime": 1_700_000_000_123_000,
            "__eventTime": 1_600_000_000_000_000,
            "__brokerPublishTime": 1_700_000_000_500_000,
            "__deliverAt": 1_800_000_000_000_000,
            "__index": 41,
            "__producerName": "p-1",
            "__replicatedFrom": "west",
            "__sequenceId": 12,
            "__schemaVersion": 258,
            "__tombstone": False,
            "__encryptionContext": None,
            "__otherMetadata": None,
            "__firstChunkLedgerId": None,
            "__firstChunkEntryId": None,
            "payload": b"payload",
            "schema": 258,
            "rescued": None,
            "kind": "message",
        }
    ]


def test_what_is_not_set() -> None:
    (row,) = decode([entry(b"")])
    nulls = {name for name, value in row.items() if value is None}
    assert nulls == {
        "__key",
        "__keyBase64",
        "__orderingKey",
        "__eventTime",
        "__brokerPublishTime",
        "__deliverAt",
        "__index",
        "__replicatedFrom",
        "__schemaVersion",
        "__encryptionContext",
        "__otherMetadata",
        "__firstChunkLedgerId",
        "__firstChunkEntryId",
        "rescued",
    }
    assert (row["__messageProperties"], row["payload"], row["schema"]) == ({}, b"", -1)


@COMPRESSIONS
def test_batch(compression: int) -> None:
    """Entry metadata is that of a Java batch: key and properties of its first message."""
    batch = [
        single(b"one", partition_key="k1", event_time=5, properties=[(b"a", b"b")], sequence_id=9),
        single(b"", partition_key="", partition_key_b64_encoded=True, event_time=0),
        single(b"gone", compacted_out=True, properties=[(b"c", b"d")]),
        single(b"", null_value=True, partition_key="k", null_partition_key=True),
        single(b"five" * 100, ordering_key=b"", sequence_id=0),
    ]
    raw = entry(
        b"".join(batch) + b"trailing bytes are nobody's",
        head=broker(7, 104),
        compression=compression,
        num_messages_in_batch=5,
        sequence_id=20,
        partition_key="k1",
        properties=[(b"of", b"entry")],
        event_time=3,
        ordering_key=b"entry",
    )
    rows = decode([raw])
    names = ["__batchIndex", "__key", "__keyBase64", "__orderingKey", "__messageProperties"]
    names += ["__eventTime", "__sequenceId", "__index", "payload"]
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, "k1", False, None, {"a": "b"}, 5000, 9, 100, b"one"),
        (1, "", True, None, {}, None, 20, 101, b""),
        (3, None, None, None, {}, 3000, 20, 103, None),
        (4, None, None, b"", {}, 3000, 0, 104, b"five" * 100),
    ]


def test_batch_of_one_is_told_by_presence() -> None:
    (row,) = decode([entry(single(b"x"), num_messages_in_batch=1, head=broker(1, 5))])
    assert (row["__batchIndex"], row["payload"], row["__index"]) == (0, b"x", 5)


def test_values_of_the_entry_that_messages_inherit() -> None:
    raw = entry(
        single(b"1") + single(b"2", null_value=False, partition_key="k", null_partition_key=False),
        num_messages_in_batch=2,
        null_value=True,
        null_partition_key=True,
        partition_key="entry",
    )
    one, two = decode([raw])
    assert (one["payload"], one["__key"]) == (None, None)
    assert (two["payload"], two["__key"]) == (b"2", "k")


@pytest.mark.parametrize(
    ("raw", "version"),
    [
        (b"", None),
        (b"\x05", 5),
        (b"\x01\x00", 256),
        (bytes(8), 0),
        (b"\x7f" + b"\xff" * 7, 2**63 - 1),
    ],
)
def test_schema_versions(raw: bytes, version: int | None) -> None:
    (row,) = decode([entry(b"x", schema_version=raw)])
    assert (row["__schemaVersion"], row["schema"]) == (version, -1 if version is None else version)


@pytest.mark.parametrize("millis", [-1, -62_135_596_800_000, 253_402_300_799_999, 0])
def test_times_are_signed(millis: int) -> None:
    """A Go client's event before 1970 is a large unsigned number in the protocol."""
    (row,) = decode([entry(b"x", event_time=millis, deliver_at_time=millis)])
    assert row["__eventTime"] == (millis * 1000 or None)
    assert row["__deliverAt"] == millis * 1000


AGAIN: list[tuple[str, Any, Any, str, Any]] = [
    ("event_time", 2**62, 5, "__eventTime", 5000),
    ("event_time", 5, 0, "__eventTime", None),
    ("partition_key", b"\xff", b"k", "__key", "k"),
    ("partition_key_b64_encoded", True, False, "__keyBase64", False),
    ("null_partition_key", True, False, "__key", "key"),
    ("null_value", True, False, "payload", b"x"),
    ("ordering_key", b"a", b"", "__orderingKey", b""),
    ("sequence_id", 1, 2, "__sequenceId", 2),
]
ENTRY_AGAIN: list[tuple[str, Any, Any, str, Any]] = [
    ("publish_time", 2**62, 5, "__publishTime", 5000),
    ("deliver_at_time", 2**62, 5, "__deliverAt", 5000),
    ("schema_version", b"\xff" * 8, b"\x05", "__schemaVersion", 5),
    ("schema_version", b"\x05", b"", "__schemaVersion", None),
    ("producer_name", b"\xff", b"p", "__producerName", "p"),
    ("replicated_from", b"\xff", b"r", "__replicatedFrom", "r"),
]


@pytest.mark.parametrize(("name", "first", "again", "column", "value"), AGAIN + ENTRY_AGAIN)
def test_the_last_of_a_repeated_field_counts(
    name: str, first: Any, again: Any, column: str, value: Any
) -> None:
    """Protobuf's rule; nothing of the first is left, not even that it was wrong."""
    values = {"partition_key": "key", name: first}
    (row,) = decode([entry(b"x", again={name: again}, **values)])
    assert (row[column], row["rescued"]) == (value, None)


@pytest.mark.parametrize(("name", "first", "again", "column", "value"), AGAIN)
def test_the_last_of_a_repeated_field_counts_in_a_batch(
    name: str, first: Any, again: Any, column: str, value: Any
) -> None:
    message = single(b"x", {name: again}, **{"partition_key": "key", name: first})
    (row,) = decode([entry(message, num_messages_in_batch=1)])
    assert (row[column], row["rescued"]) == (value, None)


@COMPRESSIONS
def test_empty_payload(compression: int) -> None:
    """Compressed, which gives a byte or more, or left as it is."""
    header = metadata(compression=compression, uncompressed_size=0)
    raws = [entry(b"", compression=compression), entry(b"", raw_metadata=header)]
    assert [(row["payload"], row["rescued"]) for row in decode(raws)] == [(b"", None)] * 2


def test_partition_of_a_topic_without_partitions() -> None:
    decoder = EntryDecoder(Partition(Topic.parse("orders"), -1))
    (messages,) = decoder.decode(block_of([entry(b"x")]))
    assert rows_of(messages)[0]["__partition"] == -1


def test_empty_block() -> None:
    assert decode([]) == []


def test_unknown_column() -> None:
    with pytest.raises(ValueError, match="__nonsense"):
        EntryDecoder(PARTITION, columns=["__nonsense"])


@pytest.mark.parametrize("payload", [True, False])
def test_only_counting(payload: bool) -> None:
    batch = entry(single(b"a") + single(b"b", compacted_out=True), num_messages_in_batch=2)
    decoder = EntryDecoder(PARTITION, columns=(), payload=payload)
    (messages,) = decoder.decode(block_of([batch, entry(b"x"), b""]))
    assert (len(messages), dict(messages.columns)) == (3, {})
    assert (messages.payload is not None) == payload


@pytest.mark.parametrize("pairs", [3, 31, 32, 33, 200])
@pytest.mark.parametrize("batched", [False, True])
def test_many_properties_and_repeated_keys(pairs: int, batched: bool) -> None:
    """The last value of each key counts, whichever way repetitions are found."""
    properties = [(f"k{n % (pairs // 2)}".encode(), f"v{n}".encode()) for n in range(pairs)]
    wanted = {key.decode(): value.decode() for key, value in properties}
    if batched:
        payload = single(b"", properties=[(b"k0", b"x")]) + single(b"", properties=properties)
        rows = decode([entry(payload, num_messages_in_batch=2, compression=1)])
        assert rows[0]["__messageProperties"] == {"k0": "x"}
    else:
        rows = decode([entry(b"", properties=[(b"k0", b"x")]), entry(b"", properties=properties)])
    assert rows[1]["__messageProperties"] == wanted


def test_portions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small limits split a block into many Messages, with the same rows in the same order."""
    batch = b"".join(single(b"%d" % n * 20, properties=[(b"n", b"%d" % n)]) for n in range(10))
    raws: list[bytes] = [
        entry(batch, num_messages_in_batch=10, compression=n % 5, producer_name="p" * 50)
        for n in range(12)
    ]
    raws[4:4] = [b"", entry(b"big" * 1000), entry(b"", marker_type=1)]
    whole = decode(raws)
    assert len(whole) == 122
    for name, value in (("GROUP_BYTES", 700), ("PORTION_ROWS", 25), ("PORTION_BYTES", 700)):
        monkeypatch.setattr(limits, name, value)
    parts = list(EntryDecoder(PARTITION).decode(block_of(raws)))
    assert len(parts) > 20
    assert max(len(part) for part in parts) <= 25
    assert list(itertools.chain.from_iterable(map(rows_of, parts))) == whole


def test_long_names_in_a_batch_are_not_repeated_in_one_portion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PORTION_BYTES", 1 << 20)
    payload = single(b"x") * 1000
    raw = entry(payload, num_messages_in_batch=1000, producer_name="p" * 100_000, checksum=False)
    parts = list(EntryDecoder(PARTITION).decode(block_of([raw])))
    assert sum(map(len, parts)) == 1000
    assert max(map(len, parts)) <= 10
    assert [part.columns["__batchIndex"][0].as_py() for part in parts[:2]] == [0, len(parts[0])]


def test_publish_times_and_messages_seen() -> None:
    def at(millis: int, **values: Any) -> bytes:
        return entry(single(b"a") * 4, publish_time=millis, num_messages_in_batch=4, **values)

    decoder = EntryDecoder(PARTITION, publish_range=(20_000, 30_000))
    assert decoder.take_seen() == []
    blocks = [[at(20), b"", at(5), entry(b"", marker_type=1, publish_time=1)], [at(90), at(30)]]
    rows = sum(len(part) for raws in blocks for part in decoder.decode(block_of(raws)))
    assert rows == 9
    first, second = decoder.take_seen()
    assert (first.low, first.high, first.messages) == (5_000, 20_000, None)
    assert (second.low, second.high, second.messages) == (30_000, 90_000, None)
    first.add(second)
    assert (first.low, first.high, first.messages) == (5_000, 90_000, None)
    assert decoder.take_seen() == []


def test_a_batch_that_is_not_decompressed_is_one_row_however_it_is_counted() -> None:
    body = single(bytes(5 << 20)) * 8
    raw = entry(body, compression=3, num_messages_in_batch=8)
    for columns in (("__publishTime",), ("__publishTime", "__batchIndex")):
        for low in (None, 1 << 60):
            decoder = EntryDecoder(
                PARTITION, columns=columns, payload=False, publish_range=(low, None)
            )
            rows = sum(len(part) for part in decoder.decode(block_of([raw])))
            (seen,) = decoder.take_seen()
            assert (rows, seen.messages) == ((1, 1) if low is None else (0, None))


def counted(raws: list[bytes], low: int | None = None) -> tuple[int, int | None]:
    """(rows given, messages learned) of a decoder that reads headers only."""
    decoder = EntryDecoder(PARTITION, columns=(), payload=False, publish_range=(low, None))
    rows = sum(len(part) for part in decoder.decode(block_of(raws)))
    (seen,) = decoder.take_seen()
    return rows, seen.messages


def test_fields_without_a_column_are_kept_as_they_are() -> None:
    """An EXTERNAL schema's id, what Pulsar 5 adds, and what nobody knows yet."""
    hashes: dict[str, Any] = {"entry_hash_min": 0, "entry_hash_max": 65535}
    rows = decode(
        [
            entry(b"plain", highest_sequence_id=9),
            entry(b"external", schema_id=b"\xff\0\0\0\7"),
            entry(single(b"a") + single(b"b", unknown=5), num_messages_in_batch=2, **hashes),
            entry(single(b"c") + single(b"d", unknown=6), num_messages_in_batch=2, compression=1),
            entry(b"broken", num_messages_in_batch=2, **hashes),
            entry(b"", raw_metadata=metadata() + b"\xbd\x02\1\2\3\4"),  # field 39, fixed32
        ]
    )
    pulsar_5 = bytes.fromhex("880200 9002ffff03")
    assert [row["__otherMetadata"] for row in rows] == [
        None,
        {"entry": bytes.fromhex("820205ff00000007"), "message": None},
        {"entry": pulsar_5, "message": None},
        {"entry": pulsar_5, "message": bytes.fromhex("5805")},
        None,
        {"entry": None, "message": bytes.fromhex("5806")},
        {"entry": pulsar_5, "message": None},
        {"entry": b"\xbd\x02\1\2\3\4", "message": None},
    ]
    assert [row["rescued"] is None for row in rows] == [True] * 6 + [False, True]


def test_records_of_kafka_are_not_counted_as_messages() -> None:
    """Kafka-on-Pulsar states the number of records; each entry is one rescued row."""
    kafka = [
        entry(
            (10 * n).to_bytes(8, "big") + b"a record batch of ten records" * 9,
            producer_name="",
            properties=[("entry.format", "kafka")],
            num_messages_in_batch=10,
        )
        for n in range(5)
    ]
    plain = [entry(b"pulsar %d" % n) for n in range(3)]
    assert len(decode(kafka + plain)) == 8
    assert counted(kafka + plain) == (8, 8)
    assert counted(kafka + plain, low=1 << 60) == (0, None)


@pytest.mark.parametrize("compression", range(1, 5), ids=["LZ4", "ZLIB", "ZSTD", "SNAPPY"])
def test_no_header_is_believed(compression: int) -> None:
    def batch(name: str, body: bytes, count: int) -> bytes:
        return entry(body, compression=compression, producer_name=name, num_messages_in_batch=count)

    good = batch("good", single(b"a message") * 3, 3)
    cut = batch("good", single(b"a message") * 3, 5)
    kafka = [batch("kafka", b"ten records" * 20 + b"%d" % n, 10) for n in range(4)]
    compacted = batch("other", single(b"x") + single(b"y", compacted_out=True), 2)
    assert counted([good, *kafka, good, compacted]) == (3 + 4 + 3 + 1, 11)
    assert counted([good, cut]) == (3 + 1, 4)
    assert counted([cut, good]) == (1 + 3, 4)
    alone = entry(b"one message", compression=compression, uncompressed_size=99)
    assert counted([alone, good]) == (1 + 3, 4), "a message outside of a batch is one row"


def test_decoders_share_nothing_between_blocks() -> None:
    """Two blocks read in turn by one decoder."""
    decoder = EntryDecoder(PARTITION)
    raws = [[entry(b"%d" % n * 50, compression=1) for n in range(k, k + 3)] for k in (0, 10)]
    one, two = (decoder.decode(block_of(part)) for part in raws)
    first, second = next(iter(one)), next(iter(two))
    assert [row["payload"][:1] for row in rows_of(first)] == [b"0", b"1", b"2"]
    assert [row["payload"][:2] for row in rows_of(second)] == [b"10", b"11", b"12"]


def test_prewarm() -> None:
    prewarm()


@pytest.mark.parametrize("headers_only", [False, True])
def test_blocks_that_are_decoded_together(headers_only: bool) -> None:
    """As one after the other, also what is damaged, outside of the range or a batch."""

    def raws(ledger: int) -> list[bytes]:
        return [
            entry(single(b"a") * ledger, num_messages_in_batch=ledger, publish_time=20 + ledger),
            b"broken",
            entry(b"x" * ledger, publish_time=20 + ledger, compression=1),
            entry(b"outside", publish_time=5),
        ][: 1 + ledger % 4]

    blocks = [replace(block_of(raws(ledger)), ledger_id=ledger) for ledger in (3, 4, 6, 7)]
    blocks[1] = replace(blocks[1], offsets=blocks[1].offsets, damaged={0: "no good copy"})
    blocks.insert(1, EntryBlock.of(5, {}))

    def decoder() -> EntryDecoder:
        columns = HEADER_COLUMNS if headers_only else METADATA_NAMES
        return EntryDecoder(
            PARTITION, columns=columns, payload=not headers_only, publish_range=(10_000, None)
        )

    one, other = decoder(), decoder()
    apart = [part for block in blocks for part in one.decode(block)]
    found = other.decode_together(blocks)
    assert found is not None
    together = list(found)
    assert len(together) == 1
    assert len(together[0]) == sum(map(len, apart))
    for name in together[0].columns:
        values = [value for part in apart for value in part.columns[name].to_pylist()]
        assert together[0].columns[name].to_pylist() == values, name
    reasons = [why for part in apart for why in part.rescued.values()]
    assert list(together[0].rescued.values()) == reasons
    seen = one.take_seen()
    del seen[1]  # nothing is seen of a block without entries
    assert other.take_seen() == seen


def test_what_needs_the_rest_of_the_partition_is_not_decoded_together() -> None:
    chunk: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "chunk_id": 0}
    in_transaction: dict[str, Any] = {"txnid_most_bits": 0, "txnid_least_bits": 1}
    for values in (chunk, in_transaction):
        decoder = EntryDecoder(PARTITION)
        blocks = [block_of([entry(b"a")]), block_of([entry(b"b", **values)])]
        assert decoder.decode_together(blocks) is None
        assert decoder.take_seen() == []
