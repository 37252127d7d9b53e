"""The contract kit: sources in memory hold it, and each rule that is broken is seen."""

import datetime as dt
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from reader.errors import UnsupportedError
from reader.model import EntryBlock, Position, SchemaInfo, Split
from reader.model.columns import METADATA
from reader.payload import payload_fields
from reader.sources.base import Delivered, EntrySource, RowSource, Step
from reader.sources.entry_rows import EntryRows
from reader.sources.row_format import RowFormat, bare_rows
from tests.contract.kit import Case, EntryCase, EntrySourceContract, SourceContract
from tests.unit.decode.entries import entry, single
from tests.unit.sources.memory_sources import MemoryEntries, MemoryRows
from tests.unit.sources.splits import PARTITION, split

LEDGER, BEFORE, COUNT = 7, 6, 12
START_MS = 1_700_000_000_000
FIELDS = payload_fields([])
FORMAT = RowFormat(FIELDS, (SchemaInfo(0, "BYTES", ""),), pa.schema([*FIELDS, *METADATA]))
WHOLE = replace(
    split(LEDGER, 0, COUNT - 1), lookback=Position(BEFORE, 0), bytes=1 << 20, whole=True
)

# The first chunk of a message that ends in the other ledger.
CHUNKED: dict[str, Any] = {"uuid": "u", "num_chunks_from_msg": 2, "total_chunk_msg_size": 10}
EARLIER = [entry(b"a message"), entry(b"first", chunk_id=0, **CHUNKED)]


def stored(number: int) -> tuple[bytes, list[dict[str, Any]]]:
    """An entry and its rows."""
    published = START_MS + number * 10
    known: dict[str, Any] = {
        "__topic": PARTITION.topic.full_name,
        "__partition": PARTITION.index,
        "__ledgerId": LEDGER,
        "__entryId": number,
        "__publishTime": dt.datetime.fromtimestamp(published / 1000, dt.UTC),
        "__producerName": "p-1",
        "__rescued": None,
        "__error": None,
    }
    if number == 4:
        raw = entry(b"-last", chunk_id=1, publish_time=published, **CHUNKED)
        return raw, [{**known, "__batchIndex": -1, "__key": None, "value": b"first-last"}]
    if number % 3 == 1:
        raw = entry(b"%d" % number, publish_time=published, partition_key="k")
        return raw, [{**known, "__batchIndex": -1, "__key": "k", "value": b"%d" % number}]
    if number % 3 == 2:
        raw = entry(b"", publish_time=published, null_value=True)
        return raw, [{**known, "__batchIndex": -1, "__key": None, "value": None}]
    batch = b"".join(single(b"%d-%d" % (number, i), partition_key="b") for i in range(4))
    raw = entry(batch, publish_time=published, num_messages_in_batch=4)
    return raw, [
        {**known, "__batchIndex": i, "__key": "b", "value": b"%d-%d" % (number, i)}
        for i in range(4)
    ]


ENTRIES = [stored(number)[0] for number in range(COUNT)]
ROWS = [row for number in range(COUNT) for row in stored(number)[1]]
LEDGERS = {BEFORE: EARLIER, LEDGER: ENTRIES}
TABLE = pa.Table.from_pylist(ROWS, FORMAT.columns)


def case_of(
    source: Callable[..., RowSource],
    unavailable: Callable[..., RowSource] | None = None,
    interrupted: Callable[..., RowSource] | None = None,
) -> Case:
    def opens(make: Callable[..., RowSource]) -> Callable[..., AbstractContextManager[RowSource]]:
        return lambda rows: nullcontext(make(rows))

    return Case(
        split=WHOLE,
        rows=ROWS,
        format=FORMAT,
        open=opens(source),
        missing=replace(WHOLE, ledger_id=8),
        unavailable=opens(unavailable) if unavailable else None,
        interrupted=opens(interrupted) if interrupted else None,
    )


def memory(rows: RowFormat) -> RowSource:
    return MemoryRows(TABLE, rows)


def decoded(rows: RowFormat, *, each: int = 4, **options: Any) -> RowSource:
    def entries(_: Sequence[Split]) -> EntrySource:
        return MemoryEntries(PARTITION, LEDGERS, each=each, **options)

    return EntryRows(entries, rows)


class TestMemoryRows(SourceContract):
    @pytest.fixture
    def case(self) -> Case:
        return case_of(
            memory,
            lambda rows: MemoryRows(TABLE, rows, silent=True),
            lambda rows: MemoryRows(TABLE, rows, fails_at=COUNT // 2),
        )


class TestEntryRows(SourceContract):
    """The decoder over an entry source in memory."""

    @pytest.fixture(params=[1, 4, 100])
    def case(self, request: pytest.FixtureRequest) -> Case:
        return case_of(
            lambda rows: decoded(rows, each=request.param),
            lambda rows: decoded(rows, silent=True),
            lambda rows: decoded(rows, each=2, fails_at=COUNT // 2),
        )


HIDDEN = (2, COUNT - 2, COUNT - 1)


class TestEntryRowsOfHiddenEntries(SourceContract):
    """The store hides some, the last ones among them: the range is whole all the same."""

    @pytest.fixture(params=[1, 4, 100])
    def case(self, request: pytest.FixtureRequest) -> Case:
        found = case_of(
            lambda rows: decoded(rows, each=request.param, hidden=HIDDEN),
            lambda rows: decoded(rows, silent=True),
            lambda rows: decoded(rows, each=2, fails_at=COUNT // 2, hidden=HIDDEN),
        )
        return replace(found, rows=[row for row in ROWS if row["__entryId"] not in HIDDEN])


class TestEntryRowsInSmallPortions(TestEntryRows):
    """The rows of an entry are several batches."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("reader.decode.passes.portions.PORTION_ROWS", 3)


class TestMemoryEntries(EntrySourceContract):
    @pytest.fixture(params=[1, 4, 100])
    def case(self, request: pytest.FixtureRequest) -> EntryCase:
        return EntryCase(
            open=lambda: nullcontext(MemoryEntries(PARTITION, LEDGERS, each=request.param)),
            ledger_id=LEDGER,
            entries=ENTRIES,
            missing=8,
        )


class TestMemoryEntriesThatAreHidden(EntrySourceContract):
    @pytest.fixture(params=[1, 4, 100])
    def case(self, request: pytest.FixtureRequest) -> EntryCase:
        each = request.param
        return EntryCase(
            open=lambda: nullcontext(MemoryEntries(PARTITION, LEDGERS, each=each, hidden=HIDDEN)),
            ledger_id=LEDGER,
            entries=[None if n in HIDDEN else entry for n, entry in enumerate(ENTRIES)],
            missing=8,
        )


# -- what the kit has to reject --------------------------------------------------------------------

Steps = Iterator[Step]
Spoil = Callable[[MemoryRows, Split, int, Steps], Steps]


def without_the_last_row(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        yield step.slice(0, max(0, step.num_rows - 1)) if not isinstance(step, Delivered) else step


def twice(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        yield step
        if not isinstance(step, Delivered):
            yield step


def backwards(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        if not isinstance(step, Delivered):
            step = step.take(pa.array(range(step.num_rows)[::-1], pa.int64()))
        yield step


def from_the_beginning(source: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    yield source.batch(split.first_entry, split.last_entry)
    yield Delivered(split.last_entry)


def to_the_end_of_the_ledger(source: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    yield source.batch(first, COUNT)
    yield Delivered(split.last_entry)


def delivered_too_early(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    yield Delivered(min(first + 2, split.last_entry))
    yield from steps


def never_delivered(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        if not isinstance(step, Delivered):
            yield step


def not_delivered_to_the_end(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        if not isinstance(step, Delivered) or step.entry < split.last_entry:
            yield step


def all_columns(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        if isinstance(step, Delivered) or step.num_columns:
            yield step
        else:
            yield bare_rows(0)


def own_types(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        if not isinstance(step, Delivered) and "__ledgerId" in step.schema.names:
            at = step.schema.get_field_index("__ledgerId")
            step = step.set_column(at, "__ledgerId", step["__ledgerId"].cast(pa.int64()))
        yield step


def another_value(_: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    for step in steps:
        if not isinstance(step, Delivered) and "__key" in step.schema.names:
            at = step.schema.get_field_index("__key")
            step = step.set_column(at, "__key", pa.nulls(step.num_rows, pa.string()))
        yield step


def fails_after_a_row(source: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    """As where the second batch of an entry cannot be built."""
    for number, step in enumerate(steps):
        yield step
        if number == 4:
            assert not isinstance(step, Delivered)
            raise UnsupportedError("too large")


def an_empty_range_read(source: MemoryRows, split: Split, first: int, steps: Steps) -> Steps:
    if first > split.last_entry:
        yield source.batch(split.last_entry, split.last_entry)
    yield from steps


class Spoiled(MemoryRows):
    def __init__(self, spoil: Spoil, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._spoil = spoil

    def read(self, split: Split, first: int) -> Generator[Step]:
        yield from self._spoil(self, split, first, super().read(split, first))


class Silent(MemoryRows):
    """Nothing instead of an error."""

    def read(self, split: Split, first: int) -> Generator[Step]:
        if split.ledger_id == self.ledger_id and not self._silent:
            yield from super().read(split, first)


class Once(MemoryRows):
    """Is used up by its first read."""

    used = False

    def read(self, split: Split, first: int) -> Generator[Step]:
        if not self.used:
            self.used = True
            yield from super().read(split, first)


class Narrow(MemoryRows):
    """Leaves out both ends of a publish range."""

    def __init__(self, table: pa.Table, rows: RowFormat) -> None:
        low, high = rows.publish_range
        narrower = (None if low is None else low + 1, None if high is None else high - 1)
        super().__init__(table, replace(rows, publish_range=narrower))


class Unordered(MemoryRows):
    """Says that it keeps no order, and gives more than one ``Delivered``."""

    ordered = False


def spoiled(spoil: Spoil) -> Callable[..., RowSource]:
    return lambda rows: Spoiled(spoil, TABLE, rows)


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        (spoiled(without_the_last_row), "every_row_once_and_in_order"),
        (spoiled(twice), "every_row_once_and_in_order"),
        (spoiled(backwards), "every_row_once_and_in_order"),
        (spoiled(another_value), "values"),
        (spoiled(from_the_beginning), "going_on_after_each_entry"),
        (spoiled(from_the_beginning), "going_on_in_another_source"),
        (spoiled(to_the_end_of_the_ledger), "both_ends_of_a_range_are_in_it"),
        (spoiled(delivered_too_early), "what_was_delivered"),
        (spoiled(never_delivered), "what_was_delivered"),
        (spoiled(not_delivered_to_the_end), "what_was_delivered"),
        (lambda rows: Unordered(TABLE, rows), "what_was_delivered"),
        (spoiled(all_columns), "exactly_the_columns_that_are_asked_for"),
        (spoiled(own_types), "types_are_those_of_the_format"),
        (spoiled(an_empty_range_read), "an_empty_range_has_no_rows"),
        (lambda rows: Once(TABLE, rows), "split_after_split"),
        (lambda rows: Once(TABLE, rows), "a_read_that_is_given_up"),
        (lambda rows: Narrow(TABLE, rows), "what_was_published_in_a_range_is_given"),
        (spoiled(fails_after_a_row), "going_on_in_another_source_after_an_error"),
        (lambda rows: Silent(TABLE, rows), "a_ledger_that_is_not_there"),
        (lambda rows: Silent(TABLE, rows, silent=True), "nobody_answers"),
    ],
)
def test_a_broken_source_is_rejected(source: Callable[..., RowSource], seen: str) -> None:
    case = case_of(memory if "after_an_error" in seen else source, source, source)
    with pytest.raises((AssertionError, pytest.fail.Exception, IndexError)):
        getattr(SourceContract(), f"test_{seen}")(case)
    sound = case_of(
        memory,
        lambda rows: MemoryRows(TABLE, rows, silent=True),
        lambda rows: MemoryRows(TABLE, rows, fails_at=COUNT // 2),
    )
    getattr(SourceContract(), f"test_{seen}")(sound)


class Gapped(MemoryEntries):
    """Leaves out an entry."""

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        for block in super().read(ledger_id, first, last):
            kept = {int(entry): ENTRIES[entry] for entry in block.entry_ids if entry != COUNT // 2}
            yield EntryBlock.of(ledger_id, kept)


class Exclusive(MemoryEntries):
    """Takes the last entry for the one behind the range."""

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        yield from super().read(ledger_id, first, last - 1)


class Welcoming(MemoryEntries):
    """Has every ledger."""

    def read(self, ledger_id: int, first: int, last: int) -> Generator[EntryBlock]:
        yield from super().read(LEDGER, first, last)


class Forward(MemoryEntries):
    """Walks from the beginning."""

    def windows(self, end: Position, first: Position, *, forwards: bool = False) -> Iterator[Any]:
        yield from reversed(list(super().windows(end, first, forwards=forwards)))


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        (Gapped, "every_entry_in_order"),
        (Exclusive, "both_ends_of_a_range_are_in_it"),
        (Welcoming, "a_ledger_that_is_not_there"),
        (Forward, "the_way_back"),
    ],
)
def test_a_broken_entry_source_is_rejected(kind: type[MemoryEntries], seen: str) -> None:
    case = EntryCase(
        open=lambda: (
            nullcontext(kind(PARTITION, {BEFORE: EARLIER, LEDGER: ENTRIES * 8}))
            if kind is Forward
            else nullcontext(kind(PARTITION, LEDGERS))
        ),
        ledger_id=LEDGER,
        entries=ENTRIES * 8 if kind is Forward else ENTRIES,
        missing=8,
    )
    with pytest.raises((AssertionError, pytest.fail.Exception, ValueError, KeyError)):
        getattr(EntrySourceContract(), f"test_{seen}")(case)
