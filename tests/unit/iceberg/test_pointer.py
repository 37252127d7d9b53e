"""The pointer for readers without a catalog, and the catalog that is nothing but files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NoSuchTableError,
)
from pyiceberg.table import Table

from offloader.iceberg.version_hint import hint_text, point
from reader.errors import UnavailableError
from reader.storage.objects import Objects
from tests.support.iceberg import IDENTIFIER
from tests.support.tables import TOPIC
from tests.unit.iceberg.worlds import World

METADATA = "~iceberg/pulsar_lake/public/default/orders/metadata"


def files_world(tmp_path: Path) -> World:
    found = World("files", tmp_path)
    found.fill(1)
    found.follow()
    return found


def loaded(world: World) -> Table:
    with world.opened() as catalog:
        return catalog.load_table(IDENTIFIER)


def hint(world: World) -> Path:
    return world.directory / METADATA / "version-hint.text"


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ("file:///x/metadata/v12.metadata.json", "12"),
        ("s3://b/x/metadata/00003-0a1b.metadata.json", "00003-0a1b"),
        ("00003-0a1b.gz.metadata.json", "00003-0a1b.gz"),
    ],
)
def test_what_the_pointer_says(metadata: str, text: str) -> None:
    assert hint_text(metadata) == text


def test_a_pointer_that_is_wrong_is_put_right(world: World) -> None:
    world.fill(1)
    world.follow()
    for wrong in ("7", "nonsense", ""):
        hint(world).write_text(wrong)
        world.follow()
        world.check()
    hint(world).unlink()
    world.follow()
    world.check()


def test_a_pointer_that_is_late_is_brought_forward(world: World) -> None:
    """As after a kill between catalog and pointer."""
    world.fill(1)
    world.follow()
    before = hint(world).read_text()
    world.fill(2)
    world.follow()
    hint(world).write_text(before)
    world.another().follow(TOPIC)
    world.check()


def test_who_was_overtaken_while_it_pointed_points_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill(1)
    world.follow()
    world.fill(2)
    other = world.another()
    left = ["once"]

    def slow(*given: Any) -> bool:
        if left:
            left.clear()
            world.fill(3)
            other.follow(TOPIC)
        return point(*given)

    monkeypatch.setattr("offloader.iceberg.follower.point", slow)
    world.follow()
    world.check()
    assert world.versions() == [1, 2, 3]


# -- the catalog of files ----------------------------------------------------------------------


def test_two_writers_of_one_version(tmp_path: Path) -> None:
    world = files_world(tmp_path)
    one, two = loaded(world), loaded(world)
    with one.transaction() as change:
        change.set_properties({"a": "1"})
    with two.transaction() as change:  # it does not matter what it was loaded as
        change.set_properties({"b": "2"})
    assert {"a", "b"} <= loaded(world).properties.keys()
    assert len(list((world.directory / METADATA).glob("v*.metadata.json"))) == 3
    world.close()


def test_of_two_that_put_the_same_version_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = files_world(tmp_path)
    one, two = loaded(world), loaded(world)
    put = Objects.put_if_absent
    left = ["once"]

    def overtaken(self: Objects, path: str, data: bytes) -> bool:
        if left:
            left.clear()
            with one.transaction() as change:
                change.set_properties({"a": "1"})
        return put(self, path, data)

    monkeypatch.setattr(Objects, "put_if_absent", overtaken)
    with pytest.raises(CommitFailedException), two.transaction() as change:
        change.set_properties({"b": "2"})
    assert "b" not in loaded(world).properties
    world.close()


def test_a_put_that_the_store_tried_twice_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first was applied and its answer lost; the second finds the first one's."""
    world = files_world(tmp_path)
    table = loaded(world)
    put = Objects.put_if_absent
    monkeypatch.setattr(Objects, "put_if_absent", lambda *given: put(*given) and put(*given))
    with table.transaction() as change:
        change.set_properties({"a": "1"})
    assert loaded(world).properties["a"] == "1"
    world.close()


def test_a_put_without_an_answer_is_of_unknown_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = files_world(tmp_path)
    table = loaded(world)

    def silent(self: Objects, path: str, data: bytes) -> bool:
        raise UnavailableError("no answer")

    monkeypatch.setattr(Objects, "put_if_absent", silent)
    with pytest.raises(CommitStateUnknownException), table.transaction() as change:
        change.set_properties({"a": "1"})
    world.close()


def test_the_newest_is_found_from_any_hint(tmp_path: Path) -> None:
    world = files_world(tmp_path)
    newest = loaded(world).metadata_location
    for text in ("1", "2", "999", "x", "0"):
        hint(world).write_text(text)
        assert loaded(world).metadata_location == newest
    hint(world).unlink()
    assert loaded(world).metadata_location == newest
    world.close()


def test_a_put_into_a_hole_that_clean_up_has_left_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that slept between loading and putting, for longer than old versions are kept."""
    world = files_world(tmp_path)
    table = loaded(world)
    put = Objects.put_if_absent
    left = ["once"]

    def asleep(self: Objects, path: str, data: bytes) -> bool:
        if left:
            left.clear()
            for ledger in (2, 3):
                world.fill(ledger)
                world.follow()
            (world.directory / path).unlink()
        return put(self, path, data)

    monkeypatch.setattr(Objects, "put_if_absent", asleep)
    with pytest.raises(CommitFailedException, match="long ago"), table.transaction() as change:
        change.set_properties({"a": "1"})
    world.follow()
    world.check()
    world.close()


def test_a_table_is_made_once(tmp_path: Path) -> None:
    world = files_world(tmp_path)
    with world.opened() as catalog:
        again = catalog.create_table_transaction(IDENTIFIER, loaded(world).schema())
        with pytest.raises(CommitFailedException):
            again.commit_transaction()
        with pytest.raises(NoSuchTableError):
            catalog.load_table(("public", "default", "none"))
    world.close()
