"""From any distance: old tables, outages, logs that were cleaned up, tables that are others."""

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import TableFeatures

from offloader.iceberg import changes
from offloader.iceberg.data_files import data_file, delta_file
from offloader.iceberg.storage_files import location_of
from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnsupportedError
from reader.model import Topic
from reader.storage import open_storage
from reader.table import AddedFile
from tests.iceberg.typed_rows import fill_typed
from tests.support.additions import FIELDS, open_table
from tests.support.iceberg import IDENTIFIER, follower, iceberg_config, iceberg_rows, iceberg_table
from tests.support.tables import DAY_US, TOPIC, all_rows, now_us
from tests.unit.iceberg.worlds import World

DEEP = pa.schema([*FIELDS, pa.field("at", pa.struct([("x", pa.int64())]))])


@pytest.mark.usefixtures("small")
def test_switched_on_for_an_old_table(world: World) -> None:
    for ledger in range(1, 5):
        world.fill(ledger)
    world.maintainer().maintain(TOPIC)
    world.fill(5, fields=DEEP)
    result = world.follow()
    assert (result.before, result.version, result.added) == (None, world.delta_version, 2)
    world.check()
    assert world.versions() == [world.delta_version]


def behind_a_cleaned_log(world: World) -> None:
    """Two versions behind, and the log has only the newest of them."""
    world.fill(1)
    world.follow()
    world.fill(2)
    world.fill(3)
    open_table(world.storage, TOPIC).handle.create_checkpoint()
    for version in (0, 1, 2):
        (world.directory / f"public/default/orders/_delta_log/{version:020}.json").unlink()


def test_the_log_was_cleaned_up_meanwhile(world: World) -> None:
    behind_a_cleaned_log(world)
    result = world.follow()
    assert (result.before, result.version, result.added) == (1, 3, 2)
    world.check()


def test_how_long_it_is_behind_where_the_log_has_forgotten_the_commit(world: World) -> None:
    """Since the snapshot was made, about; not for no time at all."""
    behind_a_cleaned_log(world)
    world.ahead_ms = 40 * 24 * 3_600_000
    lag = world.follower.lag(TOPIC)
    assert lag is not None
    assert (lag.version, lag.versions) == (1, 2)
    assert lag.seconds > 39 * 24 * 3600


def test_more_commits_than_are_read_one_by_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offloader.iceberg.changes.MOST_COMMITS", 3)
    world.fill(1)
    world.follow()
    for ledger in range(2, 9):
        world.fill(ledger)
    assert changes.added_since(world.storage, TOPIC, world.shown()) is None
    assert world.follow().added == 7
    world.check()


def test_a_table_that_was_made_again_in_its_place(world: World) -> None:
    """The same version, and as many commits: only the commits' ids tell."""
    world.fill(1)
    world.fill(2)
    world.follow()
    shutil.rmtree(world.directory / "public")
    world.fill(7)
    world.fill(8)
    result = world.follow()
    assert (result.before, result.version, result.added, result.removed) == (2, 2, 2, 2)
    world.check()


def test_one_that_was_made_again_with_a_column_of_another_type(world: World) -> None:
    """Its rows cannot be in the same Iceberg table, and are not said to be."""
    world.fill(1, fields=pa.schema([*FIELDS, pa.field("extra", pa.int64())]))
    world.follow()
    before = world.versions()
    for kind in (pa.string(), pa.float64(), pa.struct([("x", pa.int64())]), pa.list_(pa.int64())):
        shutil.rmtree(world.directory / "public")
        world.fill(2, 3, fields=pa.schema([*FIELDS, pa.field("extra", kind)]))
        with pytest.raises(UnsupportedError, match="drop the Iceberg table"):
            world.follow()
    assert world.versions() == before
    with world.opened() as catalog:
        if world.config.catalog == "sql":
            catalog.drop_table(IDENTIFIER)
        else:
            shutil.rmtree(world.directory / "~iceberg")
    assert world.follow().added == 2
    world.check()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
        (pa.list_(pa.string()), pa.list_(pa.binary())),
        (pa.struct([("x", pa.binary())]), pa.struct([("x", pa.string())])),
    ],
    ids=str,
)
def test_text_and_bytes_are_not_each_other(
    tmp_path: Path, before: pa.DataType, after: pa.DataType
) -> None:
    """PyIceberg would read one as the other, and has no column to change."""
    world = World(tmp_path)
    world.fill(1, fields=pa.schema([*FIELDS, pa.field("extra", before)]))
    world.follow()
    shutil.rmtree(world.directory / "public")
    world.fill(2, 3, fields=pa.schema([*FIELDS, pa.field("extra", after)]))
    with pytest.raises(UnsupportedError, match=r"extra.* is .*, and now .*"):
        world.follow()
    assert world.versions() == [1]
    world.close()


def test_times_that_another_writer_has_rounded_down_are_found(tmp_path: Path) -> None:
    """delta-rs writes the maximum of times cut to milliseconds, as Delta allows."""
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    config = iceberg_config("sql", tmp_path)
    following = follower(storage, config)
    fill_typed(storage, 1)
    fill_typed(storage, 2)
    for optimized in (False, True):
        if optimized:
            open_table(storage, TOPIC).handle.optimize.compact()
        following.follow(TOPIC)
        table = iceberg_table(storage, config)
        found = table.scan("moment = '2026-02-28T23:59:59.999999+00:00'").to_arrow()
        assert found.num_rows == 2


def test_an_old_copy_of_the_table_was_put_back(world: World, tmp_path: Path) -> None:
    world.fill(1)
    shutil.copytree(world.directory / "public", tmp_path / "copy")
    world.fill(2)
    world.follow()
    shutil.rmtree(world.directory / "public")
    shutil.copytree(tmp_path / "copy", world.directory / "public")
    result = world.follow()
    assert (result.before, result.version, result.removed) == (2, 1, 1)
    world.check()


def test_a_restore_of_the_delta_table(world: World) -> None:
    world.fill(1)
    world.fill(2)
    world.follow()
    open_table(world.storage, TOPIC).handle.restore(1)
    assert world.follow().removed == 1
    world.check()
    open_table(world.storage, TOPIC).handle.restore(2)
    assert world.follow().added == 1
    world.check()


def test_an_iceberg_table_that_was_dropped_is_made_again(world: World) -> None:
    world.fill(1, 2)
    world.follow()
    with world.opened() as catalog:
        catalog.drop_table(IDENTIFIER)
        assert catalog.namespace_exists(IDENTIFIER[:-1])  # was made, as other catalogs need it
    assert world.follow().added == 2
    world.check()


def test_what_another_writer_did_to_the_files_is_put_right(world: World) -> None:
    world.fill(1, 2)
    world.follow()
    with world.opened() as catalog:
        table = catalog.load_table(IDENTIFIER)
        file = next(iter(table.scan().plan_files())).file
        stranger = data_file(
            delta_file(AddedFile("x.parquet", 7, "")),
            location_of(world.storage, "elsewhere/x.parquet"),
            1,
            table.schema(),
        )
        with table.transaction() as change, change.update_snapshot().overwrite() as files:
            files.delete_data_file(file)
            files.append_data_file(stranger)
    assert world.versions()[-1] is None
    result = world.follow()
    assert (result.added, result.removed) == (1, 1)
    world.check()


def test_a_file_that_another_writer_added_again(world: World) -> None:
    world.fill(1, 2)
    world.follow()
    with world.opened() as catalog:
        table = catalog.load_table(IDENTIFIER)
        file = next(iter(table.scan().plan_files())).file
        with table.transaction() as change, change.update_snapshot().fast_append() as files:
            files.append_data_file(file)
        assert len(iceberg_rows(table)) == 30
    world.follow()
    # PyIceberg's summary counts a file that is taken out once, however often it was there.
    assert iceberg_rows(iceberg_table(world.storage, world.config)) == all_rows(world.storage)


def test_two_topics_of_one_name_are_refused(tmp_path: Path) -> None:
    world = World(tmp_path, namespace="all", table="one")
    world.fill(1)
    world.follow()
    other = Topic("public", "default", "other")
    shutil.copytree(
        world.directory / "public/default/orders", world.directory / "public/default/other"
    )
    with pytest.raises(ConfigurationError, match=r"is not that of public/default/other.*orders"):
        world.follower.follow(other)
    world.close()


def test_a_table_whose_files_are_not_its_rows_is_refused(world: World) -> None:
    world.fill(1)
    world.follow()
    open_table(world.storage, TOPIC).handle.alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    with pytest.raises(UnsupportedError, match="deletionVectors"):
        world.follow()


def test_files_without_statistics_are_counted_by_their_footers(world: World) -> None:
    world.fill(1)
    world.follow()
    log = world.directory / "public/default/orders/_delta_log"
    world.fill(2)
    newest = log / f"{world.delta_version:020}.json"
    newest.write_text(
        "".join(
            line.replace('"stats":', '"other":') + "\n" for line in newest.read_text().splitlines()
        )
    )
    world.follow()
    world.check()


@pytest.mark.parametrize(
    "seed", [0, 1, 2, 3, *(pytest.param(one, marks=pytest.mark.long) for one in (4, 5))]
)
@pytest.mark.usefixtures("small")
def test_any_history_however_often_it_is_followed(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    world = World(tmp_path)
    ledger = 0
    members = ["x"]
    for _ in range(14):
        step = choose.choice(["fill", "fill", "fill", "empty", "grow", "compact", "expire"])
        ledger += 1
        if step == "fill":
            ages = [choose.choice([0, 20]) * DAY_US for _ in range(choose.randint(1, 3))]
            ledgers = range(ledger, ledger + len(ages))
            fields = pa.schema(
                [*FIELDS, pa.field("at", pa.struct([(m, pa.int64()) for m in members]))]
            )
            world.fill(*ledgers, fields=fields, published=[now_us() - one for one in ages])
            ledger = ledgers[-1]
        elif step == "empty" and ledger > 1 and (world.directory / "public").exists():
            world.fill_empty(ledger)
        elif step == "grow":
            members.append(f"m{len(members)}")
        elif step == "compact":
            world.maintainer().maintain(TOPIC)
        elif step == "expire":
            world.maintainer(retention="7d").maintain(TOPIC)
        if choose.random() < 0.6 and world.follow().version is not None:
            world.check()
    world.follow()
    world.check()
    assert all_rows(world.storage)
    world.close()
