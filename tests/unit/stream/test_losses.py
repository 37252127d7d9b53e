"""What a stream says of losses, and of another topic in the place of the one that it has read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from reader.errors import ConfigurationError
from reader.model import Partition, Position
from reader.storage import open_storage
from reader.stream import StreamOffset, StreamOptions, Tails, TopicStream
from reader.stream.losses import warn_once
from testbed.simulation import Effects
from tests.simulation.product.clients import SimulatedClients
from tests.unit.turns.small_pulsar import TOPIC, SmallPartition, SmallPulsar


def test_a_loss_is_warned_of_once() -> None:
    """A stream with limits plans a micro-batch twice."""
    warnings: list[str] = []
    warn = warn_once(warnings.append)
    for text in ("ledger 1", "ledger 2", "ledger 1", "ledger 2"):
        warn(text)
    assert warnings == ["ledger 1", "ledger 2"]
    for number in range(3, 3_000):
        warn(f"ledger {number}")
    warn("ledger 2999")
    assert len(warnings) == 2_999


@contextmanager
def streaming(pulsar: SmallPulsar, directory: Path) -> Iterator[TopicStream]:
    """A stream of the topic in a process that has just started."""
    config = pulsar.config(directory)
    admin, storage = pulsar.admin_client(config.pulsar), open_storage(config.storage)
    clients = SimulatedClients(config, admin, storage, pulsar.state, Effects(), {})
    with clients, Tails(clients) as tails:
        yield TopicStream(
            clients, StreamOptions.of({"topic": TOPIC.local_name}), tails, warn=pytest.fail
        )


def test_a_topic_is_made_again_with_other_partitions(tmp_path: Path) -> None:
    """The partition that has gone has no end that could be before what was read."""
    pulsar = SmallPulsar(*(SmallPartition(Partition(TOPIC, n), first=5 + 10 * n) for n in (0, 1)))
    for part in pulsar.parts.values():
        part.write("a", "b")
    with streaming(pulsar, tmp_path) as stream:
        first = stream.end()
    pulsar.parts.clear()
    pulsar.topic.parts.clear()
    again = SmallPartition(Partition(TOPIC, 0), first=30, created_at="2100-01-01T00:00:00.000Z")
    pulsar.add(again)
    again.write("c")
    with streaming(pulsar, tmp_path) as stream:
        for until in (None, first):
            with pytest.raises(ConfigurationError, match="made again with other partitions"):
                stream.next(first, until=until)


def test_a_cluster_that_is_set_up_anew(tmp_path: Path) -> None:
    """Its ledgers' numbers begin again, and new messages lie before what was read."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    part.write("a", "b")
    with streaming(pulsar, tmp_path) as stream:
        [(partition, one)] = stream.end().partitions.items()
        later = replace(one, at=Position(one.at.ledger + 1_000_000, 3))
        with pytest.raises(ConfigurationError, match="restored or set up anew"):
            stream.next(StreamOffset({partition: later}))
