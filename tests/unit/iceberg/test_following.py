"""What a Delta table goes through, its Iceberg table goes through, with the same rows."""

import pyarrow as pa
import pytest

from reader.errors import UnsupportedError
from tests.support.additions import FIELDS, PUBLISHED
from tests.support.iceberg import IDENTIFIER, iceberg_rows, iceberg_table
from tests.support.tables import DAY_US, TOPIC, all_rows, now_us
from tests.unit.iceberg.worlds import World


def test_without_a_table_there_is_nothing_to_follow(world: World) -> None:
    result = world.follow()
    assert (result.version, result.idle) == (None, True)
    assert not (world.directory / "~iceberg").exists()


def test_a_table_comes_with_its_rows(world: World) -> None:
    """No reader ever sees it empty: all that there ever was of it is one version, with rows."""
    world.fill(1, 2)
    assert world.follow().added == 2
    names = [one.name for one in (world.directory / "~iceberg").rglob("*.metadata.json")]
    assert len(names) == 1
    table = iceberg_table(world.storage, world.config)
    assert len(table.metadata.metadata_log) == 0
    assert table.metadata.snapshots[0].parent_snapshot_id is None
    assert len(iceberg_rows(table)) == 20
    assert "schema.name-mapping.default" in table.properties


def test_appends(world: World) -> None:
    for ledgers in ([1], [2, 3, 4], [5]):
        world.fill(*ledgers)
        result = world.follow()
        assert (result.version, result.added, result.removed) == (
            world.delta_version,
            len(ledgers),
            0,
        )
        world.check()
    assert world.versions() == [1, 2, 3]


def test_commits_that_came_together_are_one_snapshot(world: World) -> None:
    world.fill(1)
    world.follow()
    for ledger in (2, 3, 4):
        world.fill(ledger)
    assert world.follow().added == 3
    world.check()
    assert world.versions() == [1, 4]


def test_what_is_followed_already_is_no_commit(world: World) -> None:
    world.fill(1)
    first = world.follow()
    before = iceberg_table(world.storage, world.config).metadata_location
    second = world.follow()
    assert (first.idle, second.idle, second.version) == (False, True, 1)
    assert iceberg_table(world.storage, world.config).metadata_location == before


def test_a_commit_without_files_moves_the_version(world: World) -> None:
    world.fill(1)
    world.follow()
    world.fill_empty(2)
    result = world.follow()
    assert (result.version, result.added, result.idle) == (2, 0, False)
    world.check()
    assert world.versions() == [1, 2]


def test_columns_and_members_of_structs_that_are_new(world: World) -> None:
    world.fill(1)
    world.follow()
    for ledger, names in ((2, "x"), (3, "xy")):
        members = [pa.field(one, pa.int64()) for one in names]
        world.fill(ledger, fields=pa.schema([*FIELDS, pa.field("at", pa.struct(members))]))
        world.follow()
        world.check()
        assert world.follow().idle
    table = iceberg_table(world.storage, world.config)
    assert str(table.schema().find_type("at.y")) == "long"
    assert table.scan(selected_fields=("at",)).to_arrow().num_rows == 30


def test_rows_with_nan_and_null_are_found(world: World) -> None:
    world.fill(1, 2)
    world.follow()
    table = iceberg_table(world.storage, world.config)
    assert table.scan("amount is nan").to_arrow().num_rows == 8
    assert table.scan("amount > 7").to_arrow().num_rows == 2  # beside NaN, two files' 8.0
    assert table.scan("__key is null").to_arrow().num_rows == 20
    assert table.scan("__eventTime is not null").to_arrow().num_rows == 0


@pytest.mark.usefixtures("small")
def test_compaction(world: World) -> None:
    for ledger in range(1, 6):
        world.fill(ledger)
    world.follow()
    before = all_rows(world.storage)
    assert world.maintainer().maintain(TOPIC).compacted == 5
    result = world.follow()
    assert (result.added, result.removed) == (1, 5)
    world.check()
    assert all_rows(world.storage) == before
    world.fill(6)
    assert world.follow().added == 1
    world.check()


@pytest.mark.usefixtures("small")
def test_new_rows_that_come_with_compaction_are_an_overwrite(world: World) -> None:
    """Who reads appended rows alone, as a Spark stream that skips overwrites, misses them."""
    world.fill(1)
    world.fill(2)
    world.follow()
    world.fill(3)
    assert world.maintainer().maintain(TOPIC).compacted == 3
    world.follow()
    world.check()
    snapshots = iceberg_table(world.storage, world.config).metadata.snapshots
    said = [one.summary for one in snapshots if one.summary]
    assert [one.operation.value for one in said] == ["append", "overwrite"]
    assert said[0].additional_properties["added-records"] == "20"
    assert len(all_rows(world.storage)) == 30


@pytest.mark.usefixtures("small")
def test_manifests_do_not_grow_in_number(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit lists them all, and each reader's plan opens them all."""
    monkeypatch.setattr("pyiceberg.table.TableProperties.MANIFEST_MIN_MERGE_COUNT_DEFAULT", 3)
    for ledger in range(1, 6):
        world.fill(ledger)
        world.follow()
    table = iceberg_table(world.storage, world.config)
    snapshots = table.metadata.snapshots
    assert all(len(one.manifests(table.io)) <= 3 for one in snapshots)
    world.check()
    for rows, one in enumerate(snapshots, start=1):
        assert table.scan(snapshot_id=one.snapshot_id).to_arrow().num_rows == 10 * rows
    assert len(list(table.scan("__ledgerId = 5").plan_files())) == 1
    world.maintainer().maintain(TOPIC)
    world.fill(6)
    assert world.follow().removed == 5
    world.check()


def test_expiry_of_whole_files_and_of_parts(world: World) -> None:
    now = now_us()
    world.fill(1, 2, published=[now - 30 * DAY_US, now])
    world.follow()
    maintainer = world.maintainer(retention="7d")
    assert maintainer.maintain(TOPIC).expired_files == 1
    result = world.follow()
    assert (result.added, result.removed) == (0, 1)
    world.check()


def test_only_files_that_may_hold_rows_are_planned(world: World) -> None:
    world.fill(*range(1, 21), published=[PUBLISHED + one * DAY_US for one in range(20)])
    world.follow()
    table = iceberg_table(world.storage, world.config)

    def planned(where: str) -> int:
        return len(list(table.scan(where).plan_files()))

    assert planned("__ledgerId = 7") == 1
    assert planned("__publishTime >= '2023-11-18T00:00:00+00:00'") < 20
    assert planned("__publishTime < '2023-11-16T00:00:00+00:00'") == 2
    assert planned("__key is not null") == 20  # no statistics
    assert planned("amount > 1000000") == 20  # none of floats
    for where, rows in (
        ("__ledgerId = 7", 10),
        ("__publishTime < '2023-11-16T00:00:00+00:00'", 20),
    ):
        assert table.scan(where).to_arrow().num_rows == rows


def test_columns_that_iceberg_cannot_have_are_an_error(world: World) -> None:
    both = [pa.field("at.x", pa.int64()), pa.field("at", pa.struct([("x", pa.int64())]))]
    world.fill(1, fields=pa.schema([*FIELDS, *both]))
    with pytest.raises(UnsupportedError, match=r"at\.x"):
        world.follow()


def test_the_table_is_not_the_engines_to_delete_from(world: World) -> None:
    world.fill(1)
    world.follow()
    properties = iceberg_table(world.storage, world.config).properties
    assert properties["gc.enabled"] == "false"
    assert properties["commit.retry.num-retries"] == "0"
    assert "schema.name-mapping.default" in properties


def test_a_property_that_was_taken_away_is_set_again(world: World) -> None:
    world.fill(1)
    world.follow()
    with world.opened() as catalog, catalog.load_table(IDENTIFIER).transaction() as change:
        change.remove_properties("commit.retry.num-retries")
    world.fill(2)
    world.follow()
    world.check()
    table = iceberg_table(world.storage, world.config)
    assert table.properties["commit.retry.num-retries"] == "0"
    assert iceberg_rows(table) == all_rows(world.storage)
