"""What the tests that run the command line share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.offload.running import Run, Settings, Start


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts ``pulsar-lake``; ends what is still running when the test is over."""
    runs: list[Run] = []

    def begin(settings: Settings, *arguments: str, **options: Any) -> Run:
        runs.append(Run(settings, *arguments, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.end()
