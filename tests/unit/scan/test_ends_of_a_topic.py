"""The first and the last messages of a topic, and those of a range of times: exactly as many."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from reader.scan import TopicReader
from reader.scan.ends import merged
from tests.unit.decode.entries import entry
from tests.unit.turns.pulsar_world import START, World

SECOND = 1000
ALL = range(14)


def messages(*numbers: int) -> list[bytes]:
    return [entry(b"%d" % one, publish_time=START + one * SECOND) for one in numbers]


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TopicReader]:
    """Messages 0 to 13: two ledgers in the table, one sealed, and the open one."""
    with World(tmp_path_factory.mktemp("world")) as world:
        world.seal(*messages(0, 1, 2))
        world.seal(*messages(3, 4, 5, 6))
        world.offloader().turn(world.topic, now=True)
        world.seal(*messages(7, 8, 9))
        world.write(*messages(10, 11, 12, 13))
        with TopicReader(world.clients, world.topic) as reader:
            yield reader


def numbers(rows: pa.Table) -> list[int]:
    return [int(one) for one in rows["value"].to_pylist()]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 8, 13, 14, 15, 100])
def test_as_many_as_are_asked_for(topic: TopicReader, count: int) -> None:
    assert numbers(topic.head(count, ["value"])) == [*ALL][:count]
    assert numbers(topic.tail(count, ["value"])) == [*ALL][max(0, len(ALL) - count) :]


@pytest.mark.parametrize(
    ("start", "end"), [(0, 0), (4, 9), (9, 12), (13, 20), (5, 4), (None, 8), (11, None)]
)
def test_both_ends_of_a_range_of_times_count(
    topic: TopicReader, start: int | None, end: int | None
) -> None:
    def at(number: int | None) -> datetime | None:
        if number is None:
            return None
        return datetime.fromtimestamp((START + number * SECOND) / 1000, UTC)

    found = topic.scan(["value"], at(start), at(end)).read_all()
    first, stop = start or 0, len(ALL) if end is None else end + 1
    assert sorted(numbers(found)) == [*ALL][first:stop]


@pytest.mark.parametrize("count", [0, 1, 3, 6])
def test_partitions_are_merged_by_publish_time(count: int) -> None:
    columns = pa.schema([("__publishTime", pa.timestamp("us", "UTC"))])
    parts = [pa.table([pa.array(times, columns[0].type)], columns) for times in ([1, 4, 5], [2, 3])]

    def times(newest: bool) -> list[int]:
        found = merged(parts, columns, count, newest)
        return [int(one) for one in found.column(0).cast(pa.int64()).to_pylist()]

    assert times(newest=False) == [1, 2, 3, 4, 5][:count]
    assert times(newest=True) == [1, 2, 3, 4, 5][max(0, 5 - count) :]
