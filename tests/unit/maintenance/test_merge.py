"""Rows of several files in order: whatever the files' ranges, each row once."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from offloader.maintenance.merge import SortedFile, merge_rows

RowPosition = tuple[int, int, int]
NAMES = ("__ledgerId", "__entryId", "__batchIndex")


def batch(positions: Sequence[RowPosition]) -> pa.RecordBatch:
    columns = [pa.array([position[i] for position in positions], pa.int64()) for i in range(3)]
    return pa.RecordBatch.from_arrays(columns, names=list(NAMES))


def source(positions: Sequence[RowPosition], size: int) -> SortedFile:
    def read() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(positions), size):
            yield batch(positions[start : start + size])

    first = (min(positions)[0], -1, -1) if positions else (0, -1, -1)
    return SortedFile(first, read)


def merged(sources: Sequence[SortedFile]) -> list[RowPosition]:
    return [
        (row["__ledgerId"], row["__entryId"], row["__batchIndex"])
        for one in merge_rows(sources)
        for row in one.to_pylist()
    ]


positions = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-1, 2))


@settings(deadline=None)
@given(st.lists(st.lists(positions, max_size=12), max_size=5), st.integers(1, 5))
def test_all_rows_in_order(files: list[list[RowPosition]], size: int) -> None:
    found = merged([source(sorted(one), size) for one in files])
    assert found == sorted(position for one in files for position in one)


@settings(deadline=None)
@given(st.lists(st.lists(positions, max_size=12), max_size=5), st.integers(1, 5))
def test_files_that_are_not_in_order_lose_nothing(
    files: list[list[RowPosition]], size: int
) -> None:
    found = merged([source(one, size) for one in files])
    assert sorted(found) == sorted(position for one in files for position in one)


def test_one_file_is_open_at_a_time_where_they_do_not_overlap() -> None:
    opened: list[int] = []

    def one(ledger: int) -> SortedFile:
        def read() -> Iterator[pa.RecordBatch]:
            opened.append(ledger)
            yield batch([(ledger, 0, -1), (ledger, 1, -1)])
            opened.remove(ledger)

        return SortedFile((ledger, 0, -1), read)

    for found in merge_rows([one(3), one(1), one(2)]):
        [ledger] = set(found.column("__ledgerId").to_pylist())
        assert opened == [ledger]
