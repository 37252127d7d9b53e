"""No entry is larger than its broker takes: chunks, long keys, long names."""

import random

import pytest

from reader.encode import Compression, Encryption, EntryFormat
from reader.errors import ConfigurationError
from tests.unit.encode.messages.encoding import (
    NAME,
    Row,
    decoded,
    encode,
    independent,
    public_rsa,
    stored,
)

MOST = 16 << 10
NOISE = random.Random(1).randbytes(100_000)
FRAME = 2 + 4 + 4
"""Of a stored entry, which ``maxMessageSize`` does not count: magic, checksum, size."""
LAST_ID = (1 << 62) - 100


def form(**more: object) -> EntryFormat:
    given: dict[str, object] = {"batch_bytes": MOST // 2, "entry_bytes": MOST} | more
    return EntryFormat(**given)  # type: ignore[arg-type]


def sizes(entries: list, name: str = NAME) -> list[int]:  # type: ignore[type-arg]
    return [len(one) - FRAME for one in stored(entries, LAST_ID, name)]


@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("size", [0, 1, MOST // 2 - 100, MOST // 2, MOST - 2100, MOST, 100_000])
def test_payloads_of_noise(size: int, compression: Compression, encrypted: bool) -> None:
    encryption = Encryption({"k": public_rsa()}) if encrypted else None
    entries = encode([Row(NOISE[:size], "k")], form(compression=compression), encryption)
    assert max(sizes(entries)) <= MOST


def test_chunks_are_as_large_as_they_may_be() -> None:
    entries = encode([Row(NOISE)], form(compression=Compression.NONE))
    assert all(len(one.payload) > MOST - 2100 for one in entries[:-1])


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4, Compression.ZSTD])
def test_chunks(compression: Compression) -> None:
    row = Row(NOISE, "a2V5", True, b"order", {"a": "1"}, event=5, deliver=9_000)
    rows = [Row(b"before"), row, Row(b"behind")]
    entries = encode(rows, form(compression=compression, schema_version=b"\x01"))
    chunks = entries[1:-1]
    assert [one.chunk for one in entries] == [0, *range(1, len(chunks) + 1), 0]
    assert [one.messages for one in entries] == [1] + [0] * (len(chunks) - 1) + [1, 1]
    assert [one.ids for one in entries] == [1] * len(entries)
    found = independent(entries, first=50)[1:-1]
    total = sum(len(one.payload) for one in found)
    for number, one in enumerate(found):
        known = {field.name: value for field, value in one.metadata.ListFields()}
        assert [(pair.key, pair.value) for pair in known.pop("properties")] == [("a", "1")]
        packed = {} if compression is Compression.NONE else {"compression": int(compression)}
        packed |= {"uncompressed_size": len(NOISE)} if packed else {}
        assert known == packed | {
            "producer_name": NAME,
            "sequence_id": 51 + number,
            "publish_time": 1_700_000_000_123,
            "partition_key": "a2V5",
            "partition_key_b64_encoded": True,
            "ordering_key": b"order",
            "event_time": 5,
            "deliver_at_time": 9_000,
            "schema_version": b"\x01",
            "uuid": f"{NAME}-51",
            "num_chunks_from_msg": len(chunks),
            "total_chunk_msg_size": total,
            "chunk_id": number,
        }
    back = decoded(entries, first=50)
    assert [one["payload"] for one in back] == [b"before", NOISE, b"behind"]
    assert back[1]["__key"] == "a2V5"
    assert back[1]["__deliverAt"] == 9_000_000


def test_what_compresses_well_is_no_chunks() -> None:
    [one] = encode([Row(bytes(100_000))], form(compression=Compression.LZ4))
    assert one.chunk == 0
    assert decoded([one])[0]["payload"] == bytes(100_000)


@pytest.mark.parametrize("what", ["key", "order", "base64"])
@pytest.mark.parametrize("size", [MOST // 2 - 100, MOST // 2 - 65, MOST // 2, MOST - 4300])
def test_long_keys(size: int, what: str) -> None:
    """A batch has the first message's keys twice: in the message, and in the entry's metadata."""
    row = Row(b"v", order=NOISE[:size]) if what == "order" else Row(b"v", "k" * (size // 4 * 4))
    if what == "base64":
        row = Row(b"v", "k" * (size // 4 * 4), base64=True)
    entries = encode([row, Row(b"next")], form(compression=Compression.NONE))
    assert max(sizes(entries)) <= MOST
    found = decoded(entries)
    assert [one["payload"] for one in found] == [b"v", b"next"]
    assert (found[0]["__key"], found[0]["__orderingKey"]) == (row.key, row.order)


def test_keys_that_leave_a_batch_no_room() -> None:
    rows = [Row(NOISE[:1000], "k" * 6000, order=b"o" * 6000), Row(b"next")]
    entries = encode(rows, form(batch_bytes=MOST, compression=Compression.NONE))
    assert max(sizes(entries)) <= MOST
    assert [one["payload"] for one in decoded(entries)] == [NOISE[:1000], b"next"]


@pytest.mark.parametrize("row", [Row(b"v", "k" * MOST), Row(b"v", properties={"p": "x" * MOST})])
def test_what_no_entry_has_room_for(row: Row) -> None:
    with pytest.raises(ConfigurationError) as caught:
        encode([Row(b"before"), row], form())
    assert caught.value.context == {"row": 1}
    assert "the key and the properties of a row have 16" in caught.value.message
    assert caught.value.hint == "only payloads are sent in chunks; see the broker's maxMessageSize"


@pytest.mark.parametrize("name", ["pulsar-lake-" + "é" * 200, "pulsar-lake-" + "🔑" * 200])
def test_the_longest_names(name: str) -> None:
    for compression in (Compression.NONE, Compression.ZSTD):
        entries = encode([Row(NOISE)], form(compression=compression))
        assert max(sizes(entries, name)) <= MOST
    for size in range(MOST - 3000, MOST - 400, 100):
        entries = encode([Row(NOISE[:size])], form(compression=Compression.NONE))
        assert max(sizes(entries, name)) <= MOST
