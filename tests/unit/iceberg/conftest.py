"""A world with a catalog that needs no server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.iceberg.worlds import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path)
    yield found
    found.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two files are enough to be compacted."""
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
