"""A manifest as bytes; which ids it gives; garbage."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.errors import CorruptError
from reader.model import Position
from reader.pulsar import NO_LOG, LogEnd
from reader.sink import Manifest, StagedFile
from reader.sink.manifest import PartitionEntries
from reader.sink.staged_entries import Run, ShownSchema
from reader.sink.staging import inline_of
from tests.support.examples import examples

A, B, C = (f"persistent://t/n/x-partition-{number}" for number in range(3))


def staged(path: str, inline: bytes, rows: int, **runs: list[Run]) -> StagedFile:
    named = {{"a": A, "b": B, "c": C}[name]: some for name, some in runs.items()}
    return StagedFile(path, inline, named, rows, dict.fromkeys(named, ShownSchema(b"schema", b"7")))


ME = "pulsar-lake-me-0123abcd"
PATH = "~sink/me/00000000000000000007.manifest"
TIME = 1_700_000_000_000_000


def made(following: dict[str, int] | None = None) -> Manifest:
    tasks = [
        staged("~sink/me/1.entries", b"", 5, b=[Run(0, 10, 2), Run(30, 5, 1)], a=[Run(10, 20, 2)]),
        staged("", b"0123456789", 3, a=[Run(0, 4, 1)], c=[Run(4, 6, 2)]),
        staged("", b"", 0),
        staged("", b"abcdef", 2, c=[Run(0, 3, 1)], a=[Run(3, 3, 1)]),
    ]
    ends = {A: LogEnd(Position(7, 8), "2026-01-01T00:00:00Z")}
    manifest = Manifest(
        ME, 7, 1_700_000_000_000, following=following or {}, encrypted=True, path=PATH
    )
    return manifest.sending(tasks, ends)


def test_ids_follow_each_other_in_the_order_of_tasks() -> None:
    """From its time on, or behind those of earlier versions that are ahead of it."""
    found = made({A: TIME + 100, B: 7, "persistent://t/n/other": 5})
    assert [(one.partition, one.first, one.ids, one.before) for one in found.partitions] == [
        (A, TIME + 100, 4, TIME + 99),
        (B, TIME, 3, 6),
        (C, TIME, 3, -1),
    ]
    assert found.partitions[0].parts == [
        ("~sink/me/1.entries", Run(10, 20, 2)),
        ("", Run(0, 4, 1)),
        ("", Run(13, 3, 1)),
    ]
    assert found.partitions[1].parts == [
        ("~sink/me/1.entries", Run(0, 10, 2)),
        ("~sink/me/1.entries", Run(30, 5, 1)),
    ]
    assert found.following == {A: TIME + 104, B: TIME + 3, C: TIME + 3, "persistent://t/n/other": 5}
    assert [one.end.last for one in found.partitions] == [Position(7, 8), *[NO_LOG.last] * 2]
    assert found.inline == b"0123456789abcdef"
    assert found.files == ["~sink/me/1.entries"]
    assert (found.rows, found.sent, found.encrypted) == (10, False, True)


def test_it_is_read_as_it_was_written() -> None:
    found = made({A: 1 << 61})
    again = Manifest.from_bytes(found.to_bytes(), found.path)
    assert again == found
    assert again.to_bytes() == found.to_bytes()
    assert Manifest.from_bytes(found.as_sent().to_bytes(), found.path) == found.as_sent().__class__(
        ME, 7, 1_700_000_000_000, 10, [], found.following, sent=True, files=[]
    )


def test_a_schema_that_is_none_is_not_one_without_bytes() -> None:
    for message in (None, b"", b"\x00\xff"):
        schema = ShownSchema(message, message)
        entries = PartitionEntries(A, 0, 1, -1, schema, [("", Run(0, 1, 1))])
        one = Manifest(ME, 0, 0, 1, [entries], {}, inline=b"x")
        assert Manifest.from_bytes(one.to_bytes(), PATH).partitions[0].schema == schema


def test_each_partition_has_its_own_inline_bytes() -> None:
    found = made()
    moved, data = inline_of(found, found.partitions[0])
    assert data == b"0123def"
    assert moved.parts == [
        ("~sink/me/1.entries", Run(10, 20, 2)),
        ("", Run(0, 4, 1)),
        ("", Run(4, 3, 1)),
    ]
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


@pytest.mark.parametrize(
    "file",
    [
        "public/default/orders/_delta_log/00000000000000000000.json",
        "~sink/me/00000000000000000006.manifest",
        "~sink/me/x/1.entries",
        "~sink/me/../other/1.entries",
        "~sink/other/1.entries",
        "../outside.entries",
        "/etc/passwd.entries",
        "1.entries",
    ],
)
@pytest.mark.parametrize("among", ["files", "parts"])
def test_a_planted_manifest_names_a_file_that_is_not_its_own(file: str, among: str) -> None:
    found = made()
    if among == "files":
        found = replace(found, files=[*found.files, file])
    else:
        [*others, last] = found.partitions
        last = replace(last, parts=[*last.parts, (file, Run(0, 1, 1))])
        found = replace(found, partitions=[*others, last])
    with pytest.raises(CorruptError, match="which is not its own") as caught:
        Manifest.from_bytes(found.to_bytes(), PATH)
    assert file in caught.value.message


@pytest.mark.parametrize("name", ["orders", "pulsar-lake-you-0123abcd", "pulsar-lake-me-", ""])
def test_a_planted_manifest_sends_under_the_name_of_another_producer(name: str) -> None:
    """Whose messages the broker would drop then."""
    found = replace(made(), producer=name)
    with pytest.raises(CorruptError, match="which is not its own"):
        Manifest.from_bytes(found.to_bytes(), PATH)


@pytest.mark.parametrize(
    ("topic", "own"), [("t~2Fn~2Fx", True), ("t~2Fn~2Fy", False), ("t~2Fn~2Fx~2Fz", False)]
)
def test_a_planted_manifest_sends_to_another_topic(topic: str, own: bool) -> None:
    """Than the one of its directory; where rows name their topics, it has any."""
    path = f"~sink/me/{topic}/{7:020d}.manifest"
    found = replace(made(), files=[], path=path)
    parts = [("", Run(0, 1, 1))]
    found = replace(found, partitions=[replace(one, parts=parts) for one in found.partitions])
    if own:
        assert Manifest.from_bytes(found.to_bytes(), path) == found
    else:
        with pytest.raises(CorruptError, match="x-partition-0, which is not its own"):
            Manifest.from_bytes(found.to_bytes(), path)


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
        Manifest.from_bytes(len(text).to_bytes(4, "little") + text, PATH)


@given(st.integers(0, 600))
def test_a_manifest_that_is_cut_off(size: int) -> None:
    data = made().to_bytes()
    try:
        found = Manifest.from_bytes(data[: min(size, len(data) - 17)], "it")
    except CorruptError:
        return
    raise AssertionError(found)
