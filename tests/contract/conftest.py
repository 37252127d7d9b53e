"""The contract as a fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from offloader.config import Config
from testbed.admin import Admin
from testbed.oracle import Oracle
from tests.contract.against_java import Contract, through_the_broker
from tests.contract.stream.following import Follower


@pytest.fixture(scope="session")
def streams(lake_config: Config) -> Iterator[Follower]:
    with closing(Follower(lake_config)) as opened:
        yield opened


@pytest.fixture
def contract(
    oracle: Oracle,
    admin: Admin,
    lake_config: Config,
    offload: Callable[[str], None],
    streams: Follower,
) -> Contract:
    through_broker = through_the_broker(lake_config)
    return Contract(oracle, admin, lake_config, through_broker, offload, streams)
