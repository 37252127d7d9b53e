"""Splits are read ahead of each other, and what comes of them is in their order all the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pytest

from reader.decode import Chunk, ChunkSequence
from reader.errors import (
    ConfigurationError,
    CorruptError,
    LedgerGoneError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import LedgerMetadata, Split, Tier
from reader.prefetch import THREAD_NAME
from reader.sources.base import Delivered, RowSource, Step
from reader.sources.fallback import LedgerNow, Stage
from reader.sources.split_reader import ListLedger, SplitReader, read_in_order
from tests.unit.sources.splits import metadata_of, split


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


class Scripted(RowSource):
    """Each entry is a row with its number, up to where an error waits."""

    def __init__(self, fails_at: Mapping[int, PulsarLakeError] | None = None) -> None:
        self.fails_at = dict(fails_at or {})
        self.calls: list[tuple[int, LedgerMetadata | None]] = []

    def read(self, split: Split, first: int) -> Generator[Step]:
        self.calls.append((first, split.metadata))
        for entry in range(first, split.last_entry + 1):
            if entry in self.fails_at:
                raise self.fails_at.pop(entry)
            yield rows(entry)
            yield Delivered(entry)


class Called(RowSource):
    """As a function of the split says."""

    def __init__(self, steps: Callable[[Split], Generator[Step]], *, exclusive: bool) -> None:
        self._steps = steps
        self.exclusive = exclusive  # type: ignore[misc]

    def read(self, split: Split, first: int) -> Generator[Step]:
        yield from self._steps(split)


def never(_: Split) -> tuple[LedgerNow, LedgerMetadata | None]:
    raise AssertionError("nobody needs to know what is listed")


def listed(now: LedgerNow, metadata: LedgerMetadata | None = None) -> ListLedger:
    return lambda _: (now, metadata)


def in_order(
    splits: Sequence[Split], source: RowSource, chunks: dict[bytes, ChunkSequence] | None = None
) -> Generator[tuple[int, list[int]]]:
    make = partial(SplitReader, sources={Stage.BOOKKEEPER: source}, ledger_now=never)
    for one, batch in read_in_order(splits, make, chunks):
        yield one.ledger_id, batch["n"].to_pylist()


def test_rows_and_the_last_word_on_a_chunked_message() -> None:
    second_is_done = threading.Event()
    states = {n: ChunkSequence([Chunk(n, 0, 0, 2, 10, 0)]) for n in (1, 2, 3)}

    def steps(split: Split) -> Generator[Step]:
        number = split.ledger_id
        if number == 1:
            assert second_is_done.wait(10), "the second is read meanwhile"
        if number == 2:
            second_is_done.set()
        yield rows(number)
        yield Delivered(0, {b"uuid": states[number]})
        yield Delivered(1)

    chunks: dict[bytes, ChunkSequence] = {}
    source = Called(steps, exclusive=False)
    found = list(in_order([split(n) for n in (1, 2, 3)], source, chunks))
    assert found == [(1, [1]), (2, [2]), (3, [3])]
    assert chunks == {b"uuid": states[3]}


def test_an_error_comes_in_its_turn_and_ends_the_others() -> None:
    def steps(split: Split) -> Generator[Step]:
        if split.ledger_id == 2:
            raise KeyError("two")
        yield rows(split.ledger_id)
        yield Delivered(1)

    reading = in_order([split(n) for n in (1, 2, 3)], Called(steps, exclusive=False))
    assert next(reading)[0] == 1
    with pytest.raises(KeyError, match="two"):
        next(reading)
    assert not [one for one in threading.enumerate() if one.name == THREAD_NAME]


def test_an_exclusive_source_is_used_by_one_split_at_a_time() -> None:
    used: list[int] = []

    def steps(split: Split) -> Generator[Step]:
        used.append(split.ledger_id)
        for number in range(3):
            yield rows(number)
            assert used[-1] == split.ledger_id
        used.append(0)
        yield Delivered(1)

    found = list(in_order([split(n) for n in (1, 2, 3)], Called(steps, exclusive=True)))
    assert [ledger for ledger, _ in found] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert used == [1, 0, 2, 0, 3, 0]


def read(
    one: Split,
    sources: Mapping[Stage, RowSource],
    ledger_now: ListLedger = never,
    *,
    fall_back: bool = True,
) -> list[int]:
    with SplitReader(one, sources=sources, ledger_now=ledger_now, fall_back=fall_back) as reader:
        return [number for batch in reader.rows_in_turn() for number in batch["n"].to_pylist()]


OLD, NEW = metadata_of(1, "a:1"), metadata_of(1, "b:1")


@pytest.mark.parametrize("at", [0, 3, 9])
def test_the_broker_goes_on_where_bookies_are_silent(at: int) -> None:
    bookies, broker = Scripted({at: UnavailableError("silent")}), Scripted()
    sources = {Stage.BOOKKEEPER: bookies, Stage.BROKER: broker}
    one = split(last=9, metadata=OLD)
    assert read(one, sources, listed(LedgerNow.SAME, OLD)) == list(range(10))
    assert broker.calls == [(at, OLD)]


@pytest.mark.parametrize("error", [UnsupportedError("too large"), UnavailableError("silent")])
def test_no_other_source_goes_on_after_a_row_that_was_not_delivered(error: PulsarLakeError) -> None:
    """It would give that row again: the error ends the read."""

    def steps(split: Split) -> Generator[Step]:
        yield rows(0)
        yield Delivered(0)
        yield rows(1)
        raise error

    found: list[int] = []
    sources = {Stage.BOOKKEEPER: Called(steps, exclusive=False), Stage.BROKER: Scripted()}
    one = split(last=2, metadata=OLD)
    now = listed(LedgerNow.SAME, OLD)
    with SplitReader(one, sources=sources, ledger_now=now) as reader:
        with pytest.raises(type(error)):
            for batch in reader.rows_in_turn():
                found += batch["n"].to_pylist()
    assert found == [0, 1]


def test_changed_ensembles_are_tried_again_with_new_metadata() -> None:
    bookies = Scripted({2: UnavailableError("silent"), 5: NotFoundError("none has it")})
    one = split(last=9, metadata=OLD)
    answers = iter([(LedgerNow.CHANGED, NEW), (LedgerNow.GONE, None)])
    table = Scripted()
    sources = {Stage.BOOKKEEPER: bookies, Stage.TABLE: table}
    assert read(one, sources, lambda _: next(answers)) == list(range(10))
    assert bookies.calls == [(0, OLD), (2, NEW)]
    assert table.calls == [(5, NEW)]


def test_a_short_tail_goes_to_the_bookies_and_back() -> None:
    """An entry without a message, then one that bookies cannot tell about: nothing is listed."""
    strict = Scripted({1: UnsupportedError("a marker?")})
    bookies = Scripted({4: UnsupportedError("a transaction, and nobody knows")})
    broker = Scripted()
    sources = {
        Stage.STRICT_BROKER: strict,
        Stage.BOOKKEEPER: bookies,
        Stage.BROKER: broker,
    }
    one = split(last=6, tier=Tier.BROKER, short_tail=True, metadata=OLD)
    assert read(one, sources) == list(range(7))
    assert [source.calls[0][0] for source in (strict, bookies, broker)] == [0, 1, 4]
    bare = split(last=6, tier=Tier.BROKER, short_tail=True)
    sources[Stage.STRICT_BROKER] = Scripted({1: UnsupportedError("a marker?")})
    assert read(bare, sources) == list(range(7))
    assert [calls[0] for calls in broker.calls] == [4, 1]


@pytest.mark.parametrize("error", [NotFoundError, LedgerGoneError, UnavailableError, CorruptError])
def test_what_the_table_fails_with_is_final(error: type[PulsarLakeError]) -> None:
    sources = {
        Stage.BOOKKEEPER: Scripted({3: NotFoundError("left")}),
        Stage.TABLE: Scripted({7: error("no table")}),
    }
    with pytest.raises(error, match="no table"):
        read(split(last=9, metadata=OLD), sources, listed(LedgerNow.GONE))


def test_what_no_source_can_help_with_is_raised() -> None:
    sources = {Stage.BOOKKEEPER: Scripted({0: ConfigurationError("a wrong password")})}
    with pytest.raises(ConfigurationError, match="password"):
        read(split(metadata=OLD), sources)


def test_without_falling_back_an_error_is_raised() -> None:
    sources = {Stage.BOOKKEEPER: Scripted({1: UnavailableError("silent")})}
    with pytest.raises(UnavailableError, match="silent"):
        read(split(metadata=OLD), sources, listed(LedgerNow.SAME, OLD), fall_back=False)


def test_an_error_of_the_listing_comes_instead() -> None:
    def unavailable(_: Split) -> tuple[LedgerNow, LedgerMetadata | None]:
        raise UnavailableError("the admin does not answer")

    sources = {Stage.BOOKKEEPER: Scripted({1: NotFoundError("left")})}
    with pytest.raises(UnavailableError, match="admin") as raised:
        read(split(metadata=OLD), sources, unavailable)
    assert isinstance(raised.value.__context__, NotFoundError)
