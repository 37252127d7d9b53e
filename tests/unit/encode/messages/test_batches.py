"""Messages as batches: every field, by our decoder and by Google's; where batches end."""

from dataclasses import replace

import pytest

from reader.decode import Decryption
from reader.encode import Compression, Encryption, EntryFormat, stored_payload
from reader.encode.message_metadata import NOT_DELAYED
from reader.errors import CorruptError
from tests.unit.decode.test_decryption import RSA, pem
from tests.unit.encode.messages.encoding import (
    NAME,
    Row,
    chosen,
    columns_of,
    decoded,
    encode,
    expected,
    in_turns,
    independent,
    public_rsa,
)
from tests.unit.encode.messages.proto import batch_of

EVERYTHING = [
    Row(b"plain"),
    Row(b"keyed", "käy 🔑"),
    Row(b"base64", "a2V5", base64=True),
    Row(b"", "empty value"),
    Row(b"empty key", ""),
    Row(None, "tombstone"),
    Row(None),
    Row(b"ordered", order=b"\x00\xff order"),
    Row(b"empty order", order=b""),
    Row(b"properties", properties={"a": "1", "": "empty name", "b": "", "ключ": "знач"}),
    Row(b"no properties", properties=None),
    Row(b"event", event=1),
    Row(b"late event", event=253_402_300_799_999),
    Row(b"x" * 5000, "k" * 300, order=b"o" * 200, properties={"p" * 200: "q" * 3000}, event=77),
    Row(b"\x80" * 127),
    Row(b"\x80" * 128),
    Row(b"\x80" * 16_384),
]


def test_our_decoder_gives_the_rows_back() -> None:
    rows = decoded(encode(EVERYTHING), first=100)
    for number, (found, wanted) in enumerate(zip(rows, expected(EVERYTHING), strict=True)):
        assert {name: found[name] for name in wanted} == wanted
        assert found["__sequenceId"] == 100 + number
        assert found["__batchIndex"] == number
        assert found["__publishTime"] == 1_700_000_000_123_000
        assert found["__producerName"] == NAME
        assert found["__replicatedFrom"] is None
        assert found["__brokerPublishTime"] is found["__index"] is found["__schemaVersion"] is None


@pytest.mark.parametrize("first", [0, 7, 1_700_000_000_000_000, (1 << 63) - 20])
def test_googles_decoder_gives_every_field_of_each_message(first: int) -> None:
    [one] = independent(encode(EVERYTHING), first=first)
    messages = batch_of(one.plain)
    assert len(messages) == len(EVERYTHING) < 20
    for number, ((found, payload), row) in enumerate(zip(messages, EVERYTHING, strict=True)):
        assert found.sequence_id == first + number
        assert payload == (row.value or b"")
        assert found.payload_size == len(payload)
        assert found.HasField("partition_key") == (row.key is not None)
        assert found.partition_key == (row.key or "")
        assert found.partition_key_b64_encoded == bool(row.base64)
        assert found.HasField("ordering_key") == (row.order is not None)
        assert found.ordering_key == (row.order or b"")
        pairs = [(pair.key, pair.value) for pair in found.properties]
        assert pairs == list((row.properties or {}).items())
        assert found.event_time == (row.event or 0)
        assert found.HasField("event_time") == (row.event is not None)
        assert found.null_value == (row.value is None)
        others = ("compacted_out", "null_partition_key")
        assert not any(map(found.HasField, others))


def test_an_encrypted_batch_has_the_id_of_its_first_message() -> None:
    """Its payload is sealed before ids are known. So Java shows it, too."""
    entries = encode(EVERYTHING, encryption=Encryption({"k": public_rsa()}))
    rows = decoded(entries, first=100, decryption=Decryption({"k": pem(RSA)}.get))
    assert [row["__sequenceId"] for row in rows] == [100] * len(EVERYTHING)


def test_a_batch_that_was_damaged_where_it_was_staged() -> None:
    [whole] = encode([Row(b"1"), Row(b"2")])
    data = bytes(whole.payload)
    assert stored_payload(whole, 7)[0] != data
    damaged = [data[:-1], data[1:], data + b"\0", b"\xff" * 4 + data[4:], data[:4] + data[5:]]
    for payload in damaged:
        with pytest.raises(CorruptError, match="a batch that was to be sent is damaged"):
            stored_payload(replace(whole, payload=payload), 7)
    with pytest.raises(CorruptError):
        stored_payload(replace(whole, messages=3), 7)


def test_googles_decoder_gives_every_field_of_the_entry() -> None:
    form = EntryFormat(schema_version=(3).to_bytes(8, "big"))
    rows = [Row(b"1", "a2V5", base64=True, order=b"o"), Row(b"2", "other")]
    [one] = independent(encode(rows, form), first=7)
    known = {field.name: value for field, value in one.metadata.ListFields()}
    assert known == {
        "producer_name": NAME,
        "sequence_id": 7,
        "highest_sequence_id": 8,
        "publish_time": 1_700_000_000_123,
        # Those of the first message, as the Java client has it.
        "partition_key": "a2V5",
        "partition_key_b64_encoded": True,
        "ordering_key": b"o",
        "compression": 1,
        "uncompressed_size": len(one.plain),
        "num_messages_in_batch": 2,
        "schema_version": (3).to_bytes(8, "big"),
    }


def test_a_message_that_is_alone_has_every_field_in_its_entry() -> None:
    row = Row(b"v", "k", order=b"o", properties={"a": "1", "b": ""}, event=5, deliver=9_000)
    form = EntryFormat(compression=Compression.NONE, schema_version=b"\x02")
    [one] = independent(encode([row], form), first=7)
    known = {field.name: value for field, value in one.metadata.ListFields()}
    assert [(pair.key, pair.value) for pair in known.pop("properties")] == [("a", "1"), ("b", "")]
    assert known == {
        "producer_name": NAME,
        "sequence_id": 7,
        "publish_time": 1_700_000_000_123,
        "partition_key": "k",
        "ordering_key": b"o",
        "event_time": 5,
        "deliver_at_time": 9_000,
        "schema_version": b"\x02",
    }
    assert one.payload == b"v"


def test_a_tombstone_that_is_alone() -> None:
    entries = encode([Row(None, "k", deliver=9_000)])
    [one] = independent(entries)
    assert one.metadata.null_value
    assert one.plain == b""
    [row] = decoded(entries)
    assert row["payload"] is None
    assert row["__key"] == "k"
    assert row["__tombstone"] is True


@pytest.mark.parametrize("compression", list(Compression))
def test_each_compression(compression: Compression) -> None:
    rows = [*EVERYTHING, Row(b"alone " * 100, "k", deliver=5), Row(None, deliver=5)]
    entries = encode(rows, EntryFormat(compression=compression))
    assert [one.metadata.compression for one in independent(entries)] == [int(compression)] * 3
    for one in independent(entries):
        assert one.metadata.HasField("uncompressed_size") == (compression is not Compression.NONE)
        if compression is Compression.NONE:
            assert one.payload == one.plain
    assert [row["payload"] for row in decoded(entries)] == [row.value for row in rows]


# -- where batches end -----------------------------------------------------------------------------


def counts(rows: list[Row], form: EntryFormat, calls: int = 1) -> list[int]:
    return [one.messages for one in encode(rows, form, calls=calls)]


@pytest.mark.parametrize("calls", [1, 2, 3, 25])
def test_so_many_messages_at_most(calls: int) -> None:
    rows = [Row(b"%d" % n) for n in range(25)]
    assert counts(rows, EntryFormat(messages=10), calls) == [10, 10, 5]
    assert counts(rows, EntryFormat(messages=25), calls) == [25]
    assert counts(rows, EntryFormat(messages=1), calls) == [1] * 25


@pytest.mark.parametrize("calls", [1, 7])
def test_so_many_bytes_at_most_before_compression(calls: int) -> None:
    rows = [Row(bytes(100), "k") for _ in range(100)]
    entries = encode(rows, EntryFormat(batch_bytes=1000), calls=calls)
    sizes = [len(one.plain) for one in independent(entries)]
    assert max(sizes) <= 1000
    assert min(sizes[:-1]) > 1000 - 120
    assert [row["payload"] for row in decoded(entries)] == [bytes(100)] * 100


def test_a_batch_grows_to_its_limit() -> None:
    rows = [Row(bytes(10_000)) for _ in range(150)]
    entries = encode(rows, EntryFormat(batch_bytes=1 << 20))
    assert [one.messages for one in entries] == [104, 46]
    assert len(independent(entries)[0].plain) > (1 << 20) - 10_020
    assert [row["payload"] for row in decoded(entries)] == [bytes(10_000)] * 150


def test_a_message_that_is_larger_than_a_batch_is_alone_and_in_its_place() -> None:
    rows = [Row(b"before"), Row(bytes(2000), "k"), Row(b"behind"), Row(b"last")]
    entries = encode(rows, EntryFormat(batch_bytes=1000))
    assert [one.messages for one in entries] == [1, 1, 2]
    assert [one.metadata.HasField("num_messages_in_batch") for one in independent(entries)] == [
        True,
        False,
        True,
    ]
    assert [row["payload"] for row in decoded(entries)] == [row.value for row in rows]


@pytest.mark.parametrize("what", ["key", "order", "properties"])
def test_what_is_beside_a_payload_counts(what: str) -> None:
    large: dict[str, object] = {
        "key": "k" * 900,
        "order": b"o" * 900,
        "properties": {f"name{n}": "x" * 80 for n in range(10)},
    }
    row = Row(b"x" * 100, **{what: large[what]})  # type: ignore[arg-type]
    entries = encode([Row(b"a"), row, Row(b"b")], EntryFormat(batch_bytes=900))
    assert [one.messages for one in entries] == [1, 1, 1]
    found = decoded(entries)[1]
    wanted = expected([row])[0]
    assert {name: found[name] for name in wanted} == wanted


def test_what_is_to_be_delivered_later_is_alone() -> None:
    rows = [Row(b"1"), Row(b"2"), Row(b"3", deliver=9_000), Row(b"4", deliver=1), Row(b"5")]
    entries = encode(rows)
    assert [one.messages for one in entries] == [2, 1, 1, 1]
    assert [row["__deliverAt"] for row in decoded(entries)] == [None, None, 9_000_000, 1_000, None]


def test_rows_may_be_chosen_and_stand_in_any_order() -> None:
    rows = [Row(b"%d" % n, f"k{n}") for n in range(10)]
    picked = [9, 3, 4, 0]
    entries = chosen(rows, picked)
    assert [row["__key"] for row in decoded(entries)] == [f"k{n}" for n in picked]


def test_an_encoder_goes_on_with_other_columns() -> None:
    turns = [[Row(b"1", "a"), Row(b"2")], [], [Row(None, "c", properties={"x": "y"})]]
    entries = in_turns(turns)
    assert [one.messages for one in entries] == [3]
    found = decoded(entries)
    for row, wanted in zip(found, expected([row for some in turns for row in some]), strict=True):
        assert {name: row[name] for name in wanted} == wanted


def test_nothing_is_nothing() -> None:
    assert encode([]) == []
    assert (columns_of([Row()]).deliver == NOT_DELAYED).all()
