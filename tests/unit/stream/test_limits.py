"""Batches of limited size: at one publish time for all partitions, every entry once, in order."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reader.model import Partition, Position, Topic
from reader.stream.limits import NO_TIME, Entries, EntryQueue, Limits, take

TOPIC = Topic("public", "default", "t")
Entry = tuple[int, int]  # its publish time, and how many rows it has


def queue_of(entries: Sequence[Entry], chunk: int = 3) -> EntryQueue:
    """Entries of ledger 1, given ``chunk`` rows at a time."""
    rows = [(i, time) for i, (time, count) in enumerate(entries) for _ in range(count)]

    def source() -> Iterator[Entries]:
        for begin in range(0, len(rows), chunk):
            some = rows[begin : begin + chunk]
            ids, times = (np.array(column, np.int64) for column in zip(*some, strict=True))
            yield Entries.of_rows(np.ones(len(some), np.int64), ids, times, row_bytes=10.0)

    queue = EntryQueue(Position(1, -1))
    queue.add(source())
    return queue


def batches(parts: Sequence[Sequence[Entry]], limits: Limits) -> list[dict[int, int]]:
    """What each batch takes up to, by partition, until nothing is left."""
    queues = {Partition(TOPIC, i): queue_of(one) for i, one in enumerate(parts)}
    found = []
    while taken := take(queues, limits):
        assert all(position.ledger == 1 for position in taken.values())
        found.append({partition.index: position.entry for partition, position in taken.items()})
    return found


@pytest.mark.parametrize("together", [1, 2, 6])
def test_entries_of_a_file_that_lies_inside_another(together: int) -> None:
    """They come with their place, and nothing goes back to them."""

    def source(ids: Sequence[int]) -> Iterator[Entries]:
        for at in range(0, len(ids), together):
            column = np.array(ids[at : at + together], np.int64)
            yield Entries.of_rows(np.ones(together, np.int64), column, column, row_bytes=10.0)

    queue = EntryQueue(Position(1, -1))
    queue.add(source([0, 3, 4, 5, 1, 6]))
    partition, ends = Partition(TOPIC, 0), []
    while taken := take({partition: queue}, Limits(rows=2)):
        ends.append(taken[partition].entry)
    assert ends == [3, 5, 6]


def test_partitions_far_apart_are_cut_at_one_time() -> None:
    slow, fast = [(time, 1) for time in range(0, 100, 10)], [(time, 1) for time in range(100)]
    assert batches([slow, fast], Limits(rows=22)) == [
        {0: 1, 1: 19},
        *[{0: 2 * n + 1, 1: 20 * n + 19} for n in range(1, 5)],
    ]


def test_all_of_one_time_comes_together() -> None:
    assert batches([[(1, 1), (2, 2), (3, 1)], [(2, 1), (3, 1)]], Limits(rows=3)) == [
        {0: 0}, {0: 1, 1: 0}, {0: 2, 1: 1},
    ]  # fmt: skip


def test_of_one_time_that_is_too_much_comes_what_fits() -> None:
    assert batches([[(1, 1), (2, 3), (2, 3), (3, 1)], [(2, 1)]], Limits(rows=4)) == [
        {0: 0}, {0: 1, 1: 0}, {0: 3},
    ]  # fmt: skip


def test_of_one_time_each_partition_comes_in_turn() -> None:
    """A partition that always has more of a time that has not come yet stops no other one."""
    ahead = [(99, 1)] * 6
    assert batches([ahead, ahead], Limits(rows=4)) == [{0: 1, 1: 1}, {0: 3, 1: 3}, {0: 5, 1: 5}]


@pytest.mark.parametrize("first", [10**15, NO_TIME], ids=["from the future", "without a time"])
@pytest.mark.parametrize("others", [0, 2])
@pytest.mark.parametrize("limits", [Limits(rows=1_000), Limits(bytes=100_000)])
def test_memory_does_not_grow_with_the_backlog(first: int, others: int, limits: Limits) -> None:
    """Whatever publish time its first message has."""
    portion = 4_096

    def fetched(portions: int) -> int:
        count = 0

        def source(ahead: bool) -> Iterator[Entries]:
            nonlocal count
            for number in range(portions):
                ids = np.arange(portion, dtype=np.int64) + number * portion
                times = ids + 1
                if ahead:
                    times = np.full(portion, NO_TIME) if first == NO_TIME else times
                    times[0] = first
                count += portion
                ones = np.ones(portion, np.int64)
                yield Entries(ones, ids, times, ones, ones * 100)

        queues = {}
        for index in range(1 + others):
            queue = queues[Partition(TOPIC, index)] = EntryQueue(Position(1, -1))
            queue.add(source(ahead=index == 0))
        taken = take(queues, limits)
        assert 0 < sum(at.entry + 1 for at in taken.values()) <= 1_000
        return count

    assert {fetched(portions) for portions in (4, 8, 16, 32)} == {portion * (1 + others)}


def test_an_entry_that_is_too_much_comes_alone() -> None:
    assert batches([[(1, 9), (2, 1)]], Limits(rows=4)) == [{0: 0}, {0: 1}]


def test_a_late_message_comes_with_what_is_before_it() -> None:
    assert batches([[(5, 1), (1, 1), (6, 1)]], Limits(rows=2)) == [{0: 1}, {0: 2}]


def test_bytes_limit_a_batch_as_well() -> None:
    assert batches([[(time, 1) for time in range(5)]], Limits(bytes=20)) == [
        {0: 1}, {0: 3}, {0: 4},
    ]  # fmt: skip


def _keys(
    parts: Sequence[Sequence[Entry]], taken: dict[int, int], begun: dict[int, int]
) -> set[int]:
    """The times by which a batch's entries are ordered."""
    return {
        max(time for time, _ in parts[index][: at + 1])
        for index, last in taken.items()
        for at in range(begun[index], last + 1)
    }


PARTS = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4)), max_size=12), min_size=1, max_size=4
)


@given(PARTS, st.integers(1, 15))
def test_any_entries_come_once_in_order_within_the_limits(
    parts: list[list[Entry]], most: int
) -> None:
    begin = dict.fromkeys(range(len(parts)), 0)
    late = -1
    for taken in batches(parts, Limits(rows=most)):
        rows: list[Entry] = []
        begun = dict(begin)
        for index, last in taken.items():
            assert last >= begin[index]
            rows += parts[index][begin[index] : last + 1]
            begin[index] = last + 1
        left = [one for index, part in enumerate(parts) for one in part[begin[index] :]]
        latest = max(time for time, _ in rows)
        in_order = [
            time
            for index, part in enumerate(parts)
            for at, (time, _) in enumerate(part)
            if at >= begin[index] and time == max(one for one, _ in part[: at + 1])
        ]
        keys = _keys(parts, taken, begun)
        assert all(time >= max(latest, late) for time in in_order), "what came in order is late"
        assert all(time > max(latest, late) for time in in_order) or len(keys) == 1
        assert sum(count for _, count in rows) <= most or len(rows) == 1
        late = max(late, latest)
        assert left or all(begin[index] == len(part) for index, part in enumerate(parts))
    assert all(begin[index] == len(part) for index, part in enumerate(parts))


def test_rows_without_a_time_belong_to_what_is_before_them() -> None:
    none = NO_TIME
    assert batches([[(none, 1), (3, 1), (none, 1), (4, 1)]], Limits(rows=2)) == [
        {0: 0}, {0: 2}, {0: 3},
    ]  # fmt: skip
