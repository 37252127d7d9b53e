"""What the tests of turns share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from offloader.turn.topic_offloader import TopicOffloader
from tests.unit.turns.pulsar_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A topic whose producers' clocks are of no use: each test sets them as it likes."""
    with World(tmp_path) as found:
        found.offloader().observe(found.topic)
        yield found


@pytest.fixture
def offloader(world: World) -> TopicOffloader:
    return world.offloader()
