"""The chunks of a message: a value that grows in constant time."""

import pickle
import tracemalloc
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reader.decode import NO_CHUNKS, Chunk, ChunkSequence, add_chunk
from tests.support.examples import examples


def chunk(number: int, entry: int = 0) -> Chunk:
    return Chunk(1, entry, number, 1 << 30, 3, 0)


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=30))
def test_it_is_as_a_tuple(steps: list[tuple[int, int]]) -> None:
    """Each step goes on from any that there is: branches never see each other."""
    found: list[ChunkSequence] = [NO_CHUNKS]
    expected: list[tuple[Chunk, ...]] = [()]
    for origin, entry in steps:
        origin %= len(found)
        one = chunk(len(found[origin]), entry)
        found.append(found[origin].with_next(one))
        expected.append((*expected[origin], one))
    for sequence, chunks in zip(found, expected, strict=True):
        assert tuple(sequence) == chunks
        assert (len(sequence), sequence.size, bool(sequence)) == (
            len(chunks),
            3 * len(chunks),
            bool(chunks),
        )
        assert sequence == ChunkSequence(chunks)
        assert tuple(sequence[:-1]) == chunks[:-1]
        assert [sequence[i] for i in range(-len(chunks), len(chunks))] == [*chunks, *chunks]


def test_it_is_pickled_as_what_it_holds() -> None:
    ends = list(
        accumulate((chunk(n) for n in range(50)), ChunkSequence.with_next, initial=NO_CHUNKS)
    )
    assert pickle.loads(pickle.dumps(ends[3])) == ends[3]
    assert len(pickle.dumps(ends[3])) < len(pickle.dumps(ends[-1])) / 5


@pytest.mark.parametrize("messages", [100, 200, 400])
def test_what_tasks_leave_incomplete_takes_little_on_its_way(messages: int) -> None:
    """A task's result has its incomplete messages: docs/security.md states their bytes."""
    left = {
        b"%08d" % number: ChunkSequence([Chunk(1 << 40, number, 0, 2, 0, 1_700_000_000_000_000)])
        for number in range(messages)
    }
    assert len(pickle.dumps(left, protocol=5)) < 400 + 64 * messages


def test_growing_copies_nothing() -> None:
    """All that a message has ever been take the room of one."""

    def room(count: int) -> int:
        chunks = [chunk(number) for number in range(count)]
        tracemalloc.start()
        ends = [NO_CHUNKS]
        for one in chunks:
            ends.append(add_chunk(ends[-1], one)[0])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(ends[-1]) == count
        return found

    assert room(4000) < 2.5 * room(2000)
    # Followed by the same again, as where each block is read for itself.
    ends = list(accumulate(map(chunk, range(2000)), ChunkSequence.with_next, initial=NO_CHUNKS))
    tracemalloc.start()
    again = [one.with_next(chunk(number)) for number, one in enumerate(ends[1:-1], 1)]
    assert tracemalloc.get_traced_memory()[1] < 2000 * 200
    tracemalloc.stop()
    assert again == ends[2:]
