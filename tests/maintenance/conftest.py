"""The command line, for the tests of maintenance that run or kill it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.running import Start, starting


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin
