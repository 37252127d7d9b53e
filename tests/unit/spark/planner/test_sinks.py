"""What the planner answers of writes: commit, sent, abort, in any order."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reader.errors import ConfigurationError, NotFoundError, UnavailableError
from reader.model import Partition, Topic
from reader.sink import NamedWrite, StagedFile
from spark_ext.planner.protocol import (
    AbortWrite,
    CommitWrite,
    CreateTopic,
    OpenWrite,
    Sending,
    Write,
    WriteState,
)
from spark_ext.planner.sinks import SINK, Sinks
from tests.unit.decode.entries import PARTITION
from tests.unit.sink.worlds import World, batches

NOTHING = StagedFile("", b"", {}, 0, {})
PLACE = "public/default/t"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made


@pytest.fixture
def sinks(world: World, monkeypatch: pytest.MonkeyPatch) -> Sinks:
    monkeypatch.setattr("reader.sink.require_deduplication", lambda *of, enable: None)
    return Sinks(lambda config: world.clients)


def named(
    app: str = "nightly", version: int = 7, place: str | None = PLACE, **options: str
) -> Write:
    """Return what ``open`` answers to a batch with a name; with version 0 to a stream."""
    return Write(options, place, app, place, True, version, None)


def unnamed(sinks: Sinks, world: World, place: str = PLACE) -> Write:
    """Return what ``open`` answers to a batch without one."""
    one = sinks._taken(None, world.clients, place)  # noqa: SLF001 - ``open`` asks brokers
    state = WriteState(**one.state())
    return Write({}, place, one.app, place, False, state.version + 1, state)


def messages(*staged: StagedFile) -> tuple[bytes, ...]:
    return tuple(pickle.dumps(one) for one in staged)


def commit(sinks: Sinks, write: Write, epoch: int | None, *staged: StagedFile) -> Sending:
    return sinks.commit(None, CommitWrite(write, epoch, messages(*staged)))


def abort(sinks: Sinks, write: Write, decided: bool, *staged: StagedFile) -> None:
    sinks.abort(None, AbortWrite(write, decided, messages(*staged)))


def staged(world: World, write: Write, *, large: bool = False, first: int = 0) -> StagedFile:
    directory = NamedWrite(world.clients, write.app, write.place).directory
    place = write.place
    found = world.staged(
        batches(8 if large else 4, first=first, large=large),
        directory=directory,
        partition=PARTITION if place is None else Partition(Topic.parse(place), -1),
    )
    assert bool(found.path) is large
    return found


def files(world: World) -> list[str]:
    return sorted(one.name for one in world.directory.rglob("*") if one.is_file())


def sending(answer: Sending) -> bool:
    return answer.tasks is not None


def test_a_batch_with_a_name_is_sent_once(sinks: Sinks, world: World) -> None:
    write = named()
    assert sending(commit(sinks, write, None, staged(world, write, large=True)))
    sinks.sent(None, write, None)
    assert files(world) == [f"{7:020d}.manifest"]
    again = commit(sinks, write, None, staged(world, write, large=True, first=9))
    assert not sending(again)
    assert files(world) == [f"{7:020d}.manifest"]


def test_the_same_name_and_number_into_two_topics(sinks: Sinks, world: World) -> None:
    """In foreachBatch, or by a copied checkpoint: each of them gets its rows, and the next ones."""
    for version in (7, 8):
        for place in ("public/default/a", "public/default/b", None):
            write = named(place=place, version=version)
            assert sending(commit(sinks, write, None, staged(world, write)))
            sinks.sent(None, write, None)
            assert not sending(commit(sinks, write, None, staged(world, write)))


def test_what_was_begun_is_finished_though_there_are_no_rows_any_more(
    world: World, sinks: Sinks
) -> None:
    write = named()
    assert sending(commit(sinks, write, None, staged(world, write)))
    later = Sinks(lambda config: world.clients)
    assert sending(commit(later, write, None, NOTHING))
    later.sent(None, write, None)
    assert not sending(commit(later, named(version=8), None, NOTHING))
    assert files(world) == [f"{8:020d}.manifest"]


@pytest.mark.parametrize("name", ["t$compacted", "t$tiers=broker", "t$hot@x", "t$cold@1"])
def test_what_is_only_read(sinks: Sinks, name: str) -> None:
    with pytest.raises(NotFoundError):
        sinks.describe(None, "public/default", name)
    with pytest.raises(ConfigurationError, match="is read as something else than a topic"):
        sinks.describe(None, "public/default", name + SINK)
    with pytest.raises(ConfigurationError, match="is read as something else than a topic"):
        sinks.create(None, CreateTopic("public/default", name, "{}", {}))
    with pytest.raises(ConfigurationError, match="is read as something else than a topic"):
        sinks.drop(None, "public/default", name)


def test_a_commit_that_is_cancelled_and_goes_on(sinks: Sinks, world: World) -> None:
    """Spark aborts while the planner decides: what is staged is needed from then on."""
    write = named(version=0)
    one = staged(world, write, large=True)
    abort(sinks, write, True)
    assert sending(commit(sinks, write, 0, one))
    abort(sinks, write, True)
    assert len(files(world)) == 2
    assert (world.directory / one.path).exists()


def test_a_name_whose_commit_was_cancelled_is_nobodys(sinks: Sinks, world: World) -> None:
    first = unnamed(sinks, world)
    abort(sinks, first, True)
    second = unnamed(sinks, world)
    assert first.app != second.app
    assert sending(commit(sinks, first, None, staged(world, first)))
    assert sending(commit(sinks, second, None, staged(world, second)))


def test_a_write_that_fails_before_it_is_decided(sinks: Sinks, world: World) -> None:
    write = unnamed(sinks, world)
    abort(sinks, write, False, staged(world, write, large=True), NOTHING)
    assert files(world) == []
    assert unnamed(sinks, world).app == write.app


def test_names_are_taken_in_turn(sinks: Sinks, world: World) -> None:
    """As few as there are writes at once, each with ids that go on; another topic has its own."""
    apps = set()
    before = -1
    for number in range(3):
        write = unnamed(sinks, world)
        apps.add(write.app)
        answer = commit(sinks, write, None, staged(world, write))
        assert sending(answer)
        found = NamedWrite(world.clients, write.app, PLACE).latest()
        assert found is not None
        [entries] = found.partitions
        assert entries.before == before
        assert (found.version, entries.first > entries.before) == (number, True)
        before = entries.first + entries.ids - 1
        sinks.sent(None, write, None)
        assert files(world) == []
    assert len(apps) == 1
    other = unnamed(sinks, world, "public/default/other")
    assert other.app not in apps
    one, two = unnamed(sinks, world), unnamed(sinks, world)
    assert one.app != two.app


def test_a_planner_that_is_started_again_goes_on_with_the_ids(sinks: Sinks, world: World) -> None:
    """Of a write without a name nothing is kept, and its next batch has begun before."""
    first = unnamed(sinks, world)
    commit(sinks, first, None, staged(world, first))
    found = NamedWrite(world.clients, first.app, PLACE).latest()
    assert found is not None
    sinks.sent(None, first, None)
    second = unnamed(sinks, world)
    another = Sinks(lambda config: world.clients)
    assert sending(commit(another, second, None, staged(world, second)))
    manifest = NamedWrite(world.clients, second.app, PLACE).latest()
    assert manifest is not None
    assert (manifest.version, manifest.producer) == (1, found.producer)
    [before], [entries] = found.partitions, manifest.partitions
    assert entries.before == before.first + before.ids - 1


def test_a_batch_without_rows_gives_its_name_back(sinks: Sinks, world: World) -> None:
    write = unnamed(sinks, world)
    assert not sending(commit(sinks, write, None, NOTHING))
    assert unnamed(sinks, world).app == write.app


def test_what_cannot_be_deleted_costs_the_name_alone(
    sinks: Sinks, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows are sent: an error would have them sent once more."""
    write = unnamed(sinks, world)
    commit(sinks, write, None, staged(world, write))

    def fails(*arguments: object) -> None:
        raise UnavailableError("the storage does not answer")

    monkeypatch.setattr(world.clients.storage.objects(), "delete", fails)
    sinks.sent(None, write, None)
    assert unnamed(sinks, world).app != write.app


def test_a_stream_goes_on_at_least_once_and_back(sinks: Sinks, world: World) -> None:
    """Where what has arrived cannot be told: what was begun is taken for sent."""
    write = named(app="query", version=0, place=None)
    assert sending(commit(sinks, write, 3, staged(world, write, large=True)))
    loose = named(app="query", version=0, place=None, delivery="at-least-once")
    assert not sending(commit(sinks, loose, 3, NOTHING))
    assert not sending(commit(sinks, loose, 4, NOTHING))
    assert sending(commit(sinks, write, 5, staged(world, write)))
    found = NamedWrite(world.clients, "query").latest()
    assert found is not None
    [entries] = found.partitions
    assert (found.version, entries.before) == (5, -1), "under a new name"


def test_deduplication_is_required_before_anything_is_decided(
    sinks: Sinks, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def refused(clients: Any, topic: Any, *, enable: bool) -> None:
        asked.append((str(topic), enable))
        if len(asked) == 1:
            raise ConfigurationError("deduplication is off")

    monkeypatch.setattr("reader.sink.require_deduplication", refused)
    write = named(app="query", version=0, place=None, enableDeduplication="false")
    one = staged(world, write, large=True)
    with pytest.raises(ConfigurationError, match="deduplication is off"):
        commit(sinks, write, 0, one)
    assert NamedWrite(world.clients, "query").latest() is None
    assert sending(commit(sinks, write, 0, one))
    sinks.sent(None, write, 0)
    assert sending(commit(sinks, write, 1, staged(world, write)))
    assert asked == [(str(PARTITION.topic), False)] * 2


@pytest.mark.parametrize(
    ("config", "options", "refused"),
    [
        ("file", {}, False),
        ("file", {"config": "file"}, False),
        ("file", {"CONFIG": "other"}, True),
        (None, {"config": "file"}, True),
        (None, {"configs": "file"}, False),
    ],
)
def test_a_write_chooses_no_settings(
    sinks: Sinks, config: str | None, options: dict[str, str], refused: bool
) -> None:
    question = OpenWrite(None, {**options, "nonsense": ""}, '{"fields": []}', "q", False)
    wrong = "cannot be chosen by an option" if refused else "nonsense|config"
    with pytest.raises(ConfigurationError, match=wrong) as raised:
        sinks.open(config, question)
    if refused:
        assert (
            raised.value.hint
            == "leave it out: they are the catalog's, which are set before Spark starts"
        )
    else:
        assert "chosen" not in str(raised.value)
