"""What the tests of the offloader share: the command line, and turns in this process.

Turns write to a local directory, without Spark: `test_commit.py` has what is different on a
server, `tests/page` and `test_crash.py` have Spark's jobs.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from offloader.config import Config
from offloader.model import Clocks
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.config import StorageConfig
from reader.pulsar.admin import AdminClient
from tests.support.conversions import InThreadJobs
from tests.support.running import Start, starting

Turns = Callable[..., TopicOffloader]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


@pytest.fixture(scope="module")
def config(lake_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Config:
    """Settings for the shared cluster, with tables in a local directory."""
    storage = StorageConfig(uri=str(tmp_path_factory.mktemp("lake")))
    return lake_config.model_copy(update={"storage": storage})


@pytest.fixture
def pulsar(lake_config: Config) -> Iterator[AdminClient]:
    with AdminClient(lake_config.pulsar) as client:
        yield client


@pytest.fixture
def told() -> list[str]:
    """What offloaders made by ``turns`` say to operators."""
    return []


@pytest.fixture
def turns(config: Config, pulsar: AdminClient, told: list[str]) -> Turns:
    """Makes offloaders in this process; keywords are settings of ``[offload]``."""

    def make(*, clock: Callable[[], int] | None = None, **offload: Any) -> TopicOffloader:
        return make_offloader(config, pulsar, clock or now_ms, told.append, **offload)

    return make


def make_offloader(
    config: Config,
    pulsar: AdminClient,
    clock: Callable[[], int] = now_ms,
    say: Callable[[str], None] = print,
    **offload: Any,
) -> TopicOffloader:
    """Return an offloader without Spark; keywords are settings of ``[offload]``."""
    clients = Clients(config, admin=pulsar)
    settings = config.offload.model_copy(update=offload)
    jobs = InThreadJobs(clients)
    return TopicOffloader(clients, settings, jobs, clocks=Clocks(ms=clock), say=say)
