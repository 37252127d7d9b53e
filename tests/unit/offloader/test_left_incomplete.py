"""What conversions left incomplete is remembered in bounded memory."""

import pytest

from offloader.turn import left_incomplete
from offloader.turn.left_incomplete import LeftIncomplete, LeftMemory
from reader.decode import Chunk, ChunkSequence
from reader.model import Partition, Topic

TOPIC = Topic("public", "default", "orders")


def left(messages: int, chunks: int = 1) -> LeftIncomplete:
    begun = [Chunk(1, entry, entry, chunks + 1, 10, 0) for entry in range(chunks)]
    sequences = {str(number).encode(): ChunkSequence(begun) for number in range(messages)}
    return LeftIncomplete("then", 1, sequences)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_incomplete, "MOST_LEFT_CHUNKS", 100)


@pytest.mark.parametrize("partitions", [8, 16, 32])
@pytest.mark.parametrize(("messages", "chunks"), [(10, 1), (1, 19), (3, 4)])
def test_it_does_not_grow_with_the_topics(partitions: int, messages: int, chunks: int) -> None:
    memory = LeftMemory()
    for index in range(partitions):
        memory.put(Partition(TOPIC, index), left(messages, chunks))
        assert memory.chunks <= 100
    assert memory.get(Partition(TOPIC, 0)) is None
    assert memory.get(Partition(TOPIC, partitions - 1)) is not None


@pytest.mark.parametrize("messages", [51, 102, 204])
def test_one_partition_with_more_is_read_again(messages: int) -> None:
    memory = LeftMemory()
    memory.put(Partition(TOPIC, 1), left(5))
    memory.put(Partition(TOPIC, 0), left(50))
    assert memory.chunks == 100
    memory.put(Partition(TOPIC, 0), left(messages))
    assert memory.get(Partition(TOPIC, 0)) is None
    assert memory.chunks == 0


def test_what_is_replaced_or_over_counts_no_more() -> None:
    memory = LeftMemory()
    for _ in range(30):
        memory.put(Partition(TOPIC, 0), left(20))
        assert memory.chunks == 40
    memory.put(Partition(TOPIC, 0), None)
    assert memory.chunks == 0
