"""A manifest as bytes; which ids it gives; garbage."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.errors import CorruptError
from reader.sink import Manifest, PartitionEntries, StagedFile, inline_of
from reader.sink.staged_entries import Run, ShownSchema
from tests.support.examples import examples

A, B, C = (f"persistent://t/n/x-partition-{number}" for number in range(3))


def staged(path: str, inline: bytes, rows: int, **runs: list[Run]) -> StagedFile:
    named = {{"a": A, "b": B, "c": C}[name]: some for name, some in runs.items()}
    return StagedFile(path, inline, named, rows, dict.fromkeys(named, ShownSchema(b"schema", b"7")))


TIME = 1_700_000_000_000_000


def made(following: dict[str, int] | None = None) -> Manifest:
    tasks = [
        staged("d/1.entries", b"", 5, b=[Run(0, 10, 2), Run(30, 5, 1)], a=[Run(10, 20, 2)]),
        staged("", b"0123456789", 3, a=[Run(0, 4, 1)], c=[Run(4, 6, 2)]),
        staged("", b"", 0),
        staged("", b"abcdef", 2, c=[Run(0, 3, 1)], a=[Run(3, 3, 1)]),
    ]
    return Manifest.of("me", 7, 1_700_000_000_000, tasks, following or {}, encrypted=True)


def test_ids_follow_each_other_in_the_order_of_tasks() -> None:
    """From its time on, or behind those of earlier versions that are ahead of it."""
    found = made({A: TIME + 100, B: 7, "persistent://t/n/other": 5})
    assert [(one.partition, one.first, one.ids, one.before) for one in found.partitions] == [
        (A, TIME + 100, 4, TIME + 99),
        (B, TIME, 3, 6),
        (C, TIME, 3, -1),
    ]
    assert found.partitions[0].parts == [
        ("d/1.entries", Run(10, 20, 2)),
        ("", Run(0, 4, 1)),
        ("", Run(13, 3, 1)),
    ]
    assert found.partitions[1].parts == [
        ("d/1.entries", Run(0, 10, 2)),
        ("d/1.entries", Run(30, 5, 1)),
    ]
    assert found.following == {
        A: TIME + 104,
        B: TIME + 3,
        C: TIME + 3,
        "persistent://t/n/other": 5,
    }
    assert found.inline == b"0123456789abcdef"
    assert found.files == ["d/1.entries"]
    assert (found.rows, found.sent, found.encrypted) == (10, False, True)


def test_it_is_read_as_it_was_written() -> None:
    found = made({A: 1 << 61})
    again = Manifest.from_bytes(found.to_bytes(), "it")
    assert again == found
    assert again.to_bytes() == found.to_bytes()
    assert Manifest.from_bytes(found.as_sent().to_bytes(), "it") == found.as_sent().__class__(
        "me", 7, 1_700_000_000_000, 10, [], found.following, sent=True, files=[]
    )


def test_a_schema_that_is_none_is_not_one_without_bytes() -> None:
    for message in (None, b"", b"\x00\xff"):
        schema = ShownSchema(message, message)
        entries = PartitionEntries(A, 0, 1, -1, schema, [("", Run(0, 1, 1))])
        one = Manifest("me", 0, 0, 1, [entries], {}, inline=b"x")
        assert Manifest.from_bytes(one.to_bytes(), "it").partitions[0].schema == schema


def test_each_partition_has_its_own_inline_bytes() -> None:
    found = made()
    moved, data = inline_of(found, found.partitions[0])
    assert data == b"0123def"
    assert moved.parts == [("d/1.entries", Run(10, 20, 2)), ("", Run(0, 4, 1)), ("", Run(4, 3, 1))]
    assert (moved.partition, moved.first, moved.ids) == (A, TIME, 4)
    moved, data = inline_of(found, found.partitions[1])
    assert data == b""
    assert moved == found.partitions[1]
    moved, data = inline_of(found, found.partitions[2])
    assert (data, moved.parts) == (b"456789abc", [("", Run(0, 6, 2)), ("", Run(6, 3, 1))])


def test_a_newer_format_is_told() -> None:
    text = json.dumps({"format": 2}).encode()
    data = len(text).to_bytes(4, "little") + text
    with pytest.raises(CorruptError, match=r"x\.manifest is of a newer version of pulsar-lake"):
        Manifest.from_bytes(data, "x.manifest")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(300))
@given(st.binary(max_size=60))
def test_garbage_is_accepted_or_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptError, match="it is"):
        Manifest.from_bytes(data, "it")


@settings(max_examples=examples(300))
@given(st.sampled_from(list(json.loads(made().to_bytes()[4:-16]))), VALUES, st.booleans())
def test_a_manifest_with_any_other_value_is_accepted_or_corrupt(
    name: str, value: object, within: bool
) -> None:
    fields = json.loads(made().to_bytes()[4:-16])
    if within:
        inner = fields["partitions"][0]
        inner[sorted(inner)[hash(name) % len(inner)]] = value
    else:
        fields[name] = value
    text = json.dumps(fields).encode()
    with suppress(CorruptError):
        Manifest.from_bytes(len(text).to_bytes(4, "little") + text, "it")


@given(st.integers(0, 600))
def test_a_manifest_that_is_cut_off(size: int) -> None:
    data = made().to_bytes()
    try:
        found = Manifest.from_bytes(data[: min(size, len(data) - 17)], "it")
    except CorruptError:
        return
    raise AssertionError(found)
