"""What is rescued, skipped or refused, case by case."""

from typing import Any

import pytest

from reader.decode import EntryDecoder
from reader.decode.tables import MAX_INFLATED
from reader.errors import UnsupportedError
from tests.unit.decode.entries import (
    PARTITION,
    block_of,
    broker,
    decode,
    entry,
    metadata,
    proto,
    single,
)

BATCH = single(b"one", partition_key="a") + single(b"two", partition_key="b")
KEYS = proto([(1, "key"), (2, b"secret")])
METADATA_COLUMNS = [
    "__key",
    "__keyBase64",
    "__orderingKey",
    "__messageProperties",
    "__publishTime",
    "__eventTime",
    "__deliverAt",
    "__producerName",
    "__replicatedFrom",
    "__sequenceId",
    "__schemaVersion",
]


def _break(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


BARE = [
    (b"", "empty entry"),
    (b"\x00", "entry is cut off or malformed"),
    (bytes(20), "message metadata lacks producer_name, sequence_id or publish_time"),
    (b"\x0e\x02\x00\x00\x00", "entry is cut off or malformed"),
    (b"\x0e\x02\xff\xff\xff\xff" + bytes(9), "entry is cut off or malformed"),
    (b"\x0e\x02\x00\x00\x00\x01\x08" + entry(b"x"), "broker entry metadata cannot be parsed"),
    (b"\x0e\x01\x00", "entry is cut off or malformed"),
    (_break(entry(b"payload"), -1), "checksum mismatch"),
    (_break(entry(b"payload"), 12), "checksum mismatch"),
    (b"\xff\xff\xff\xff" + metadata(), "entry is cut off or malformed"),
    (entry(raw_metadata=b"\x0a\x7f"), "message metadata cannot be parsed"),
    (entry(raw_metadata=metadata() + b"\x22\x02\x0a\x00"), "message metadata cannot be parsed"),
    (entry(raw_metadata=metadata() + b"\x18" + b"\xff" * 10), "message metadata cannot be parsed"),
    (
        entry(producer_name=None),
        "message metadata lacks producer_name, sequence_id or publish_time",
    ),
]


@pytest.mark.parametrize(("raw", "reason"), BARE, ids=lambda value: str(value)[:40])
def test_entry_without_readable_metadata(raw: bytes, reason: str) -> None:
    first, row, last = decode([entry(b"before"), raw, entry(b"after")])
    assert (first["payload"], last["payload"]) == (b"before", b"after")
    assert row["rescued"] == (raw, reason)
    assert (row["__partition"], row["__ledgerId"], row["__entryId"]) == (3, 42, 11)
    assert (row["__batchIndex"], row["payload"], row["schema"]) == (-1, None, -1)
    assert all(row[name] is None for name in METADATA_COLUMNS)


def test_broker_metadata_is_outside_of_the_checksum() -> None:
    (row,) = decode([_break(entry(b"x", head=broker(5, 9)), -1)])
    assert (row["__brokerPublishTime"], row["__index"]) == (5000, 9)
    assert row["rescued"][1] == "checksum mismatch"


def test_damaged_entry_is_not_believed() -> None:
    raw = entry(b"looks well", head=broker(5, 9))
    (row,) = decode([raw], damaged={0: "digest differs on b1, b2"})
    assert row["rescued"] == (raw, "damaged entry: digest differs on b1, b2")
    assert all(row[name] is None for name in [*METADATA_COLUMNS, "__index"])


WHOLE = [
    ({"compression": 7}, b"x", "unknown compression"),
    ({"compression": -1}, b"x", "unknown compression"),
    ({"compression": 1, "uncompressed_size": 4}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 1, "uncompressed_size": 6}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 2, "uncompressed_size": 4}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 2, "uncompressed_size": 6}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 3, "uncompressed_size": 4}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 3, "uncompressed_size": 6}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 4, "uncompressed_size": 4}, b"abcde", "payload cannot be decompressed"),
    ({"compression": 4, "uncompressed_size": 6}, b"abcde", "payload cannot be decompressed"),
    (
        {"compression": 3, "uncompressed_size": MAX_INFLATED + 1},
        b"x",
        "uncompressed size above 512",
    ),
    (
        {"compression": 4, "uncompressed_size": MAX_INFLATED},
        b"x",
        "uncompressed size above pulsar.expanded_bytes",
    ),
    ({"compression": 4, "uncompressed_size": 32 << 20}, b"x", "payload cannot be decompressed"),
    ({"num_messages_in_batch": 0}, BATCH, "batch states an impossible number"),
    ({"num_messages_in_batch": -2}, BATCH, "batch states an impossible number"),
    ({"num_messages_in_batch": 2**31 - 1}, BATCH, "batch states an impossible number"),
    ({"num_messages_in_batch": 3}, BATCH, "batch cannot be split"),
    ({"num_messages_in_batch": 2}, BATCH[:-1], "batch cannot be split"),
    ({"num_messages_in_batch": 2, "compression": 1}, BATCH[:-1], "batch cannot be split"),
    ({"num_messages_in_batch": 1}, b"\xff" * 20, "batch cannot be split"),
]


@pytest.mark.parametrize(("values", "payload", "reason"), WHOLE, ids=lambda value: str(value)[:60])
def test_entry_with_metadata_but_no_messages(
    values: dict[str, Any], payload: bytes, reason: str
) -> None:
    """One row for the entry, with its own metadata; nothing of the messages before the break."""
    raw = entry(
        payload,
        head=broker(5, 99),
        partition_key="entry key",
        properties=[(b"k", b"v")],
        schema_version=(2).to_bytes(8, "big"),
        **values,
    )
    (row,) = decode([raw])
    assert row["rescued"][0] == raw
    assert row["rescued"][1].startswith(reason)
    assert (row["__batchIndex"], row["payload"], row["__index"]) == (-1, None, 99)
    assert (row["__key"], row["__messageProperties"]) == ("entry key", {"k": "v"})
    assert (row["__producerName"], row["__sequenceId"]) == ("p-1", 7)
    assert (row["__schemaVersion"], row["schema"]) == (2, 2)


def test_encrypted_entry() -> None:
    (row,) = decode(
        [entry(b"ciphertext", encryption_keys=KEYS, num_messages_in_batch=5, compression=0)]
    )
    assert row["rescued"] == (b"ciphertext", "encrypted")
    assert (row["payload"], row["__batchIndex"], row["__producerName"]) == (None, -1, "p-1")
    assert row["__encryptionContext"] is not None
    assert row["__tombstone"] is False


def test_encryption_context() -> None:
    """What a consumer with the key needs, as EncryptionContext of the Java client."""
    raw = entry(
        b"ciphertext",
        checksum=False,
        encryption_keys=proto([(1, "k1"), (2, b"\x00\xff"), (3, proto([(1, "a"), (2, "b")]))]),
        again={"encryption_keys": proto([(1, "k2"), (2, b"x")])},
        encryption_algo="",
        encryption_param=b"twelve bytes",
        compression=1,
        uncompressed_size=2**32 - 1,
        num_messages_in_batch=7,
    )
    (row,) = decode([raw])
    size = int.from_bytes(raw[:4], "big")
    assert row["__encryptionContext"] == {
        "keys": [
            {"name": "k1", "value": b"\x00\xff", "metadata": [("a", "b")]},
            {"name": "k2", "value": b"x", "metadata": []},
        ],
        "param": b"twelve bytes",
        "algorithm": "",
        "compression": "LZ4",
        "uncompressedSize": 2**32 - 1,
        "batchSize": 7,
        "metadata": raw[4 : 4 + size],
    }
    rows = decode([raw, entry(b"plain")])
    assert rows[1]["__encryptionContext"] is None


TOO_LATE = 253_402_300_800_000  # the year 10000
SOFT = [
    ({"producer_name": b"\xff"}, "__producerName", "producer name is not UTF-8"),
    ({"replicated_from": b"\xed\xa0\x80"}, "__replicatedFrom", "replicated_from is not UTF-8"),
    ({"publish_time": TOO_LATE}, "__publishTime", "publish time out of range"),
    ({"publish_time": 2**63}, "__publishTime", "publish time out of range"),
    ({"deliver_at_time": TOO_LATE}, "__deliverAt", "deliver time out of range"),
    ({"event_time": TOO_LATE}, "__eventTime", "event time out of range"),
    ({"schema_version": b"\x01" * 9}, "__schemaVersion", "schema version out of range"),
    ({"schema_version": b"\xff" * 8}, "__schemaVersion", "schema version out of range"),
    ({"partition_key": b"a\xc0\x80"}, "__key", "key is not UTF-8"),
]


@pytest.mark.parametrize(("values", "column", "reason"), SOFT, ids=lambda value: str(value)[:40])
def test_metadata_value_that_cannot_be_shown(
    values: dict[str, Any], column: str, reason: str
) -> None:
    raw = entry(b"payload", **values)
    (row,) = decode([raw])
    assert row["rescued"] == (raw, reason)
    assert row[column] is None
    assert row["payload"] == b"payload"
    (plain,) = decode([entry(b"payload")])
    changed = {name for name in row if row[name] != plain[name]}
    assert changed <= {column, "rescued"}


def test_a_key_that_is_no_text_is_the_key_of_a_key_value() -> None:
    """C++ writes the number 200 under INT64 as it is, where Java writes base64."""
    key = (200).to_bytes(8, "big")
    inside = single(b"one", partition_key=key) + single(b"two", partition_key=b"text")
    raws = [
        entry(b"alone", partition_key=key),
        entry(b"none"),
        entry(inside, num_messages_in_batch=2),
    ]
    decoder = EntryDecoder(PARTITION, keys=True)
    found = [messages.keys for messages in decoder.decode(block_of(raws))]
    keys = [value for array in found if array is not None for value in array.to_pylist()]
    assert keys == [key, None, key, b"text"]
    assert [row["__key"] for row in decode(raws)] == [None, None, None, "text"]


def test_broker_time_out_of_range() -> None:
    (row,) = decode([entry(b"x", head=broker(TOO_LATE, 3))])
    assert row["rescued"][1] == "broker publish time out of range"
    assert (row["__brokerPublishTime"], row["__index"], row["payload"]) == (None, 3, b"x")


def test_one_bad_message_in_a_batch() -> None:
    bad = single(b"two", partition_key=b"\xff", properties=[(b"\xff", b"v"), (b"k", b"v")])
    raw = entry(single(b"one") + bad + single(b"three"), compression=1, num_messages_in_batch=3)
    one, two, three = decode([raw])
    assert (one["rescued"], three["rescued"]) == (None, None)
    assert two["payload"] == b"two"
    assert (two["__key"], two["__keyBase64"]) == (None, None)
    assert two["__messageProperties"] == {"k": "v"}
    header = raw[: 10 + int.from_bytes(raw[6:10], "big")]
    assert two["rescued"] == (header + bad, "key is not UTF-8; a property is not UTF-8")


def test_bad_value_of_the_entry_marks_every_message_of_its_batch() -> None:
    raw = entry(BATCH, producer_name=b"\xff", num_messages_in_batch=2, partition_key=b"\xff")
    header = raw[: len(raw) - len(BATCH)]
    rows = decode([raw])
    assert [row["payload"] for row in rows] == [b"one", b"two"]
    assert [row["rescued"] for row in rows] == [
        (header + single(b"one", partition_key="a"), "producer name is not UTF-8"),
        (header + single(b"two", partition_key="b"), "producer name is not UTF-8"),
    ]


@pytest.mark.parametrize("marker", [0, 10, 13, 20, 21, 22, 23])
def test_markers_are_no_rows(marker: int) -> None:
    raw = entry(b"\x0a\x00", marker_type=marker, txnid_most_bits=1, txnid_least_bits=2)
    assert decode([raw, entry(b"x"), raw])[0]["__entryId"] == 11


def test_transactions_that_nobody_decides() -> None:
    """Raised before the first messages of the block, not in the midst of them."""
    block = block_of([entry(b"a"), entry(b"b", txnid_most_bits=0, txnid_least_bits=0)])
    with pytest.raises(UnsupportedError, match=r"transaction \(0,0\)"):
        EntryDecoder(PARTITION).decode(block)


def test_a_very_compressible_message_is_read_if_the_settings_allow_it() -> None:
    raw = entry(b"GET /health 200\n" * (3 << 16), compression=3)
    [row] = decode([raw], expanded_bytes=1 << 20)
    assert row["rescued"][1].startswith("uncompressed size above pulsar.expanded_bytes")
    [row] = decode([raw], expanded_bytes=3 << 20)
    assert (len(row["payload"]), row["rescued"]) == (3 << 20, None)


def _count(raw: bytes, expanded_bytes: int) -> tuple[int, str | None]:
    """Return the number of rows of an entry, and why it is rescued."""
    decoder = EntryDecoder(
        PARTITION, columns=["__batchIndex"], payload=False, expanded_bytes=expanded_bytes
    )
    count, reason = 0, None
    for messages in decoder.decode(block_of([raw])):
        count += len(messages)
        reason = next((row.reason for row in messages.rescued.values()), reason)
    return count, reason


@pytest.mark.parametrize(
    ("count", "name", "reason"),
    [
        ((1 << 22) + 1, "p", "batch of more messages than pulsar.expanded_bytes divided by 8"),
        (300, "p" * 1_000_000,
         "metadata of a batch repeated in its rows above 8 times pulsar.expanded_bytes"),
    ],
)  # fmt: skip
def test_the_bounds_of_a_batch_rise_with_the_setting(count: int, name: str, reason: str) -> None:
    raw = entry(
        single(b"") * count,
        num_messages_in_batch=count,
        producer_name=name,
        compression=3,
        checksum=False,
    )
    assert _count(raw, 32 << 20) == (1, reason)
    assert _count(raw, 40 << 20) == (count, None)
