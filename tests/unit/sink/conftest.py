"""Kernels are compiled before a broker waits for who compiles them; a world for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reader.pulsar.binary import prewarm
from tests.unit.encode.messages.encoding import Row, decoded, encode
from tests.unit.sink.worlds import World, reads_behind


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    prewarm()
    decoded(encode([Row()]))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with World(tmp_path) as made:
        monkeypatch.setattr("reader.scan.read_behind", reads_behind(made))
        yield made
