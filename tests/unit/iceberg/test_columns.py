"""Columns that another writer of the Iceberg table changes are as they were again."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import DoubleType, LongType, StringType

from tests.support.additions import FIELDS
from tests.support.iceberg import IDENTIFIER, iceberg_rows, iceberg_table
from tests.support.steps import at_step, once
from tests.support.tables import TOPIC, all_rows
from tests.unit.iceberg.worlds import World

DEEP = pa.schema(
    [
        *FIELDS,
        pa.field("at", pa.struct([("x", pa.int64()), ("y", pa.int32())])),
        ("few", pa.int32()),
    ]
)


def altered(world: World, alter: Callable[[UpdateSchema], object]) -> None:
    """By another engine."""
    with world.opened() as catalog:
        with catalog.load_table(IDENTIFIER).update_schema(
            allow_incompatible_changes=True
        ) as change:
            alter(change)


def names(table: Table) -> list[str]:
    return [one.name for one in table.schema().fields]


CHANGES: dict[str, Callable[[UpdateSchema], object]] = {
    "renames": lambda change: change.rename_column("amount", "price"),
    "drops": lambda change: change.delete_column("amount"),
    "adds": lambda change: change.add_column("mine", StringType()),
    "renames a member": lambda change: change.rename_column("at.x", "z"),
    "drops a member": lambda change: change.delete_column("at.y"),
    "widens": lambda change: change.update_column("few", LongType()),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_another_writer_does_to_columns(world: World, name: str) -> None:
    """With and without a commit to Delta since, and one that has new columns itself."""
    world.fill(1, fields=DEEP)
    world.follow()
    before = iceberg_table(world.storage, world.config)
    altered(world, CHANGES[name])
    result = world.follow()
    assert (result.restored, result.idle, result.added) == (True, False, 0)
    assert "another writer had changed its columns" in str(result)
    table = iceberg_table(world.storage, world.config)
    assert table.schema() == before.schema()
    assert table.properties == before.properties
    world.check()
    assert world.follow().idle

    altered(world, CHANGES[name])
    world.fill(2, fields=pa.schema([*DEEP, pa.field("later", pa.int64())]))
    result = world.follow()
    assert (result.restored, result.added) == (True, 1)
    assert names(iceberg_table(world.storage, world.config))[-1] == "later"
    world.check()
    assert world.follow().idle


def test_one_that_was_made_anew_by_its_name(world: World) -> None:
    """It has another id, by which nothing that there was is found."""
    world.fill(1)
    world.follow()
    before = iceberg_table(world.storage, world.config).schema()
    altered(world, CHANGES["drops"])
    altered(world, lambda change: change.add_column("amount", DoubleType()))
    assert world.follow().restored
    assert iceberg_table(world.storage, world.config).schema() == before
    world.check()


def test_older_versions_are_read_as_before(world: World) -> None:
    """The ids are the same again, so bounds still skip files and time travel still finds values."""
    for ledger in (1, 2):
        world.fill(ledger)
        world.follow()
    altered(world, CHANGES["drops"])
    world.fill(3)
    world.follow()
    table = iceberg_table(world.storage, world.config)
    first = table.metadata.snapshots[0].snapshot_id
    found = table.scan(snapshot_id=first, selected_fields=("amount",)).to_arrow()
    assert found.num_rows == 10
    assert found["amount"].null_count < 10
    assert len(list(table.scan("__ledgerId = 3").plan_files())) == 1


def test_also_where_another_writer_has_committed_rows_since(world: World) -> None:
    world.fill(1, 2)
    world.follow()
    altered(world, CHANGES["renames"])
    with world.opened() as catalog:
        table = catalog.load_table(IDENTIFIER)
        file = next(iter(table.scan().plan_files())).file
        with table.transaction() as change, change.update_snapshot().overwrite() as files:
            files.delete_data_file(file)
    result = world.follow()
    assert (result.restored, result.added) == (True, 1)
    assert iceberg_rows(iceberg_table(world.storage, world.config)) == all_rows(world.storage)
    world.check()


def test_what_is_said_of_columns_and_their_order_are_anybodys(world: World) -> None:
    world.fill(1)
    world.follow()

    def say(change: UpdateSchema) -> None:
        change.update_column("amount", doc="in euros")
        change.move_first("amount")

    altered(world, say)
    assert world.follow().idle
    world.fill(2, fields=DEEP)
    world.follow()
    table = iceberg_table(world.storage, world.config)
    assert table.schema().find_field("amount").doc == "in euros"
    assert names(table)[0] == "amount"
    assert sorted(map(normal, iceberg_rows(table))) == sorted(map(normal, all_rows(world.storage)))


def test_a_mapping_that_another_writer_has_changed(world: World) -> None:
    """By it readers find the columns, so it is not theirs."""
    world.fill(1)
    world.follow()
    before = iceberg_table(world.storage, world.config).properties

    def change(transaction: Transaction) -> None:
        transaction.set_properties({"schema.name-mapping.default": "[]"})

    with world.opened() as catalog, catalog.load_table(IDENTIFIER).transaction() as transaction:
        change(transaction)
    world.follow()
    assert iceberg_table(world.storage, world.config).properties == before
    world.check()


def normal(row: str) -> list[str]:
    """A row's text, whatever the order of its columns."""
    return sorted(row.strip("{}").split(", '"))


def test_two_put_them_back_at_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fill(1)
    world.follow()
    altered(world, CHANGES["renames"])
    world.fill(2)
    first = world.another()
    with at_step("iceberg-written", once(lambda: first.follow(TOPIC))):
        world.another().follow(TOPIC)
    world.check()
    assert world.versions() == [1, 2]
    world.close()
