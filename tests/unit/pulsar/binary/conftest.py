"""Scripted brokers, and kernels that are compiled before a broker waits for who compiles them."""

from collections.abc import Iterator

import pytest

from reader.pulsar.binary import Publisher, prewarm
from tests.unit.pulsar.binary.fake_broker import FakeBroker
from tests.unit.pulsar.binary.fake_topic import FakeTopic
from tests.unit.pulsar.binary.reads import publisher_of


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    prewarm()


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as started:
        yield started


@pytest.fixture
def topic(broker: FakeBroker) -> FakeTopic:
    return FakeTopic(broker)


@pytest.fixture
def publisher(broker: FakeBroker, topic: FakeTopic) -> Iterator[Publisher]:
    with publisher_of(broker.url) as made:
        yield made
