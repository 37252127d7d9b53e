"""Offsets of streams: one spelling, and nothing else is taken for one."""

import pytest

from reader.errors import ConfigurationError
from reader.model import Partition, Position, Topic
from reader.stream import StreamOffset
from reader.stream.offsets import PartitionOffset

FLIGHTS, OTHER = Topic("public", "default", "flights"), Topic("a", "b", "c-partition-x")
OFFSET = StreamOffset(
    {
        Partition(FLIGHTS, 1): PartitionOffset(Position(9, -1)),
        Partition(FLIGHTS, 0): PartitionOffset(
            Position(7, 20), "2026-11-24", (Position(3, 9), 17), Position(5, 17)
        ),
        Partition(OTHER, -1): PartitionOffset(Position(-1, -1), missing=5),
    }
)


def test_it_comes_back_and_has_one_spelling() -> None:
    text = OFFSET.to_json()
    again = StreamOffset.from_json(text)
    assert again == OFFSET
    assert StreamOffset(dict(reversed([*OFFSET.partitions.items()]))).to_json() == text
    assert "\n" not in text


def test_a_partition_that_is_not_there_begins_at_its_beginning() -> None:
    assert OFFSET.of(Partition(FLIGHTS, 7)) == PartitionOffset(Position(-1, -1))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "{}",
        '{"format":1}',
        '{"format":1,"topics":{"x":{}}}',
        '{"format":1,"topics":[1]}',
        '{"format":1,"topics":{"x":{"at":{"0":"7"}}}}',
        '{"format":1,"topics":{"x":{"at":{"p":"7:1"}}}}',
    ],
)
def test_what_is_none_is_told(text: str) -> None:
    with pytest.raises(ConfigurationError, match="no positions of a Pulsar stream"):
        StreamOffset.from_json(text)


def test_a_newer_format_is_told() -> None:
    with pytest.raises(ConfigurationError, match="format of another version: 2"):
        StreamOffset.from_json('{"format":2,"topics":{}}')
