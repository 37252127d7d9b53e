"""What the tests of the offloader share: the command line, and turns in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from offloader.config import Config
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.pulsar.admin import AdminClient
from spark_ext import PulsarLake
from tests.support.running import Start, starting

Turns = Callable[..., TopicOffloader]


@pytest.fixture
def start() -> Iterator[Start]:
    with starting() as begin:
        yield begin


@pytest.fixture
def pulsar(lake_config: Config) -> Iterator[AdminClient]:
    with AdminClient(lake_config.pulsar) as client:
        yield client


@pytest.fixture
def told() -> list[str]:
    """What offloaders made by ``turns`` say to operators."""
    return []


@pytest.fixture
def turns(lake_config: Config, lake: PulsarLake, pulsar: AdminClient, told: list[str]) -> Turns:
    """Makes offloaders in this process; keywords are settings of ``[offload]``."""

    def make(*, clock: Callable[[], int] | None = None, **offload: Any) -> TopicOffloader:
        settings = lake_config.offload.model_copy(update=offload)
        return TopicOffloader(
            Clients(lake_config, admin=pulsar),
            settings,
            lambda: lake.spark.sparkContext,
            clock_ms=clock or now_ms,
            say=told.append,
        )

    return make


def now_ms() -> int:
    return time.time_ns() // 1_000_000
