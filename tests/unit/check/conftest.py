"""A port for what does not run."""

from collections.abc import Iterator

import pytest

from testbed.serving import refusing_port


@pytest.fixture
def closed_port() -> Iterator[int]:
    with refusing_port() as port:
        yield port
