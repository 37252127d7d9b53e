"""Portions of rows: bounded by what comes out, also within one entry, whatever the input says."""

import itertools
from typing import Any

import pytest

from reader.decode import EntryDecoder
from reader.decode.passes import portions as limits
from reader.decode.tables import MAX_PROPERTIES
from reader.model.columns import METADATA_NAMES
from tests.unit.decode.entries import PARTITION, block_of, decode, entry, metadata, rows_of, single

HEAD = metadata()
ONE_PROPERTY = bytes.fromhex("0a0161 120162")


def portions(raws: list[bytes], **options: Any) -> list[Any]:
    return list(EntryDecoder(PARTITION, **options).decode(block_of(raws)))


def batch(count: int, **values: Any) -> bytes:
    messages = [
        single(
            b"m%d" % n,
            partition_key=f"k{n}",
            properties=[(b"n", b"%d" % n)] * (n % 4),
            compacted_out=n % 5 == 3,
            null_value=n % 7 == 1,
        )
        for n in range(count)
    ]
    return entry(b"".join(messages), num_messages_in_batch=count, **values)


@pytest.mark.parametrize("rows", [1, 2, 7, 1000])
@pytest.mark.parametrize("most", [1, 300, 1 << 20])
@pytest.mark.parametrize("pairs", [3, 1000])
def test_portions_of_any_size_have_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, rows: int, most: int, pairs: int
) -> None:
    broken = entry(single(b"a") * 30 + b"\xff", num_messages_in_batch=31)
    raws = [
        batch(23, compression=1),
        batch(2),
        broken,
        batch(40, compression=3, schema_version=b"\0" * 8, partition_key=b"\xff"),
        entry(b"", marker_type=1),
        entry(b"alone", properties=[(b"a", b"b"), (b"a", b"c")]),
        b"",
        entry(single(b"x", compacted_out=True) * 9, num_messages_in_batch=9),
        batch(3, compression=2),
        broken,
    ]
    whole = decode(raws)
    monkeypatch.setattr(limits, "PORTION_ROWS", rows)
    monkeypatch.setattr(limits, "PORTION_BYTES", most)
    monkeypatch.setattr(limits, "PORTION_PAIRS", pairs)
    parts = portions(raws)
    assert max(map(len, parts)) <= rows
    if most == 1:
        assert {len(part) for part in parts} == {1}
    assert list(itertools.chain.from_iterable(map(rows_of, parts))) == whole


@pytest.mark.parametrize("compression", [0, 1, 3])
def test_a_batch_that_breaks_at_its_end_gives_none_of_its_messages(
    monkeypatch: pytest.MonkeyPatch, compression: int
) -> None:
    monkeypatch.setattr(limits, "PORTION_ROWS", 10)
    payload = single(b"a") * 500
    for bad in (payload[:-1], payload[:-3] + b"\xff\xff\xff"):
        raws = [batch(3), entry(bad, num_messages_in_batch=500, compression=compression), batch(3)]
        rows = list(itertools.chain.from_iterable(map(rows_of, portions(raws))))
        assert [row["__batchIndex"] for row in rows] == [0, 1, 2, -1, 0, 1, 2]
        assert rows[3]["rescued"] == (raws[1], "batch cannot be split into its messages")


def test_many_properties_are_not_shown() -> None:
    one = b"\x22\x06" + ONE_PROPERTY
    most = decode([entry(b"x", raw_metadata=HEAD + one * MAX_PROPERTIES)])
    assert [row["__messageProperties"] for row in most] == [{"a": "b"}]
    assert most[0]["rescued"] is None
    raw = entry(b"x", raw_metadata=HEAD + one * (MAX_PROPERTIES + 1), checksum=False)
    (row,) = decode([raw])
    assert (row["__messageProperties"], row["payload"]) == (None, b"x")
    assert row["rescued"] == (raw, "more than 65536 properties")


def test_many_properties_of_a_message_in_a_batch_are_not_shown() -> None:
    many = (b"\x0a\x06" + ONE_PROPERTY) * (MAX_PROPERTIES + 1) + b"\x18\x01"
    payload = single(b"a", properties=[(b"k", b"v")])
    payload += len(many).to_bytes(4, "big") + many + b"x" + single(b"b", properties=[(b"k", b"w")])
    rows = decode([entry(payload, num_messages_in_batch=3, compression=3, checksum=False)])
    assert [row["__messageProperties"] for row in rows] == [{"k": "v"}, None, {"k": "w"}]
    assert [row["payload"] for row in rows] == [b"a", b"x", b"b"]
    assert [row["rescued"] and row["rescued"][1] for row in rows] == [
        None,
        "more than 65536 properties",
        None,
    ]
    columns = [name for name in METADATA_NAMES if name != "__messageProperties"]
    rows = decode(
        [entry(payload, num_messages_in_batch=3, compression=3, checksum=False)], columns=columns
    )
    assert [bool(row["rescued"]) for row in rows] == [False, True, False]
