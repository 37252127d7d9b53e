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
from tests.support.tables import maintainer
from tests.unit.turns.small_pulsar import HOLD, TOPIC, SmallPartition, SmallPulsar


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


def test_a_table_that_is_elsewhere(tmp_path: Path) -> None:
    """A stream stops as a query does, and does not read only the rows that Pulsar still has."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    pulsar.create_hold(part.partition, HOLD)
    part.write("a", "b")
    part.roll(6)
    pulsar.offload(pulsar.config(tmp_path / "lake"))
    part.write("c")
    part.trim()
    assert part.ledgers == [6]
    with streaming(pulsar, tmp_path / "elsewhere") as stream:
        start = stream.bounds()[0]
        end, _ = stream.next(start)
        with pytest.raises(ConfigurationError, match="was moved for the table at"):
            stream.plan(start, end)


def test_rows_that_expire_before_they_are_read(tmp_path: Path) -> None:
    """They are passed over without an error only if the stream has read them."""
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    pulsar.create_hold(part.partition, HOLD)
    config = pulsar.config(tmp_path)
    part.write("a", "b")
    part.roll(6)
    pulsar.offload(config)
    with streaming(pulsar, tmp_path) as stream:
        start = stream.bounds()[0]
        read = stream.next(start)[0]
        stream.plan(start, read)
    late = maintainer(open_storage(config.storage), ahead=2 * 3600, retention="1h")
    assert late.maintain(TOPIC).expired_rows == 2
    part.write("c")
    with streaming(pulsar, tmp_path) as stream:
        stream.plan(read, stream.next(read)[0])
    with streaming(pulsar, tmp_path) as stream, pytest.raises(ConfigurationError) as caught:
        stream.plan(start, stream.next(start)[0])
    assert "have expired, and only those up to" in caught.value.message
    assert "failOnDataLoss=false" in str(caught.value.hint)


def test_the_first_messages_of_a_partition_are_deleted(tmp_path: Path) -> None:
    part = SmallPartition(Partition(TOPIC, -1), first=5)
    pulsar = SmallPulsar(part)
    with streaming(pulsar, tmp_path) as stream:
        start = stream.bounds()[0]
    part.write("a")
    part.roll(6)
    part.write("b")
    assert part.ledgers == [6]
    with streaming(pulsar, tmp_path) as stream:
        end = stream.next(start)[0]
        with pytest.raises(ConfigurationError, match="were deleted before they were read"):
            stream.plan(start, end)
