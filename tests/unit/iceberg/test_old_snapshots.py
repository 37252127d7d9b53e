"""What expires and what is deleted: never what a snapshot still refers to."""

import time
from pathlib import Path

import pytest

from offloader.iceberg import snapshots
from offloader.iceberg.storage_files import path_of
from offloader.iceberg.unused_metadata import remove_unused
from reader.errors import UnavailableError
from tests.support.iceberg import IDENTIFIER, iceberg_rows, iceberg_table
from tests.support.steps import at_step, once
from tests.support.tables import TOPIC, all_rows, make_older
from tests.unit.iceberg.worlds import World

HOUR_MS = 3_600_000
KILLED = {
    "c0ffee00-0000-4000-8000-000000000000-m0.avro",
    "snap-7-0-c0ffee00-0000-4000-8000-000000000000.avro",
    "00077-c0ffee00-0000-4000-8000-000000000000.metadata.json",
    "00077-c0ffee00-0000-4000-8000-000000000000.gz.metadata.json",
}
"""What an attempt that was killed may have left."""


def metadata_names(world: World) -> set[str]:
    return {one.name for one in (world.directory / "~iceberg").rglob("*") if one.is_file()}


def parquet_of_snapshots(world: World) -> set[str]:
    """Names of the Parquet files of all snapshots that are left."""
    table = iceberg_table(world.storage, world.config)
    found = set()
    for one in table.metadata.snapshots:
        for task in table.scan(snapshot_id=one.snapshot_id).plan_files():
            found.add(path_of(world.storage, task.file.file_path).rpartition("/")[2])
    return found


def compact(world: World) -> None:
    """Replace three files by one, with a window of a day, and follow."""
    for ledger in (1, 2, 3):
        world.fill(ledger)
    world.follow()
    world.maintainer(vacuum_after="1d").maintain(TOPIC)
    world.follower = world.another(vacuum_after="1d")
    world.follow()


def require_files_of_snapshots(world: World) -> None:
    there = {one.name for one in world.directory.rglob("*.parquet")}
    assert parquet_of_snapshots(world) <= there


def test_a_superseded_snapshot_is_kept_for_a_while(world: World) -> None:
    for ledger in (1, 2, 3):
        world.fill(ledger)
        world.follow()
    world.ahead_ms = 23 * HOUR_MS
    assert world.follow().idle
    world.ahead_ms = 25 * HOUR_MS
    assert world.follow().expired == 2
    assert world.versions() == [3]
    world.check()


def test_one_is_kept_from_when_it_was_superseded_not_from_when_it_was_made(world: World) -> None:
    world.fill(1)
    world.follow()
    world.ahead_ms = 100 * HOUR_MS
    world.follow()
    assert world.versions() == [1]


def test_one_that_was_made_long_ago_and_superseded_just_now(world: World) -> None:
    world.fill(1)
    world.follow()
    world.fill(2)
    world.follow()
    table = iceberg_table(world.storage, world.config)
    one, after = table.metadata.snapshots
    old = one.model_copy(update={"timestamp_ms": one.timestamp_ms - 100 * HOUR_MS})
    table.metadata = table.metadata.model_copy(update={"snapshots": [old, after]})
    assert snapshots.superseded(table, after.timestamp_ms - HOUR_MS) == []
    assert snapshots.superseded(table, after.timestamp_ms + HOUR_MS) == [old]


def test_one_whose_successor_came_late_counts_from_the_delta_commit(world: World) -> None:
    """Iceberg was away for a day and a half: what vacuum counts from is Delta's commit."""
    world.fill(1)
    world.follow()
    world.fill(2)
    late = 36 * HOUR_MS
    world.follow()
    table = iceberg_table(world.storage, world.config)
    one, after = table.metadata.snapshots
    later = after.model_copy(update={"timestamp_ms": after.timestamp_ms + late})
    moved = table.metadata.model_copy(update={"snapshots": [one, later]})
    table.metadata = moved
    assert snapshots.superseded(table, after.timestamp_ms + HOUR_MS) == [one]
    assert snapshots.superseded(table, one.timestamp_ms - HOUR_MS) == []


def test_tags_stay(world: World) -> None:
    world.fill(1)
    world.follow()
    with world.opened() as catalog:
        table = catalog.load_table(IDENTIFIER)
        first = table.current_snapshot()
        assert first is not None
        with table.manage_snapshots() as named:
            named.create_tag(first.snapshot_id, "kept")
    world.fill(2)
    world.follow()
    world.ahead_ms = 50 * HOUR_MS
    world.follow()
    assert world.versions() == [1, 2]


def test_there_are_not_too_many(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offloader.iceberg.snapshots.MOST_SNAPSHOTS", 2)
    for ledger in range(1, 6):
        world.fill(ledger)
        world.follow()
    assert world.versions() == [3, 4, 5]  # as the next commit finds them
    world.check()


@pytest.mark.usefixtures("small")
def test_vacuum_deletes_nothing_that_a_snapshot_has(world: World) -> None:
    """At any time in two windows, with a turn of Iceberg's before each vacuum."""
    compact(world)
    deleted = 0
    for _ in range(6):
        make_older(world.directory, 0.26)
        world.ahead_ms += int(0.26 * 24 * HOUR_MS)
        world.follow()
        world.ahead_ms, kept = 0, world.ahead_ms
        deleted += world.maintainer(vacuum_after="1d").maintain(TOPIC, vacuum=True).vacuumed
        world.ahead_ms = kept
        require_files_of_snapshots(world)
    assert deleted == 3
    world.check()


@pytest.mark.usefixtures("small")
def test_vacuum_waits_for_a_catalog_that_is_away(world: World) -> None:
    """Iceberg's last turn was at 0.8 of the window, and a vacuum comes at 1.1."""
    compact(world)
    make_older(world.directory, 0.8)
    world.ahead_ms = int(0.8 * 24 * HOUR_MS)
    world.follow()
    make_older(world.directory, 0.3)
    world.ahead_ms = 0
    assert world.maintainer(vacuum_after="1d").maintain(TOPIC, vacuum=True).vacuumed == 3
    require_files_of_snapshots(world)


@pytest.mark.usefixtures("small")
def test_unused_metadata_is_deleted_and_nothing_else(world: World) -> None:
    for ledger in range(1, 6):
        world.fill(ledger)
        world.follow()
    world.maintainer().maintain(TOPIC)
    world.follow()
    metadata = world.directory / "~iceberg/pulsar_lake/public/default/orders/metadata"
    for name in ("notes.avro", *KILLED):
        (metadata / name).write_text("mine")
    make_older(world.directory / "~iceberg", 3)
    world.fill(6)
    world.follow()
    assert world.follow(clean=True).cleaned == len(KILLED)  # snapshots refer to the others
    before = metadata_names(world)
    assert before.isdisjoint(KILLED)
    world.ahead_ms = 25 * HOUR_MS
    result = world.follow(clean=True)
    after = metadata_names(world)
    assert (result.expired, result.cleaned) == (6, len(before - after))
    assert result.cleaned >= 10  # of each snapshot a list, and of most a manifest
    assert "notes.avro" in after
    world.check()
    assert iceberg_rows(iceberg_table(world.storage, world.config)) == all_rows(world.storage)


def test_a_clean_up_that_fails_holds_up_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: object, **named: object) -> int:
        raise UnavailableError("nothing may be deleted here")

    monkeypatch.setattr("offloader.iceberg.follower.remove_unused", refused)
    world.fill(1)
    with pytest.raises(UnavailableError, match="deleted here"):
        world.follow()
    for ledger in (2, 3):
        world.fill(ledger)
        assert world.follow().added == 1
    world.check()


def test_a_clock_that_is_ahead_costs_no_commit_that_is_on_its_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second offloader's clock is 30 hours ahead: it commits, and later it cleans up."""
    world.fill(1)
    world.follow()
    world.fill(2)
    real, ahead = time.time, 30 * 3600
    other = world.another(clock_ms=lambda: int((real() + ahead) * 1000))
    with monkeypatch.context() as patched:
        patched.setattr("time.time", lambda: real() + ahead)
        other.follow(TOPIC)
    world.fill(3)

    def cleaned() -> None:
        directory = "~iceberg/pulsar_lake/public/default/orders/metadata"
        with world.opened() as catalog:
            remove_unused(
                world.storage,
                directory,
                lambda: catalog.load_table(IDENTIFIER),
                before_ms=int((real() + ahead) * 1000),
                raise_if_stopped=lambda: None,
            )

    world.ahead_ms = ahead * 1000
    with at_step("iceberg-written", once(cleaned)):
        world.another().follow(TOPIC)
    world.check()


def test_what_a_killed_attempt_has_left_is_deleted_later(world: World) -> None:
    world.fill(1)
    world.follow()
    world.fill(2)

    def die() -> None:
        raise KeyboardInterrupt

    before = metadata_names(world)
    with pytest.raises(KeyboardInterrupt), at_step("iceberg-written", once(die)):
        world.another().follow(TOPIC)
    left = metadata_names(world) - before
    assert len(left) == 2  # a manifest and a list of them
    world.follow()
    assert left < metadata_names(world)
    make_older(world.directory / "~iceberg", 3)
    world.fill(3)
    world.follow()
    assert world.another().follow(TOPIC, clean=True).cleaned >= 2
    assert not left & metadata_names(world)
    world.check()


def test_what_was_being_written_to_hdfs_is_deleted_later(world: World) -> None:
    """It shows unfinished files, under names beside their places."""
    world.fill(1)
    world.follow()
    directory = world.directory / "~iceberg/pulsar_lake/public/default/orders/metadata"
    left = [f"{directory}/.{name}.tmp.0af3" for name in ("v2.metadata.json", "version-hint.text")]
    for one in left:
        Path(one).write_text("{")
    assert world.another().follow(TOPIC, clean=True).cleaned == 0
    make_older(world.directory / "~iceberg", 3)
    world.fill(2)
    world.follow()
    assert world.another().follow(TOPIC, clean=True).cleaned == 2
    assert not metadata_names(world) & {Path(one).name for one in left}
    world.check()
