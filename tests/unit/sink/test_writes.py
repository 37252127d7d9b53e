"""A named write: decided once, whoever asks; what is kept of it, and what is not."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.model import Partition, Topic
from reader.sink import Manifest, NamedWrite, StagedFile, drop_topic, refusal_path
from reader.sink.staged_entries import ShownSchema
from reader.sink.writes import forget_writes
from reader.storage.objects import Objects
from tests.unit.decode.entries import PARTITION
from tests.unit.sink.worlds import APP, FIRST_ID, NOISE, World, batches

ONE = PARTITION.full_name


def names(world: World) -> list[str]:
    found = (world.directory / "~sink" / APP).glob("*")
    return sorted(one.name for one in found)


def files(world: World) -> int:
    return sum(name.endswith(".entries") for name in names(world))


def small(world: World, count: int = 2, topic: str | None = None) -> list[StagedFile]:
    partition = PARTITION if topic is None else Partition(Topic.parse(topic), -1)
    return [world.staged(batches(count), partition=partition)]


def large(world: World) -> list[StagedFile]:
    return [world.staged(batches(8, large=True))]


def decide(
    write: NamedWrite, version: int, staged: list[StagedFile], *, encrypted: bool
) -> tuple[Manifest, bool]:
    """Where there is something to send."""
    decided = write.decide(version, staged, encrypted=encrypted)
    assert decided is not None
    return decided


def version(number: int) -> str:
    return f"{number:020d}.manifest"


def test_the_first_version(world: World) -> None:
    write = world.write()
    assert write.latest() is None
    assert write.directory == f"~sink/{APP}"
    manifest, first = decide(write, 0, large(world), encrypted=True)
    assert first
    assert manifest.version == 0
    assert re.fullmatch(f"pulsar-lake-{APP}-[0-9a-f]{{8}}", manifest.producer)
    assert manifest.created == 1_700_000_005_000
    assert (manifest.rows, manifest.encrypted, manifest.sent) == (24, True, False)
    assert manifest.following == {ONE: FIRST_ID + 24}
    assert (world.directory / manifest.files[0]).exists()
    assert write.latest() == manifest
    assert world.write().latest() == manifest
    assert names(world)[0] == version(0)


def test_decided_twice(world: World) -> None:
    """By an attempt that failed, and the next, which computed other rows."""
    write = world.write()
    manifest, _ = decide(write, 3, large(world), encrypted=False)
    for again in (write, world.write()):
        found, first = decide(again, 3, large(world), encrypted=False)
        assert (found, first) == (manifest, False)
    assert files(world) == 1, "what was staged in vain is dropped"


def test_decided_twice_with_the_same_files(world: World) -> None:
    """By a helper of the driver that was started anew, and is asked once more."""
    staged = large(world)
    manifest, _ = decide(world.write(), 0, staged, encrypted=False)
    found, first = decide(world.write(), 0, staged, encrypted=False)
    assert (found, first) == (manifest, False)
    assert files(world) == 1, "what was decided is still to be sent"
    world.send(found, fresh=False)
    assert len(world.topic.stored) == 8


def test_what_is_noted_of_an_older_version_is_deleted(world: World) -> None:
    write = world.write()
    for number in range(3):
        manifest, _ = decide(write, number, small(world), encrypted=False)
        world.clients.storage.objects().put(refusal_path(manifest.path), b"")
        write.sent(manifest)
    assert names(world) == [version(2), refusal_path(version(2))]


def test_a_write_without_a_name_goes_on_where_it_was(world: World) -> None:
    """It is forgotten each time; another helper of its driver is told where it was."""
    write = world.write(named=False)
    assert write.state() == {"version": -1, "following": {}, "producer": ""}
    for number in range(3):
        manifest, first = decide(write, number, large(world), encrypted=False)
        assert first
        assert manifest.partitions[0].first == FIRST_ID + 24 * number
        write.forget()
        assert names(world) == []
        state = write.state()
        assert state == {
            "version": number,
            "following": {ONE: FIRST_ID + 24 * number + 24},
            "producer": manifest.producer,
        }
        write = world.write(named=False)
        write.assume(state)
    manifest, first = decide(write, 2, large(world), encrypted=False)
    assert (manifest.version, manifest.sent, first) == (2, True, False)
    assert files(world) == 0


def test_a_manifest_that_is_there_wins_over_what_is_assumed(world: World) -> None:
    manifest, _ = decide(world.write(), 3, large(world), encrypted=False)
    write = world.write(named=False)
    write.assume({"version": 9, "following": {ONE: 1000}})
    assert write.latest() == manifest


@pytest.mark.parametrize("known", [False, True])
def test_two_drivers_race(world: World, known: bool) -> None:
    one, other = world.write(), world.write()
    if known:
        one.latest(), other.latest()  # both have looked before either decides
    manifest, first = decide(one, 0, large(world), encrypted=False)
    found, second = decide(other, 0, [world.staged(batches(9, large=True))], encrypted=False)
    assert (first, second) == (True, False)
    assert found == manifest == other.latest()
    assert files(world) == 1


def test_ids_go_on_growing(world: World) -> None:
    write = world.write()
    for number in range(3):
        manifest, _ = decide(write, number, small(world), encrypted=False)
        assert manifest.partitions[0].first == FIRST_ID + 6 * number
        write.sent(manifest)
        write = world.write()
    assert write.latest() == Manifest(
        manifest.producer, 2, 1_700_000_005_000, 6, [], {ONE: FIRST_ID + 18}, sent=True, files=[]
    )


def test_a_partition_that_a_version_leaves_out_goes_on_where_it_was(world: World) -> None:
    write = world.write()
    manifest, _ = decide(write, 0, small(world), encrypted=False)
    write.sent(manifest)
    other = StagedFile(
        "", b"", {"persistent://a/b/c": []}, 1, {"persistent://a/b/c": ShownSchema(None, b"")}
    )
    manifest, _ = decide(write, 1, [other], encrypted=False)
    assert [one.partition for one in manifest.partitions] == ["persistent://a/b/c"]
    write.sent(manifest)
    manifest, _ = decide(write, 2, small(world), encrypted=False)
    assert manifest.partitions[0].first == FIRST_ID + 6


def test_a_version_without_rows(world: World) -> None:
    """It is done, whatever rows it has later; one that was begun is finished all the same."""
    write = world.write()
    nothing = [StagedFile("", b"", {}, 0, {})]
    manifest, first = decide(write, 0, nothing, encrypted=False)
    assert (manifest.sent, manifest.rows, first) == (True, 0, True)
    again, first = decide(world.write(), 0, small(world), encrypted=False)
    assert (again.sent, again.producer, first) == (True, manifest.producer, False)
    manifest, _ = decide(write, 1, small(world), encrypted=False)
    assert decide(world.write(), 1, nothing, encrypted=False) == (manifest, False)
    with pytest.raises(ConfigurationError, match="version 1 of the write"):
        decide(world.write(), 2, nothing, encrypted=False)
    write.sent(manifest)
    assert names(world) == [version(1)]
    empty, _ = decide(world.write(), 2, nothing, encrypted=False)
    assert empty.following == manifest.following
    assert names(world) == [version(2)]
    unnamed = NamedWrite(world.clients, "other", named=False)
    assert unnamed.decide(0, nothing, encrypted=False) is None


def test_what_a_topic_had_is_forgotten(world: World) -> None:
    """It is dropped: a version may be written to the next one of its name."""
    topics = ["public/default/a", "public/default/b", None]
    for topic in topics:
        decide(world.write("app", topic), 7, small(world, topic=topic), encrypted=False)
    forget_writes(world.clients.storage, Topic.parse("public/default/a"))
    assert [world.write("app", one).latest() is None for one in topics] == [True, False, False]


@pytest.mark.parametrize(("call", "gone"), [("below", False), ("delete", True)])
def test_a_topic_that_is_dropped_while_the_storage_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch, call: str, gone: bool
) -> None:
    """Else one that is made again would skip versions that it never had, without a word."""
    topic = Topic.parse("public/default/a")
    decide(world.write("app", "public/default/a"), 7, small(world, topic="public/default/a"),
           encrypted=False)  # fmt: skip
    deleted: list[Topic] = []
    monkeypatch.setattr(world, "delete", deleted.append, raising=False)

    def away(*of: object) -> None:
        raise UnavailableError("the storage does not answer")

    monkeypatch.setattr(Objects, call, away)
    with pytest.raises(UnavailableError) as caught:
        drop_topic(world.clients, topic)
    assert deleted == [topic] * gone
    assert ("~sink/*/public~2Fdefault~2Fa/" in (caught.value.hint or "")) is gone
    monkeypatch.undo()
    monkeypatch.setattr(world, "delete", deleted.append, raising=False)
    drop_topic(world.clients, topic)
    assert world.write("app", "public/default/a").latest() is None


def test_who_knows_it_forgets_it_too(world: World) -> None:
    """The driver that wrote to the topic, or another one, when it is dropped."""
    here, elsewhere = (world.write("app", "public/default/a") for _ in range(2))
    manifest, _ = decide(here, 7, small(world), encrypted=False)
    here.sent(manifest)
    decide(elsewhere, 7, small(world), encrypted=False)
    forget_writes(world.clients.storage, Topic.parse("public/default/a"))
    manifest, first = decide(elsewhere, 7, small(world), encrypted=False)
    assert (manifest.sent, first, manifest.partitions[0].before) == (False, True, -1)


def test_the_same_batch_into_two_topics(world: World) -> None:
    """Two writes, as foreachBatch names them; and a write that routes its rows is a third."""
    topics = ("public/default/a", "public/default/b", None)
    found = [world.write("app", topic) for topic in topics]
    staged = [small(world, topic=topic) for topic in topics]
    manifests = [
        decide(write, 7, one, encrypted=False) for write, one in zip(found, staged, strict=True)
    ]
    assert all(first for _, first in manifests)
    assert len({manifest.producer for manifest, _ in manifests}) == 3
    for write, (manifest, _), one in zip(found, manifests, staged, strict=True):
        assert decide(write, 7, one, encrypted=False) == (manifest, False)
    assert NamedWrite(world.clients, "app").latest() == manifests[2][0]


def test_what_many_tasks_have_inline_is_a_file(world: World) -> None:
    files = [world.staged(batches(8, first=8 * task, large=True)) for task in range(3)]
    inline = [world.staged(batches(2, first=24 + 2 * task, large=True)) for task in range(60)]
    assert all(one.path for one in files)
    assert not any(one.path for one in inline)
    manifest, _ = decide(world.write(), 0, [*files, *inline], encrypted=False)
    assert manifest.inline == b""
    assert len(manifest.files) == 4
    world.send(manifest, fresh=True)
    assert world.payloads() == [b"%d-%d" % (n, row) + NOISE for n in range(144) for row in range(3)]
    world.write().sent(manifest)
    assert names(world) == [version(0)]


def test_what_was_begun_is_sent_in_another_way(world: World) -> None:
    write = world.write()
    write.give_up(3)
    manifest, _ = decide(write, 3, large(world), encrypted=False)
    world.write().give_up(2)
    assert world.write().latest() == manifest
    write.give_up(3)
    assert names(world) == [version(3)]
    following, first = decide(world.write(), 4, small(world), encrypted=False)
    assert first
    assert following.producer != manifest.producer, "what of it has come need not be known"
    assert following.partitions[0].before == -1


@pytest.mark.parametrize(("days", "refused"), [(5.9, False), (6.1, True)])
def test_a_driver_whose_clock_is_years_behind_that_of_the_storage(
    world: World, days: float, refused: bool
) -> None:
    """Maintenance may delete what is old: the newest file shows how late it is."""
    old, new = world.staged(batches(8, large=True)), world.staged(batches(8, large=True))
    at = (world.directory / new.path).stat().st_mtime - 86_400 * days
    os.utime(world.directory / old.path, (at, at))
    write = NamedWrite(world.clients, APP, now=lambda: 0)
    if refused:
        with pytest.raises(UnavailableError, match="is gone, or will be soon"):
            write.decide(0, [old, new], encrypted=False)
    else:
        assert write.decide(0, [old, new], encrypted=False) is not None


def test_an_older_version_was_sent_long_ago(world: World) -> None:
    write = world.write()
    for number in (4, 5):
        manifest, _ = decide(write, number, small(world), encrypted=False)
        write.sent(manifest)
    for again in (write, world.write()):
        found, first = decide(again, 4, large(world), encrypted=False)
        assert not first
        assert (found.version, found.sent) == (5, True)
    assert names(world) == [version(5)]


def test_a_version_that_was_sent(world: World) -> None:
    write = world.write()
    manifest, _ = decide(write, 4, large(world), encrypted=False)
    write.sent(manifest)
    found, first = decide(world.write(), 4, large(world), encrypted=False)
    assert (found.sent, first) == (True, False)
    assert names(world) == [version(4)]


def test_a_driver_that_missed_what_followed(world: World) -> None:
    """It has looked before another decided and sent this version and the next."""
    late = world.write()
    assert late.latest() is None
    write = world.write()
    for number in (0, 1):
        manifest, _ = decide(write, number, small(world), encrypted=False)
        write.sent(manifest)
    found, first = decide(late, 0, large(world), encrypted=False)
    assert not first, "it would be sent again, by ids that others have got meanwhile"
    assert (found.version, found.sent) == (1, True)
    assert names(world) == [version(1)]
    assert late.latest() == found


def test_drivers_that_take_turns(world: World) -> None:
    """Each has a write of its own, which does not know what the other has sent meanwhile."""
    drivers = [world.write(), world.write()]
    for number in range(6):
        write = drivers[number % 2]
        manifest, first = decide(write, number, small(world), encrypted=False)
        assert first
        assert manifest.partitions[0].first == FIRST_ID + 6 * number
        world.send(manifest, fresh=True)
        write.sent(manifest)
    assert len(world.topic.stored) == 12


@pytest.mark.parametrize("version_of_late", [1, 2])
@pytest.mark.parametrize("finished", [True, False])
def test_another_decides_between_a_look_and_a_put(
    world: World, monkeypatch: pytest.MonkeyPatch, version_of_late: int, finished: bool
) -> None:
    write = world.write()
    manifest, _ = decide(write, 0, small(world), encrypted=False)
    write.sent(manifest)
    late, staged = world.write(), large(world)
    real = Objects.put_if_absent

    def meanwhile(objects: Objects, path: str, data: bytes) -> bool:
        monkeypatch.setattr(Objects, "put_if_absent", real)
        for number in (1, 2) if finished and version_of_late == 1 else (1,):
            other = world.write()
            manifest, _ = decide(other, number, small(world), encrypted=False)
            if finished:
                other.sent(manifest)
        return real(objects, path, data)

    monkeypatch.setattr(Objects, "put_if_absent", meanwhile)
    if version_of_late == 2 and not finished:
        with pytest.raises(ConfigurationError, match="version 1 of the write"):
            decide(late, 2, staged, encrypted=False)
        return
    found, first = decide(late, version_of_late, staged, encrypted=False)
    if version_of_late == 1:
        assert not first
        assert (found.version, found.sent) == ((2, True) if finished else (1, False))
        assert files(world) == 0
    else:
        assert first
        assert (found.version, found.partitions[0].first) == (2, FIRST_ID + 12)
        assert files(world) == 1


def test_a_version_that_was_not_finished(world: World) -> None:
    write = world.write()
    manifest, _ = decide(write, 0, large(world), encrypted=False)
    with pytest.raises(ConfigurationError, match="version 0 of the write orders-query was begun"):
        decide(world.write(), 1, small(world), encrypted=False)
    assert world.write().latest() == manifest
    write.sent(manifest)
    _, first = decide(world.write(), 1, small(world), encrypted=False)
    assert first


def test_what_is_sent_is_deleted_and_what_is_staged_for_the_next_is_not(world: World) -> None:
    write = world.write()
    manifest, _ = decide(write, 0, large(world), encrypted=False)
    following = large(world)
    write.sent(manifest)
    assert names(world) == sorted([version(0), Path(following[0].path).name])
    decide(write, 1, following, encrypted=False)
    assert names(world)[:2] == [version(0), version(1)]


def test_a_write_that_is_forgotten(world: World) -> None:
    write = world.write()
    write.forget()
    manifest, _ = decide(write, 0, large(world), encrypted=False)
    write.sent(manifest)
    write.forget()
    assert names(world) == []
    assert world.write().latest() is None


def test_writes_do_not_meet(world: World) -> None:
    for app in ("a", "a/b", "ab", "~", "..", "ä b", "a~2Fb"):
        write = world.write(app)
        assert write.latest() is None
        manifest, first = decide(write, 0, small(world), encrypted=False)
        assert first
        assert manifest.producer.startswith(f"pulsar-lake-{app}-")
    assert {one.name for one in world.directory.iterdir()} == {"~sink"}
    world.write("a").forget()
    assert world.write("ab").latest() is not None


def test_versions_have_any_number_of_digits(world: World) -> None:
    write = world.write()
    for number in (9, 10, 99, 10**9, (1 << 62) - 1):
        manifest, first = decide(write, number, small(world), encrypted=False)
        assert first
        write.sent(manifest)
        write = world.write()
        assert write.latest() is not None
        assert write.latest().version == number  # type: ignore[union-attr]


def test_other_files_in_the_directory(world: World) -> None:
    directory = world.directory / "~sink" / APP
    directory.mkdir(parents=True)
    for name in ("x", "1.manifest", "00000000000000000001.manifest.tmp"):
        (directory / name).write_bytes(b"")
    assert world.write().latest() is None


def test_a_manifest_that_is_damaged(world: World) -> None:
    write = world.write()
    decide(write, 0, small(world), encrypted=False)
    (world.directory / "~sink" / APP / version(0)).write_bytes(b"\x05\x00\x00\x00{}")
    with pytest.raises(CorruptError, match=version(0)):
        world.write().latest()


def test_a_planted_manifest_deletes_and_sends_nothing(world: World) -> None:
    """Of one who may write below ``~sink/`` alone: the write ends with an error."""
    victim = world.directory / "public/default/orders/_delta_log/0.json"
    victim.parent.mkdir(parents=True)
    victim.write_bytes(b"log")
    manifest, _ = decide(world.write(), 0, small(world), encrypted=False)
    planted = replace(manifest, files=["public/default/orders/_delta_log/0.json"])
    (world.directory / manifest.path).write_bytes(planted.to_bytes())
    for write in (world.write(), world.write(named=False)):
        with pytest.raises(CorruptError, match="which is not its own"):
            write.decide(0, small(world), encrypted=False)
        with pytest.raises(CorruptError, match="which is not its own"):
            write.give_up(0)
    assert victim.exists()


# -- sent, through all of it -----------------------------------------------------------------------


def test_what_is_decided_is_sent_whoever_sends_it(world: World) -> None:
    manifest, first = decide(world.write(), 0, large(world), encrypted=False)
    world.send(manifest, fresh=first)
    found, first = decide(world.write(), 0, small(world, 5), encrypted=False)
    world.send(found, fresh=first)
    assert [row["payload"][:3] for row in world.rows()] == [
        b"%d-%d" % (number, row) for number in range(8) for row in range(3)
    ]
    world.write().sent(found)
    manifest, first = decide(world.write(), 1, small(world), encrypted=False)
    world.send(manifest, fresh=first)
    assert [row["__sequenceId"] for row in world.rows()] == list(range(FIRST_ID, FIRST_ID + 30))


def test_another_run_has_sent_it_meanwhile(world: World) -> None:
    manifest, _ = decide(world.write(), 0, large(world), encrypted=False)
    world.send(manifest, fresh=True)
    world.write().sent(manifest)
    with pytest.raises(UnavailableError) as caught:
        world.send(manifest, fresh=False)
    assert caught.value.hint is not None
    assert "another run of the same write has sent it" in caught.value.hint
    assert len(world.topic.stored) == 8
