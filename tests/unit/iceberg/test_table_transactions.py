"""Transactions that compute metadata once for each change have the metadata that PyIceberg has."""

import pytest
from pyiceberg.table import Transaction
from pyiceberg.table.update import update_table_metadata

from offloader.iceberg.table_transactions import ChangingTransaction
from tests.support.iceberg import IDENTIFIER
from tests.unit.iceberg.worlds import World


def test_each_change_is_seen(world: World) -> None:
    world.fill(1)
    world.follow()
    with world.opened() as catalog:
        table = catalog.load_table(IDENTIFIER)
        ours, theirs = ChangingTransaction(table), Transaction(table)
        for number in range(3):
            for transaction in (ours, theirs):
                transaction.set_properties({f"p{number}": "x"})
            assert f"p{number}" in ours.table_metadata.properties
            assert ours.table_metadata is ours.table_metadata
            now = {"last_updated_ms": ours.table_metadata.last_updated_ms}
            assert ours.table_metadata == theirs.table_metadata.model_copy(update=now)
        assert "p0" not in table.properties
        with catalog.load_table(IDENTIFIER).transaction() as other:
            other.set_properties({"other": "x"})
        table.refresh()
        assert {"other", "p2"} <= ours.table_metadata.properties.keys()


def test_a_commit_copies_the_metadata_a_few_times(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def counted(metadata: object, *given: object, **named: object) -> object:
        calls.append(metadata)
        return update_table_metadata(metadata, *given, **named)  # type: ignore[arg-type]

    world.fill(1)
    monkeypatch.setattr("pyiceberg.table.update_table_metadata", counted)
    world.follow()
    assert 1 <= len(calls) <= 3
    calls.clear()
    world.fill(2)
    world.follow()
    assert 1 <= len(calls) <= 2
    world.check()
