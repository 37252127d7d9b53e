"""The contract as a fixture."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from offloader.config import Config
from reader.config import StorageConfig
from spark_ext import PulsarLake
from testbed.admin import Admin
from testbed.oracle import Oracle
from tests.contract.against_java import Contract, through_the_broker
from tests.contract.stream.following import Follower


@pytest.fixture(scope="session")
def contract_config(lake_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Settings for the shared cluster, with tables in a local directory."""
    storage = StorageConfig(uri=str(tmp_path_factory.mktemp("contract")))
    return lake_config.model_copy(update={"storage": storage})


@pytest.fixture(scope="session")
def contract_lake(lake: PulsarLake, contract_config: Config) -> Iterator[PulsarLake]:
    """A session beside that of all tests, with the tables of the contract."""
    assert lake.spark
    with PulsarLake(contract_config) as opened:
        yield opened


@pytest.fixture(scope="session")
def streams(contract_config: Config) -> Iterator[Follower]:
    with closing(Follower(contract_config)) as opened:
        yield opened


@pytest.fixture
def contract(oracle: Oracle, admin: Admin, contract_config: Config, streams: Follower) -> Contract:
    through_broker = through_the_broker(contract_config)
    return Contract(oracle, admin, contract_config, through_broker, streams)
