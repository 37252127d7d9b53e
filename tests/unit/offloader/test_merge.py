"""Rows of several files in order: whatever the files' ranges, each row once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from offloader.maintenance.merge import Source, merge

Place = tuple[int, int, int]
NAMES = ("__ledgerId", "__entryId", "__batchIndex")


def batch(places: Sequence[Place]) -> pa.RecordBatch:
    columns = [pa.array([place[i] for place in places], pa.int64()) for i in range(3)]
    return pa.RecordBatch.from_arrays(columns, names=list(NAMES))


def source(places: Sequence[Place], size: int) -> Source:
    def read() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(places), size):
            yield batch(places[start : start + size])

    first = (min(places)[0], -1, -1) if places else (0, -1, -1)
    return Source(first, read)


def merged(sources: Sequence[Source]) -> list[Place]:
    return [
        (row["__ledgerId"], row["__entryId"], row["__batchIndex"])
        for one in merge(sources)
        for row in one.to_pylist()
    ]


places = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-1, 2))


@settings(deadline=None)
@given(st.lists(st.lists(places, max_size=12), max_size=5), st.integers(1, 5))
def test_all_rows_in_order(files: list[list[Place]], size: int) -> None:
    found = merged([source(sorted(one), size) for one in files])
    assert found == sorted(place for one in files for place in one)


@settings(deadline=None)
@given(st.lists(st.lists(places, max_size=12), max_size=5), st.integers(1, 5))
def test_files_that_are_not_in_order_lose_nothing(files: list[list[Place]], size: int) -> None:
    found = merged([source(one, size) for one in files])
    assert sorted(found) == sorted(place for one in files for place in one)


def test_one_file_is_open_at_a_time_where_they_do_not_overlap() -> None:
    opened: list[int] = []

    def one(ledger: int) -> Source:
        def read() -> Iterator[pa.RecordBatch]:
            opened.append(ledger)
            yield batch([(ledger, 0, -1), (ledger, 1, -1)])
            opened.remove(ledger)

        return Source((ledger, 0, -1), read)

    for found in merge([one(3), one(1), one(2)]):
        [ledger] = set(found.column("__ledgerId").to_pylist())
        assert opened == [ledger]
