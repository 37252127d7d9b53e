"""The contract of `reader.sources.base` as tests: a new source subclasses them.

    class TestMySource(SourceContract):
        @pytest.fixture
        def case(self) -> Case:
            return Case(...)

A source that breaks the contract fails at least one of them: `tests/unit/sources/test_kit.py`
breaks each rule once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from reader.errors import NotFoundError, PulsarLakeError, UnavailableError
from reader.model import Position, Split
from reader.sources.base import Delivered, EntrySource, RowSource, Step
from reader.sources.row_format import RowFormat

Row = Mapping[str, Any]
Open = Callable[[RowFormat], AbstractContextManager[RowSource]]


@dataclass(frozen=True)
class Case:
    """A source, and what it has to give.

    ``split``: a whole ledger of ten entries at least, some with several messages.
    ``rows``: what was published to it, in order, as ``to_pylist`` gives it; columns that nobody
    knows are missing. ``format``: all columns. ``open`` makes a source. ``nulls``: columns that
    the source cannot give. ``missing``: of a ledger that is not there. ``unavailable`` makes a
    source of which no server answers, if it has any. ``interrupted`` makes one that fails in the
    middle of the split, where that can be done.
    """

    split: Split
    rows: Sequence[Row]
    format: RowFormat
    open: Open
    missing: Split
    nulls: frozenset[str] = field(default_factory=frozenset)
    unavailable: Open | None = None
    interrupted: Open | None = None


class SourceContract:
    """See ``RowSource.read``. A subclass has a fixture ``case``."""

    def test_every_row_once_and_in_order(self, case: Case) -> None:
        assert len(case.rows) > case.split.entries >= 10, "too small to show anything"
        assert _keys(_all(case)) == [_key(row) for row in case.rows]

    def test_values(self, case: Case) -> None:
        for found, expected in zip(_all(case), case.rows, strict=True):
            known = {name: value for name, value in expected.items() if name not in case.nulls}
            assert {name: found[name] for name in known} == known
            assert not [name for name in case.nulls if found[name] is not None]

    def test_exactly_the_columns_that_are_asked_for(self, case: Case) -> None:
        names: list[str] = case.format.columns.names
        for wanted in (names, names[::-1], names[:1], names[-2:], names[:0]):
            rows = _with_columns(case.format, wanted)
            with case.open(rows) as source:
                batches = _batches(_steps(source, case.split))
            if wanted:
                assert all(one.schema.equals(rows.columns) for one in batches)
            assert sum(one.num_rows for one in batches) == len(case.rows)
            assert all(one.num_columns == len(wanted) for one in batches)

    def test_types_are_those_of_the_format(self, case: Case) -> None:
        """Also where the source has others."""
        columns = case.format.columns
        at = columns.get_field_index("__ledgerId")
        narrow = columns.set(at, pa.field("__ledgerId", pa.int32()))
        with case.open(replace(case.format, columns=narrow)) as source:
            batches = _batches(_steps(source, case.split))
        assert batches
        assert all(one.schema.equals(narrow) for one in batches)

    def test_what_was_delivered(self, case: Case) -> None:
        with case.open(case.format) as source:
            steps = _steps(source, case.split)
            ordered = source.ordered
        delivered = [one.entry for one in steps if isinstance(one, Delivered)]
        assert delivered == sorted(delivered)
        assert isinstance(steps[-1], Delivered)
        assert delivered[-1] == case.split.last_entry
        if not ordered:
            assert len(delivered) == 1
        upto = case.split.first_entry - 1
        since: list[int] = []
        for step in steps:
            if isinstance(step, Delivered):
                assert all(upto < entry <= step.entry for entry in since)
                upto, since = step.entry, []
            else:
                since += [key[1] for key in _keys(_rows(step))]

    def test_going_on_after_each_entry(self, case: Case) -> None:
        with case.open(case.format) as source:
            for first in range(case.split.first_entry, case.split.last_entry + 1):
                found = _read(source, case.split, first)
                assert _keys(found) == _expected(case, first, case.split.last_entry)

    def test_going_on_in_another_source(self, case: Case) -> None:
        with case.open(case.format) as source, case.open(case.format) as other:
            for step in _steps(source, case.split):
                if isinstance(step, Delivered):
                    found = _read(other, case.split, step.entry + 1)
                    assert _keys(found) == _expected(case, step.entry + 1, case.split.last_entry)

    def test_splits_one_after_the_other(self, case: Case) -> None:
        """Also an empty one; each is delivered whole, and those before it."""
        first, last = case.split.first_entry, case.split.last_entry
        ends = (first, first + 2, first + 2, last - 1, last)
        begins = (first, *(end + 1 for end in ends))
        parts = [
            replace(case.split, first_entry=low, last_entry=high, whole=False)
            for low, high in zip(begins, ends, strict=False)
        ]
        found: list[Row] = []
        delivered = [(-1, first - 1)]
        with case.open(case.format) as source:
            for number, step in source.read_all(parts):
                if isinstance(step, Delivered):
                    delivered.append((number, step.entry))
                else:
                    found += _sorted(source, _rows(step))
                    assert all(key[1] > delivered[-1][1] for key in _keys(_rows(step)))
        assert _keys(found) == [_key(row) for row in case.rows]
        assert delivered == sorted(delivered)
        assert delivered[-1] == (len(parts) - 1, last)

    def test_both_ends_of_a_range_are_in_it(self, case: Case) -> None:
        first, last = case.split.first_entry, case.split.last_entry
        middle = (first + last) // 2
        with case.open(case.format) as source:
            for low, high in ((first, first), (last, last), (first, middle), (middle, middle + 1)):
                part = replace(case.split, first_entry=low, last_entry=high, whole=False)
                steps = _steps(source, part)
                assert _keys(_sorted(source, _rows(*steps))) == _expected(case, low, high)
                assert isinstance(steps[-1], Delivered)
                assert steps[-1].entry == high

    def test_split_after_split(self, case: Case) -> None:
        """One source reads them all, also one that was read before."""
        middle = (case.split.first_entry + case.split.last_entry) // 2
        parts = (
            replace(case.split, last_entry=middle, whole=False),
            replace(case.split, first_entry=middle + 1, whole=False),
        )
        with case.open(case.format) as source:
            for _ in range(2):
                found = [row for part in parts for row in _read(source, part)]
                assert _keys(found) == [_key(row) for row in case.rows]

    def test_an_empty_range_has_no_rows(self, case: Case) -> None:
        with case.open(case.format) as source:
            steps = _steps(source, case.split, case.split.last_entry + 1)
        assert not _rows(*steps)

    def test_a_read_that_is_given_up(self, case: Case) -> None:
        with case.open(case.format) as source:
            for taken in (0, 1, 2):
                with closing(source.read(case.split, case.split.first_entry)) as steps:
                    for _ in range(taken):
                        next(steps, None)
            found = _read(source, case.split)
        assert _keys(found) == [_key(row) for row in case.rows]

    def test_what_was_published_in_a_range_is_given(self, case: Case) -> None:
        rows = _all(case)
        times = sorted({_micros(row["__publishTime"]) for row in rows})
        low, middle, high = times[0], times[len(times) // 2], times[-1]
        for first, last in (
            (middle, None),
            (None, middle),
            (middle, middle),
            (low, high),
            (high + 1, None),
            (None, low - 1),
        ):
            with case.open(replace(case.format, publish_range=(first, last))) as source:
                given = _keys(_read(source, case.split))
            inside = [
                _key(row)
                for row in rows
                if (first is None or _micros(row["__publishTime"]) >= first)
                and (last is None or _micros(row["__publishTime"]) <= last)
            ]
            assert [key for key in given if key in set(inside)] == inside
            assert [key for key in _keys(rows) if key in set(given)] == given

    def test_a_ledger_that_is_not_there(self, case: Case) -> None:
        with case.open(case.format) as source:
            steps: list[Step] = []
            with pytest.raises(NotFoundError):
                for step in source.read(case.missing, case.missing.first_entry):
                    steps.append(step)
        assert not _rows(*steps)

    def test_going_on_in_another_source_after_an_error(self, case: Case) -> None:
        """It comes with no row given that was not delivered: no row is missed, none comes twice."""
        if case.interrupted is None:
            pytest.skip("it cannot be interrupted")
        steps: list[Step] = []
        with case.interrupted(case.format) as source:
            with pytest.raises(PulsarLakeError):
                for step in source.read(case.split, case.split.first_entry):
                    steps.append(step)
            if not source.ordered:
                pytest.skip("an error ends the read")
        assert _rows(*steps), "too early to show anything"
        reached = max(one.entry for one in steps if isinstance(one, Delivered))
        with case.open(case.format) as other:
            rows = _rows(*steps) + _read(other, case.split, reached + 1)
        assert _keys(rows) == [_key(row) for row in case.rows]

    def test_nobody_answers(self, case: Case) -> None:
        if case.unavailable is None:
            pytest.skip("there is no server")
        with case.unavailable(case.format) as source:
            steps: list[Step] = []
            with pytest.raises(UnavailableError):
                for step in source.read(case.split, case.split.first_entry):
                    steps.append(step)
        assert not _rows(*steps)


@dataclass(frozen=True)
class EntryCase:
    """An entry source, and what it has to give.

    ``ledger_id``, ``entries``: one ledger's entries as far as they are known, from the first on;
    b"" for one whose bytes nobody knows, None for one that the source hides (not the first two,
    nor the one in the middle). ``missing``: a ledger that is not there.
    """

    open: Callable[[], AbstractContextManager[EntrySource]]
    ledger_id: int
    entries: Sequence[bytes | None]
    missing: int

    def given(self, first: int, last: int) -> list[int]:
        """Those of entries first..last that the source does not hide."""
        return [n for n in range(first, last + 1) if self.entries[n] is not None]


class EntrySourceContract:
    """See ``EntrySource``. A subclass has a fixture ``case``."""

    def test_the_ledgers(self, case: EntryCase) -> None:
        with case.open() as source:
            assert source.ledgers()[case.ledger_id] == len(case.entries) - 1
            assert source.has_ledger(case.ledger_id)
            assert case.missing not in source.ledgers()
            assert not source.has_ledger(case.missing)

    def test_every_entry_in_order(self, case: EntryCase) -> None:
        with case.open() as source:
            found = _entries(source, case.ledger_id, 0, len(case.entries) - 1)
        assert [entry for entry, _ in found] == case.given(0, len(case.entries) - 1)
        for entry, raw in found:
            assert raw
            assert not case.entries[entry] or raw == case.entries[entry]

    def test_both_ends_of_a_range_are_in_it(self, case: EntryCase) -> None:
        last = len(case.entries) - 1
        with case.open() as source:
            whole = _entries(source, case.ledger_id, 0, last)
            for low, high in ((0, 0), (last, last), (0, last // 2), (last // 2, last // 2 + 1)):
                found = _entries(source, case.ledger_id, low, high)
                assert found == [one for one in whole if low <= one[0] <= high]
                assert [entry for entry, _ in found] == case.given(low, high)
            assert _entries(source, case.ledger_id, 3, 2) == []

    def test_one_entry(self, case: EntryCase) -> None:
        last = len(case.entries) - 1
        with case.open() as source:
            whole = dict(_entries(source, case.ledger_id, 0, last))
            for entry in (0, last // 2, *case.given(last, last)):
                assert source.entry(case.ledger_id, entry) == whole[entry]

    def test_no_entry_is_made_of_a_hidden_one(self, case: EntryCase) -> None:
        hidden = [n for n, entry in enumerate(case.entries) if entry is None]
        with case.open() as source:
            for entry in hidden[:2]:
                with pytest.raises(PulsarLakeError):
                    source.entry(case.ledger_id, entry)

    def test_the_way_back(self, case: EntryCase) -> None:
        last = len(case.entries) - 1
        ends = Position(case.ledger_id, last), Position(case.ledger_id, 2)
        for order, forwards in ((-1, False), (1, True)):
            with case.open() as source:
                portions = [
                    sorted(int(entry) for block in portion for entry in block.entry_ids)
                    for portion in source.windows(*ends, forwards=forwards)
                ]
            found = [entry for portion in portions[::order] for entry in portion]
            assert found == case.given(2, last - 1)

    def test_a_read_that_is_given_up(self, case: EntryCase) -> None:
        last = len(case.entries) - 1
        with case.open() as source:
            for taken in (0, 1):
                with closing(source.read(case.ledger_id, 0, last)) as blocks:
                    for _ in range(taken):
                        next(blocks)
            assert len(_entries(source, case.ledger_id, 0, last)) == len(case.given(0, last))

    def test_a_ledger_that_is_not_there(self, case: EntryCase) -> None:
        with case.open() as source:
            with pytest.raises(NotFoundError):
                list(source.read(case.missing, 0, 0))
            with pytest.raises(NotFoundError):
                source.entry(case.missing, 0)


# -- reading ---------------------------------------------------------------------------------------


def _all(case: Case) -> list[Row]:
    with case.open(case.format) as source:
        return _read(source, case.split)


def _read(source: RowSource, split: Split, first: int | None = None) -> list[Row]:
    """The rows, in order where the source keeps none."""
    return _sorted(source, _rows(*_steps(source, split, first)))


def _sorted(source: RowSource, rows: list[Row]) -> list[Row]:
    return rows if source.ordered else sorted(rows, key=_key)


def _steps(source: RowSource, split: Split, first: int | None = None) -> list[Step]:
    return list(source.read(split, split.first_entry if first is None else first))


def _batches(steps: Iterable[Step]) -> list[pa.RecordBatch]:
    return [one for one in steps if not isinstance(one, Delivered)]


def _rows(*steps: Step) -> list[Row]:
    return [row for one in _batches(steps) for row in one.to_pylist()]


def _key(row: Row) -> tuple[int, int, int]:
    return row["__ledgerId"], row["__entryId"], row["__batchIndex"]


def _keys(rows: Iterable[Row]) -> list[tuple[int, int, int]]:
    return [_key(row) for row in rows]


def _expected(case: Case, first: int, last: int) -> list[tuple[int, int, int]]:
    return [_key(row) for row in case.rows if first <= row["__entryId"] <= last]


def _with_columns(rows: RowFormat, names: Sequence[str]) -> RowFormat:
    return replace(rows, columns=pa.schema([rows.columns.field(name) for name in names]))


def _micros(time: Any) -> int:
    return int(pa.scalar(time, pa.timestamp("us", "UTC")).value)


def _entries(source: EntrySource, ledger_id: int, first: int, last: int) -> list[tuple[int, bytes]]:
    found = []
    for block in source.read(ledger_id, first, last):
        assert block.ledger_id == ledger_id
        assert not block.damaged
        for entry, offset, length in zip(
            block.entry_ids.tolist(), block.offsets.tolist(), block.lengths.tolist(), strict=True
        ):
            found.append((entry, block.arena[offset : offset + length].tobytes()))
    return found
