"""Where a stream begins and ends that names a position or a time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reader.model import BEFORE_ALL, Partition, Position
from reader.storage import open_storage
from reader.stream.known_topic import KnownTopic
from reader.stream.stream_options import StreamOptions
from reader.stream.tails import Tails
from reader.stream.topic_stream import TopicStream
from testbed.simulation import Effects
from tests.simulation.product.clients import SimulatedClients
from tests.unit.turns.small_pulsar import HOLD, NOW_MS, TOPIC, SmallPartition, SmallPulsar

PARTITION = Partition(TOPIC, -1)
PUBLISHED = datetime.fromtimestamp(NOW_MS / 1000, UTC)
"""When all messages were published."""


@pytest.fixture
def pulsar(tmp_path: Path) -> SmallPulsar:
    part = SmallPartition(PARTITION, first=5)
    found = SmallPulsar(part)
    found.create_hold(PARTITION, HOLD)
    part.write("5a", "5b", "5c")
    part.roll(6)
    part.write("6a")
    return found


def bounds(pulsar: SmallPulsar, directory: Path, **places: str) -> tuple[Position, Position | None]:
    """Where a stream begins, and where it ends."""
    config = pulsar.config(directory)
    options = StreamOptions.of({"topic": TOPIC.local_name, **places})
    admin, storage = pulsar.admin_client(config.pulsar), open_storage(config.storage)
    clients = SimulatedClients(config, admin, storage, pulsar.state, Effects(), {})
    with clients, Tails(clients) as tails:
        start, end = TopicStream(clients, options, tails, warn=print).bounds()
    return start.of(PARTITION).at, None if end is None else end.of(PARTITION).at


def test_the_message_at_each_position_is_read(pulsar: SmallPulsar, tmp_path: Path) -> None:
    found = bounds(
        pulsar, tmp_path, startingPosition='{"-1": "5:1"}', endingPosition='{"-1": "5:2"}'
    )
    assert found == (Position(5, 0), Position(5, 2))


@pytest.mark.parametrize(("microseconds", "first", "last"), [(-1, True, False), (0, True, True)])
def test_what_was_published_at_the_very_time_is_read(
    pulsar: SmallPulsar, tmp_path: Path, microseconds: int, first: bool, last: bool
) -> None:
    at = (PUBLISHED + timedelta(microseconds=microseconds)).isoformat()
    start, end = bounds(pulsar, tmp_path, startingPosition=at, endingPosition=at)
    assert (start < Position(5, 0)) is first
    assert end == Position(6, 0) if last else (end is not None and end < Position(5, 0))


def test_a_later_time_begins_behind_them(pulsar: SmallPulsar, tmp_path: Path) -> None:
    at = (PUBLISHED + timedelta(microseconds=1)).isoformat()
    start, end = bounds(pulsar, tmp_path, startingPosition=at)
    assert (start, end) == (Position(6, 0), None)
    assert bounds(pulsar, tmp_path)[0] < Position(5, 0) != BEFORE_ALL


@pytest.mark.parametrize("offloaded", [0, 1, 2])
def test_the_first_of_each_time(tmp_path: Path, offloaded: int) -> None:
    """In three ledgers of ten entries, of which the table has the first ones."""
    part = SmallPartition(PARTITION, first=5)
    pulsar = SmallPulsar(part)
    pulsar.create_hold(PARTITION, HOLD)
    begun = NOW_MS - 1_000
    times: list[tuple[int, Position]] = []
    for ledger in (5, 6, 7):
        for entry in range(10):
            time = begun + 10 * (len(times) // 3)  # three of each time
            part.write(f"{ledger}:{entry}", publish_time=time)
            times.append((time, Position(ledger, entry)))
        if ledger < 7:
            part.seal(ledger + 1)
            if ledger - 5 < offloaded:
                pulsar.offload(pulsar.config(tmp_path))
    for time in range(begun - 5, begun + 100, 5):
        at = datetime.fromtimestamp(time / 1000, UTC).isoformat()
        start, end = bounds(pulsar, tmp_path, startingPosition=at, endingPosition=at)
        assert [at for _, at in times if at > start] == [at for of, at in times if of >= time]
        assert end is not None
        assert [at for _, at in times if at <= end] == [at for of, at in times if of <= time]


def test_no_place_to_go_on_from_is_in_a_deleted_ledger(pulsar: SmallPulsar, tmp_path: Path) -> None:
    """A broker may name the last entry of a ledger that Pulsar has deleted."""
    config = pulsar.config(tmp_path)
    admin, storage = pulsar.admin_client(config.pulsar), open_storage(config.storage)
    with SimulatedClients(config, admin, storage, pulsar.state, Effects(), {}) as clients:
        known = KnownTopic(clients, TOPIC)
        assert known.end(PARTITION, Position(6, 0)) == Position(6, 0)
        assert known.end(PARTITION, Position(4, 7)) == BEFORE_ALL
