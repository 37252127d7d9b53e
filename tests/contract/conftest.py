"""The contract as a fixture."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from offloader.config import Config
from testbed.admin import Admin
from testbed.oracle import Oracle
from tests.contract.against_java import Contract, through_the_broker


@pytest.fixture
def contract(
    oracle: Oracle, admin: Admin, lake_config: Config, offload: Callable[[str], None]
) -> Contract:
    return Contract(oracle, admin, lake_config, through_the_broker(lake_config), offload)
