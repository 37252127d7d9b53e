"""Kernels are compiled before a broker waits for who compiles them."""

import pytest

from reader.pulsar.binary import prewarm


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    prewarm()
