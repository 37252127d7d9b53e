"""What tests of commands and settings begin with."""

import os
from collections.abc import Iterator
from functools import partial

import pytest

from testbed.serving import refusing_port
from tests.support.terminal import Run, run_in_process


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("PULSAR_LAKE__"):
            monkeypatch.delenv(name)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port for what does not run."""
    with refusing_port() as port:
        yield port


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return partial(run_in_process, monkeypatch, capsys)
