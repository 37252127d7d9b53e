"""The pointer for readers without a catalog."""

from pathlib import Path
from typing import Any

import pytest

from offloader.iceberg.version_hint import point
from tests.support.iceberg import iceberg_table
from tests.support.tables import TOPIC
from tests.unit.iceberg.worlds import World

METADATA = "~iceberg/pulsar_lake/public/default/orders/metadata"


def hint(world: World) -> Path:
    return world.directory / METADATA / "version-hint.text"


def test_what_the_pointer_says(world: World) -> None:
    """The name of the newest metadata, as readers append ``.metadata.json`` to it."""
    world.fill(1)
    world.follow()
    newest = iceberg_table(world.storage, world.config).metadata_location
    assert newest.endswith(f"/{hint(world).read_text()}.metadata.json")


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
