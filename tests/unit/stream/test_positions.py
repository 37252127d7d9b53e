"""Where a stream begins and ends that names a position or a time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reader.model import BEFORE_ALL, Partition, Position
from reader.stream.stream_options import StreamOptions
from reader.stream.tails import Tails
from reader.stream.topic_stream import TopicStream
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
    nowhere = {"service_url": "pulsar://127.0.0.1:1", "timeout": "1s"}
    options = StreamOptions.of({"topic": TOPIC.local_name, **places})
    with (
        pulsar.clients(pulsar.config(directory, pulsar=nowhere)) as clients,
        Tails(clients) as tails,
    ):
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
