"""What tasks stage: inline or in a file, runs of partitions, and how it is read again."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from reader.encode import EncodedEntry, EntryFormat
from reader.errors import CorruptError, UnavailableError
from reader.model import Partition
from reader.sink import Manifest, StagedFile, StagingWriter
from reader.sink.staging import StagedEntries, inline_of, staging_directory
from tests.unit.decode.entries import PARTITION
from tests.unit.encode.messages.encoding import Row, encode
from tests.unit.sink.worlds import TARGET, World, batches

OTHER = Partition(PARTITION.topic, 1)
MIB = 1 << 20


def staged(world: World, entries: list[tuple[Partition, EncodedEntry]]) -> StagedFile:
    writer = StagingWriter(world.clients, world.write().directory)
    for partition, one in entries:
        writer.put(TARGET, partition, one)
    return writer.finish(sum(one.messages for _, one in entries))


def read(
    world: World, found: list[StagedFile], partition: Partition, beyond: int = -1, first: int = 0
) -> list[tuple[int, EncodedEntry]]:
    following = {partition.full_name: first}
    manifest = Manifest("me", 0, 0, following=following).sending(found)
    [entries] = [one for one in manifest.partitions if one.partition == partition.full_name]
    moved, data = inline_of(manifest, entries)
    again = StagedEntries(world.clients, moved, data).read(beyond)
    return [
        (sequence, EncodedEntry(one.messages, one.metadata, bytes(one.payload), one.chunk))
        for sequence, one in again
    ]


def plain(entries: list[EncodedEntry]) -> list[EncodedEntry]:
    return [EncodedEntry(o.messages, o.metadata, bytes(o.payload), o.chunk) for o in entries]


@pytest.mark.parametrize("large", [False, True])
def test_it_is_read_as_it_was_staged(world: World, large: bool) -> None:
    ours, others = batches(8, large=large), batches(7, 2, first=50, large=large)
    mixed = [(PARTITION, one) for one in ours] + [(OTHER, one) for one in others]
    random.Random(7).shuffle(mixed)
    found = staged(world, mixed)
    assert bool(found.path) == large
    assert bool(found.inline) != large
    assert found.rows == 24 + 14
    assert found.schemas == dict.fromkeys((PARTITION.full_name, OTHER.full_name), (b"schema", b""))
    for partition, ids in ((PARTITION, 3), (OTHER, 2)):
        wanted = [one for where, one in mixed if where == partition]
        again = read(world, [found], partition)
        assert [one for _, one in again] == plain(wanted)
        assert [sequence for sequence, _ in again] == [ids * n for n in range(len(wanted))]


def test_several_tasks(world: World) -> None:
    tasks = [batches(2), batches(8, first=10, large=True), [], batches(3, first=20)]
    found = [staged(world, [(PARTITION, one) for one in some]) for some in tasks]
    again = read(world, found, PARTITION, first=100)
    assert [one for _, one in again] == plain([one for some in tasks for one in some])
    assert [sequence for sequence, _ in again] == [100 + 3 * number for number in range(13)]


@pytest.mark.parametrize("beyond", range(-1, 41, 4))
def test_what_lies_beyond_an_id(world: World, beyond: int) -> None:
    tasks = [batches(2), batches(8, first=10, large=True), batches(3, first=20)]
    found = [staged(world, [(PARTITION, one) for one in some]) for some in tasks]
    whole = read(world, found, PARTITION)
    wanted = [(sequence, one) for sequence, one in whole if sequence + one.ids - 1 > beyond]
    assert read(world, found, PARTITION, beyond) == wanted


def test_a_task_that_stages_more_than_it_holds(world: World) -> None:
    """Runs of 32 MiB; chunks of one message stand in the same."""
    noise = random.Random(8).randbytes(12 * MIB)
    entries: list[tuple[Partition, EncodedEntry]] = []
    for number in range(5):
        form = EntryFormat(entry_bytes=5 * MIB)
        some = encode([Row(b"%d" % number + noise), Row(b"behind")], form)
        entries += [(OTHER if number % 2 else PARTITION, one) for one in some]
    found = staged(world, entries)
    assert len(found.runs[PARTITION.full_name]) == 2
    size = (world.directory / found.path).stat().st_size
    assert sum(run.size for runs in found.runs.values() for run in runs) == size
    for partition in (PARTITION, OTHER):
        wanted = [one for where, one in entries if where == partition]
        again = [one for _, one in read(world, [found], partition)]
        assert again == plain(wanted)
        chunks = [one.chunk for one in again]
        assert chunks == [1, 2, 3, 0] * (len(wanted) // 4)


def test_nothing_is_no_file(world: World) -> None:
    assert staged(world, []) == StagedFile("", b"", {}, 0, {})
    assert not world.directory.exists()


def test_a_storage_that_cannot_be_written(world: World, tmp_path: Path) -> None:
    world.directory.parent.mkdir(exist_ok=True)
    world.directory.write_bytes(b"a file in its place")
    with pytest.raises(UnavailableError, match="cannot stage what is to be sent"):
        staged(world, [(PARTITION, one) for one in batches(8, large=True)])


def test_what_was_staged_is_damaged(world: World) -> None:
    found = staged(world, [(PARTITION, one) for one in batches(8, large=True)])
    path = world.directory / found.path
    data = path.read_bytes()
    path.write_bytes(b"\xff" * 16 + data[16:])
    with pytest.raises(CorruptError, match="a staged entry is no batch"):
        read(world, [found], PARTITION)
    for size in (len(data) // 2, len(data) - 1, 0):  # half of them are whole entries
        path.write_bytes(data[:size])
        with pytest.raises(CorruptError, match="what was staged is cut off"):
            read(world, [found], PARTITION)
    short = replace(found.runs[PARTITION.full_name][0], ids=25)
    path.write_bytes(data)
    with pytest.raises(CorruptError, match="what was staged is not what it was"):
        read(world, [replace(found, runs={PARTITION.full_name: [short]})], PARTITION)


@pytest.mark.parametrize("app", ["a", "a/b", "..", "a b", "é", "~"])
def test_directories_of_names(app: str) -> None:
    directory = staging_directory(app)
    assert directory.startswith("~sink/")
    assert directory.count("/") == 1
    assert directory.isascii()
    assert directory.removeprefix("~sink/") not in ("", ".", "..")
