"""What writes to the shared cluster."""

from collections.abc import Iterator

import pytest

from offloader.config import Config
from reader.clients import Clients


@pytest.fixture(scope="module")
def clients(lake_config: Config) -> Iterator[Clients]:
    with Clients(lake_config) as opened:
        yield opened
