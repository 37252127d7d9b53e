"""Splits are read one after the other, each from the source that can give it."""

import gc
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from reader.decode import Chunk, ChunkMemory, ChunkSequence
from reader.errors import (
    ConfigurationError,
    CorruptError,
    LedgerGoneError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import LedgerMetadata, OffloadContext, Split, Stored, Tier
from reader.sources.base import Delivered, RowSource, Step
from reader.sources.fallback import LedgerNow, Stage
from reader.sources.split_reader import ListLedger, SplitReader
from tests.unit.sources.splits import metadata_of, split


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


class Scripted(RowSource):
    """Each entry is a row with its number, up to where an error waits."""

    def __init__(self, fails_at: Mapping[int, PulsarLakeError] | None = None) -> None:
        self.fails_at = dict(fails_at or {})
        self.calls: list[tuple[int, Stored | None]] = []

    def read(self, split: Split, first: int) -> Generator[Step]:
        self.calls.append((first, split.metadata))
        for entry in range(first, split.last_entry + 1):
            if entry in self.fails_at:
                raise self.fails_at.pop(entry)
            yield rows(entry)
            yield Delivered(entry)


class Called(RowSource):
    """As a function of the split says."""

    def __init__(self, steps: Callable[[Split], Generator[Step]]) -> None:
        self._steps = steps

    def read(self, split: Split, first: int) -> Generator[Step]:
        yield from self._steps(split)


def never(_: Split) -> tuple[LedgerNow, LedgerMetadata | None]:
    raise AssertionError("nobody needs to know what is listed")


def listed(now: LedgerNow, metadata: Stored | None = None) -> ListLedger:
    return lambda _: (now, metadata)


def raising(error: PulsarLakeError) -> ListLedger:
    def list_ledger(_: Split) -> tuple[LedgerNow, Stored | None]:
        raise error

    return list_ledger


def changed_until_asked(source: Scripted, times: int) -> ListLedger:
    """List the ledger as stored elsewhere, until the source was asked so often."""
    return lambda _: (LedgerNow.CHANGED if len(source.calls) < times else LedgerNow.SAME, OLD)


def numbers_of(reader: SplitReader) -> list[int]:
    return [number for batch in reader.batches() for number in batch["n"].to_pylist()]


def test_rows_and_the_last_word_on_a_chunked_message() -> None:
    states = {n: ChunkSequence([Chunk(n, 0, 0, 2, 10, 0)]) for n in (1, 2, 3)}

    def steps(split: Split) -> Generator[Step]:
        yield rows(split.ledger_id)
        yield Delivered(0, {b"uuid": states[split.ledger_id]})
        yield Delivered(1)

    chunks = ChunkMemory()
    reader = SplitReader(
        [split(n) for n in (1, 2, 3)],
        sources={Stage.STORED: Called(steps)},
        ledger_now=never,
        chunks=chunks,
    )
    assert numbers_of(reader) == [1, 2, 3]
    assert dict(chunks.items()) == {b"uuid": states[3]}


def test_an_error_comes_in_its_turn_and_ends_the_others() -> None:
    def steps(split: Split) -> Generator[Step]:
        if split.ledger_id == 2:
            raise KeyError("two")
        yield rows(split.ledger_id)
        yield Delivered(1)

    sources = {Stage.STORED: Called(steps)}
    reading = SplitReader(
        [split(n) for n in (1, 2, 3)], sources=sources, ledger_now=never
    ).batches()
    assert next(reading)["n"].to_pylist() == [1]
    with pytest.raises(KeyError, match="two"):
        next(reading)


def together(error: PulsarLakeError | None = None) -> Called:
    """A source that gives the first entry of each split in one batch, then what it delivered."""

    class Together(Called):
        def __init__(self) -> None:
            super().__init__(lambda _: pytest.fail("not one by one"))
            self.asked: list[list[tuple[int, int]]] = []

        def read_all(self, splits: Sequence[Split]) -> Generator[tuple[int, Step]]:
            self.asked.append([(one.ledger_id, one.first_entry) for one in splits])
            yield 0, rows(*(one.ledger_id for one in splits[:2]))
            yield 1, Delivered(0)
            if error is not None and len(self.asked) == 1:
                raise error
            yield len(splits) - 1, Delivered(splits[-1].last_entry)

    return Together()


def test_what_is_delivered_of_a_split_is_delivered_of_those_before_it() -> None:
    """An error is that of the first split that is not done; the others go on where they were."""
    bookies, broker = together(error=UnavailableError("silent")), Scripted()
    reader = SplitReader(
        [split(n, metadata=OLD) for n in (1, 2, 3, 4)],
        sources={Stage.STORED: bookies, Stage.BROKER: broker},
        ledger_now=listed(LedgerNow.SAME, OLD),
    )
    assert numbers_of(reader) == [1, 2, 1, 3, 4]
    assert broker.calls == [(1, OLD)], "the rest of the second"
    asked: Any = bookies
    assert asked.asked == [[(1, 0), (2, 0), (3, 0), (4, 0)], [(3, 0), (4, 0)]]


def test_neighbours_of_one_source_are_read_as_one() -> None:
    calls: list[tuple[str, list[int]]] = []

    class Noted(Scripted):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def read_all(self, splits: Sequence[Split]) -> Generator[tuple[int, Step]]:
            calls.append((self.name, [one.ledger_id for one in splits]))
            yield from super().read_all(splits)

    kinds = [Tier.BOOKKEEPER, Tier.BOOKKEEPER, Tier.BROKER, Tier.BOOKKEEPER]
    reader = SplitReader(
        [split(number, tier=tier) for number, tier in enumerate(kinds)],
        sources={Stage.STORED: Noted("bookies"), Stage.BROKER: Noted("broker")},
        ledger_now=never,
    )
    assert numbers_of(reader) == [0, 1] * 4
    assert calls == [("bookies", [0, 1]), ("broker", [2]), ("bookies", [3])]


def test_nothing_is_left_after_an_error_behind_the_last_entry() -> None:
    def steps(split: Split) -> Generator[Step]:
        yield rows(0)
        yield Delivered(split.last_entry)
        raise UnavailableError("too late")

    reader = SplitReader([split()], sources={Stage.STORED: Called(steps)}, ledger_now=never)
    with pytest.raises(UnavailableError, match="too late"):
        numbers_of(reader)


def read(
    one: Split,
    sources: Mapping[Stage, RowSource],
    ledger_now: ListLedger = never,
    *,
    fall_back: bool = True,
) -> list[int]:
    return numbers_of(
        SplitReader([one], sources=sources, ledger_now=ledger_now, fall_back=fall_back)
    )


OLD, NEW = metadata_of(1, "a:1"), metadata_of(1, "b:1")


@pytest.mark.parametrize("at", [0, 3, 9])
def test_the_broker_goes_on_where_bookies_are_silent(at: int) -> None:
    bookies, broker = Scripted({at: UnavailableError("silent")}), Scripted()
    sources = {Stage.STORED: bookies, Stage.BROKER: broker}
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
    sources = {Stage.STORED: Called(steps), Stage.BROKER: Scripted()}
    one = split(last=2, metadata=OLD)
    now = listed(LedgerNow.SAME, OLD)
    reader = SplitReader([one], sources=sources, ledger_now=now)
    with pytest.raises(type(error)):
        for batch in reader.batches():
            found += batch["n"].to_pylist()
    assert found == [0, 1]


def test_changed_ensembles_are_tried_again_with_new_metadata() -> None:
    bookies = Scripted({2: UnavailableError("silent"), 5: NotFoundError("none has it")})
    one = split(last=9, metadata=OLD)
    answers = iter([(LedgerNow.CHANGED, NEW), (LedgerNow.GONE, None)])
    table = Scripted()
    sources = {Stage.STORED: bookies, Stage.TABLE: table}
    assert read(one, sources, lambda _: next(answers)) == list(range(10))
    assert bookies.calls == [(0, OLD), (2, NEW)]
    assert table.calls == [(5, NEW)]


def test_new_metadata_is_that_of_all_parts_of_the_ledger() -> None:
    """Parts of a ledger are read as one, by one metadata."""
    bookies = Scripted({2: CorruptError("its replicas answer without it")})
    whole = split(last=9, metadata=OLD)
    parts = [replace(whole, last_entry=4), replace(whole, first_entry=5)]
    other = replace(split(last=12, metadata=OLD), ledger_id=whole.ledger_id + 1, first_entry=10)
    sources = {Stage.STORED: bookies}
    now = listed(LedgerNow.CHANGED, NEW)
    reader = SplitReader([*parts, other], sources=sources, ledger_now=now)
    assert numbers_of(reader) == list(range(13))
    assert bookies.calls == [(0, OLD), (2, NEW), (5, NEW), (10, OLD)]


def test_a_short_tail_goes_to_the_bookies_and_back() -> None:
    """An entry that is not given, then one that bookies cannot tell about: nothing is listed."""
    tail = Scripted({1: UnsupportedError("an entry filter")})
    bookies = Scripted({4: UnsupportedError("a transaction, and nobody knows")})
    broker = Scripted()
    sources = {Stage.TAIL: tail, Stage.STORED: bookies, Stage.BROKER: broker}
    one = split(last=6, tier=Tier.BROKER, short_tail=True, metadata=OLD)
    assert read(one, sources) == list(range(7))
    assert [source.calls[0][0] for source in (tail, bookies, broker)] == [0, 1, 4]
    bare = split(last=6, tier=Tier.BROKER, short_tail=True)
    sources[Stage.TAIL] = Scripted({1: UnsupportedError("an entry filter")})
    with pytest.raises(UnsupportedError, match="filter"):
        read(bare, sources)


def test_bookies_have_a_short_tail_whose_broker_is_silent() -> None:
    bookies = Scripted()
    sources = {Stage.TAIL: Scripted({2: UnavailableError("silent")}), Stage.STORED: bookies}
    one = split(last=6, tier=Tier.BROKER, short_tail=True, metadata=OLD)
    assert read(one, sources, listed(LedgerNow.SAME, OLD)) == list(range(7))
    assert bookies.calls == [(2, OLD)]


@pytest.mark.parametrize("error", [NotFoundError, LedgerGoneError, UnavailableError, CorruptError])
def test_what_the_table_fails_with_is_final(error: type[PulsarLakeError]) -> None:
    sources = {
        Stage.STORED: Scripted({3: NotFoundError("left")}),
        Stage.TABLE: Scripted({7: error("no table")}),
    }
    with pytest.raises(error, match="no table"):
        read(split(last=9, metadata=OLD), sources, listed(LedgerNow.GONE))


def test_an_error_names_each_source_that_was_asked() -> None:
    sources = {
        Stage.TAIL: Scripted({2: UnavailableError("the broker is silent", hint="is it up?")}),
        Stage.STORED: Scripted({2: LedgerGoneError("ledger 5 has left Pulsar")}),
        Stage.TABLE: Scripted({2: NotFoundError("ledger 6 is not in the table")}),
    }
    one = split(last=6, tier=Tier.BROKER, short_tail=True, metadata=OLD)
    with pytest.raises(NotFoundError) as caught:
        read(one, sources, listed(LedgerNow.SAME, OLD))
    assert caught.value.message == (
        "ledger 6 is not in the table; asked because of: ledger 5 has left Pulsar; "
        "asked because of: the broker is silent"
    )
    assert caught.value.hint == "is it up?"


def test_the_first_hint_is_given_where_the_last_source_has_none() -> None:
    sources = {
        Stage.STORED: Scripted({0: NotFoundError("no object", hint="set lost_ledgers")}),
        Stage.LISTED_TABLE: Scripted({0: NotFoundError("not in the table", hint="was deleted")}),
        Stage.BROKER: Scripted({0: UnavailableError("the broker is silent")}),
    }
    with pytest.raises(UnavailableError) as caught:
        read(split(tier=Tier.TIERED, metadata=OLD), sources, listed(LedgerNow.SAME, OLD))
    assert caught.value.hint == "set lost_ledgers"


def test_of_many_failures_the_first_and_the_last_two_are_named() -> None:
    """Ensembles may change time and again."""
    stored = Scripted({n: UnavailableError(f"bookie {n}") for n in range(9)})
    sources = {Stage.STORED: stored, Stage.BROKER: Scripted({8: UnavailableError("silent")})}
    with pytest.raises(UnavailableError) as caught:
        read(split(last=9, metadata=OLD), sources, changed_until_asked(stored, 9))
    assert caught.value.message == "; asked because of: ".join(
        ["silent", "bookie 8", "bookie 7", "bookie 0"]
    )


def test_a_reason_that_comes_again_is_named_once() -> None:
    failures = [
        UnavailableError("bookie 1"),
        UnavailableError("bookie 2"),
        UnavailableError("bookie 1", hint="Start bookie 1."),
    ]
    stored = Scripted(dict(enumerate(failures)))
    sources = {Stage.STORED: stored, Stage.BROKER: Scripted({2: UnavailableError("silent")})}
    with pytest.raises(UnavailableError) as caught:
        read(split(last=9, metadata=OLD), sources, changed_until_asked(stored, 3))
    assert caught.value.message == "; asked because of: ".join(["silent", "bookie 2", "bookie 1"])
    assert caught.value.hint == "Start bookie 1."


def test_what_a_failed_source_had_read_is_freed() -> None:
    class Block:
        """What lies in the frame of the source."""

    blocks: list[weakref.ref[Block]] = []

    def failing(_: Split) -> Generator[Step]:
        block = Block()
        blocks.append(weakref.ref(block))
        yield rows()
        raise UnavailableError("bookies are silent")

    def broker(one: Split) -> Generator[Step]:
        gc.collect()
        assert blocks[0]() is None
        yield rows(0)
        yield Delivered(one.last_entry)

    sources = {Stage.STORED: Called(failing), Stage.BROKER: Called(broker)}
    assert read(split(last=0, metadata=OLD), sources, listed(LedgerNow.SAME, OLD)) == [0]


def test_an_error_says_that_the_ledger_is_not_listed_any_more() -> None:
    sources = {
        Stage.STORED: Scripted({0: UnavailableError("bookies are silent")}),
        Stage.TABLE: Scripted({0: UnavailableError("no storage", hint="check its keys")}),
    }
    with pytest.raises(UnavailableError) as caught:
        read(split(metadata=OLD), sources, listed(LedgerNow.GONE))
    assert caught.value.message == (
        "no storage; asked because of: bookies are silent; Pulsar does not list the ledger any more"
    )
    assert caught.value.hint == "check its keys"


def test_what_no_source_can_help_with_is_raised() -> None:
    sources = {Stage.STORED: Scripted({0: ConfigurationError("a wrong password")})}
    with pytest.raises(ConfigurationError, match="password"):
        read(split(metadata=OLD), sources)


def test_an_error_keeps_what_it_comes_from() -> None:
    """Who follows the causes of one that is its own cause does not come to an end."""

    def steps(split: Split) -> Generator[Step]:
        raise ConfigurationError("format 9") from KeyError("nine")
        yield

    with pytest.raises(ConfigurationError, match="format 9") as caught:
        read(split(metadata=OLD), {Stage.STORED: Called(steps)})
    assert isinstance(caught.value.__cause__, KeyError)


def test_without_falling_back_an_error_is_raised() -> None:
    sources = {Stage.STORED: Scripted({1: UnavailableError("silent")})}
    with pytest.raises(UnavailableError, match="silent"):
        read(split(metadata=OLD), sources, listed(LedgerNow.SAME, OLD), fall_back=False)


def test_an_error_of_the_listing_names_why_it_was_asked() -> None:
    unlisted = UnavailableError("the admin does not answer")
    silent = UnavailableError("bookies are silent", hint="Check the bookies.")
    with pytest.raises(UnavailableError) as raised:
        read(split(metadata=OLD), {Stage.STORED: Scripted({1: silent})}, raising(unlisted))
    error = raised.value
    assert error.message == "the admin does not answer; asked because of: bookies are silent"
    assert error.hint == "Check the bookies."
    assert error.__cause__ is unlisted
    assert unlisted.__context__ is silent


def test_an_error_of_the_listing_that_says_the_same_is_no_cause_of_its_own() -> None:
    refused = raising(NotFoundError("left"))
    with pytest.raises(NotFoundError, match=r"^left$") as raised:
        read(split(metadata=OLD), {Stage.STORED: Scripted({1: NotFoundError("left")})}, refused)
    assert raised.value.__cause__ is not raised.value


GONE, LISTED = NotFoundError("the object is not there"), LedgerNow.SAME


def test_what_is_listed_and_not_there_is_looked_for_in_the_table() -> None:
    stored, table = Scripted({4: GONE}), Scripted()
    sources = {Stage.STORED: stored, Stage.LISTED_TABLE: table, Stage.BROKER: Scripted()}
    one = split(last=9, tier=Tier.TIERED, metadata=OLD)
    assert read(one, sources, listed(LISTED, OLD)) == list(range(10))
    assert table.calls == [(4, OLD)]


def test_and_then_asked_of_the_broker() -> None:
    stored, broker = Scripted({4: GONE}), Scripted()
    table = Scripted({4: NotFoundError("no commit names it")})
    sources = {Stage.STORED: stored, Stage.LISTED_TABLE: table, Stage.BROKER: broker}
    one = split(last=9, tier=Tier.TIERED, metadata=OLD)
    assert read(one, sources, listed(LISTED, OLD)) == list(range(10))
    assert broker.calls == [(4, OLD)]


def test_a_ledger_that_was_moved_meanwhile_is_read_from_its_objects() -> None:
    """Also where no other tier may be asked: its rows are the same."""
    stored, uuid = Scripted({4: NotFoundError("no bookie has it")}), OffloadContext("uuid")
    one = split(last=9, metadata=OLD)
    found = read(one, {Stage.STORED: stored}, listed(LedgerNow.CHANGED, uuid), fall_back=False)
    assert found == list(range(10))
    assert stored.calls == [(0, OLD), (4, uuid)]
