"""Entries through the broker: each one is there, or hidden from every reader, or an error."""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from reader.config import ReadConfig
from reader.errors import (
    LedgerGoneError,
    NotFoundError,
    PulsarLakeError,
    UnavailableError,
    UnsupportedError,
)
from reader.model import EntryBlock, Partition
from reader.sources.base import RowSource
from reader.sources.broker import BrokerEntries, HeldBroker
from reader.sources.entry_rows import EntryRows
from reader.sources.row_format import RowFormat
from tests.contract.kit import Case, EntryCase, EntrySourceContract, SourceContract
from tests.unit.decode.entries import entry
from tests.unit.sources.splits import PARTITION, split
from tests.unit.sources.test_kit import COUNT, ENTRIES, HIDDEN, LEDGER, LEDGERS, ROWS, case_of


class FakeBroker:
    """In place of a ``BrokerClient`` and of the admin's word on entries.

    ``hidden``: entries of ledger 7 that are a marker, or aborted. ``refused``: that an entry
    filter, say, keeps back. ``unparsed``: of which the admin says nothing, either. ``loading``: so
    many reads give nothing, and so long the admin does not know what was aborted.
    """

    def __init__(
        self,
        ledgers: Mapping[int, Sequence[bytes]] = LEDGERS,
        *,
        each: int = 4,
        hidden: Collection[int] = (),
        refused: Collection[int] = (),
        unparsed: Collection[int] = (),
        loading: int = 0,
        fails_at: int | None = None,
        silent: bool = False,
    ) -> None:
        self.listed = dict(ledgers)
        self.hidden = hidden
        self.asked: list[int] = []
        self.read_from: list[int] = []
        self.lent = 0
        self._each = each
        self._left_out = {*hidden, *refused, *unparsed}
        self._unparsed = unparsed
        self._loading = loading
        self._fails_at = fails_at
        self._silent = silent

    def entries(self) -> BrokerEntries:
        clients: Any = SimpleNamespace(settings=ReadConfig(), admin=self, broker=self._lend)
        return BrokerEntries(clients, PARTITION)

    @contextmanager
    def _lend(self) -> Iterator[Any]:
        self.lent += 1
        yield SimpleNamespace(read=self._read)
        self.lent -= 1

    def _read(
        self, partition: Partition, ledger_id: int, first: int, last: int
    ) -> Generator[EntryBlock]:
        assert partition == PARTITION
        self.read_from.append(first)
        if self._silent:
            raise UnavailableError("nobody answers")
        if self._loading:
            return
        entries = self.listed.get(ledger_id, ())
        for low in range(first, min(last + 1, len(entries)), self._each):
            numbers = range(low, min(low + self._each, last + 1, len(entries)))
            if self._fails_at in numbers:
                raise UnavailableError("interrupted")
            if given := {n: entries[n] for n in numbers if n not in self._left_out}:
                yield EntryBlock.of(ledger_id, given)

    # -- the admin ---------------------------------------------------------------------------

    def ledgers(self, partition: Partition) -> Any:
        self._loading = max(0, self._loading - 1)
        listed = [SimpleNamespace(ledger_id=one) for one in self.listed]
        return SimpleNamespace(
            ledgers=listed, last_entry=lambda one: len(self.listed[one.ledger_id]) - 1
        )

    def ledger_ids(self, partition: Partition) -> set[int]:
        return set(self.listed)

    def is_hidden(self, partition: Partition, ledger: int, entry: int) -> bool:
        self.asked.append(entry)
        if ledger not in self.listed:
            raise NotFoundError("no such ledger")
        if entry in self._unparsed:
            raise UnavailableError("the server failed")
        return entry in self.hidden and not self._loading


def ids(entries: BrokerEntries, first: int = 0, last: int = COUNT - 1) -> list[int]:
    return [int(n) for block in entries.read(LEDGER, first, last) for n in block.entry_ids]


class TestBrokerEntries(EntrySourceContract):
    @pytest.fixture(params=[1, 4, 100])
    def case(self, request: pytest.FixtureRequest) -> EntryCase:
        broker = FakeBroker(each=request.param, hidden=HIDDEN)
        return EntryCase(
            open=lambda: nullcontext(broker.entries()),
            ledger_id=LEDGER,
            entries=[None if n in HIDDEN else one for n, one in enumerate(ENTRIES)],
            missing=8,
        )


class TestRowsThroughTheBroker(SourceContract):
    @pytest.fixture(params=[1, 4, 100])
    def case(self, request: pytest.FixtureRequest) -> Case:
        def rows(options: Mapping[str, Any], rows: RowFormat) -> RowSource:
            broker = FakeBroker(**options)
            return EntryRows(lambda _: broker.entries(), rows, together=False)

        found = case_of(
            partial(rows, {"each": request.param, "hidden": HIDDEN}),
            partial(rows, {"silent": True}),
            partial(rows, {"each": 2, "hidden": HIDDEN, "fails_at": COUNT // 2}),
        )
        return replace(found, rows=[row for row in ROWS if row["__entryId"] not in HIDDEN])


def test_nothing_is_asked_of_entries_that_come() -> None:
    broker = FakeBroker()
    assert ids(broker.entries()) == list(range(COUNT))
    assert broker.asked == []
    assert broker.lent == 0


@pytest.mark.parametrize("each", [1, 3, 100])
@pytest.mark.parametrize("hidden", [[0], [5], [5, 6, 7], [COUNT - 1], range(COUNT), [0, 2, 4, 11]])
def test_each_hidden_entry_is_asked_for_once(hidden: Sequence[int], each: int) -> None:
    broker = FakeBroker(hidden=hidden, each=each)
    assert ids(broker.entries()) == [n for n in range(COUNT) if n not in hidden]
    assert broker.asked == list(hidden)
    assert broker.read_from == [0]


@pytest.mark.parametrize("each", [1, 5, 100])
@pytest.mark.parametrize("at", [0, 4, COUNT - 1])
@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("refused", f"entry {LEDGER}:{{}} of a/b/c, which has messages.*entry filter"),
        ("unparsed", f"entry {LEDGER}:{{}} of a/b/c, and does not say what it is.*damaged"),
    ],
)
def test_an_entry_that_is_kept_back_is_an_error_that_names_it(
    why: str, text: str, at: int, each: int
) -> None:
    """It was asked for twice, and nothing behind it was given."""
    broker = FakeBroker(each=each, hidden=[1], **{why: [at]})  # type: ignore[arg-type]
    found: list[int] = []
    with pytest.raises(UnsupportedError, match=text.format(at)):
        for block in broker.entries().read(LEDGER, 0, COUNT - 1):
            found += block.entry_ids.tolist()
    assert found == [n for n in range(len(found) + 1 if len(found) else 0) if n != 1]
    assert all(n < at for n in found)
    assert broker.asked.count(at) == 2
    assert broker.lent == 0


def test_a_topic_that_is_being_loaded_is_waited_for() -> None:
    broker = FakeBroker(hidden=[3, COUNT - 1], loading=1)
    assert ids(broker.entries()) == [n for n in range(COUNT - 1) if n != 3]
    assert broker.read_from == [0, 0]
    with pytest.raises(UnsupportedError):
        ids(FakeBroker(loading=2).entries())


def test_what_was_given_is_not_given_again() -> None:
    """An entry in the middle comes late: reading goes on where it was."""
    broker = FakeBroker(each=3, refused=[7])
    found: list[int] = []
    reading = broker.entries().read(LEDGER, 0, COUNT - 1)
    for block in reading:
        found += block.entry_ids.tolist()
        if 5 in found:
            break
    broker._left_out = set()  # noqa: SLF001 - its own
    found += [int(n) for block in reading for n in block.entry_ids]
    assert found == list(range(COUNT))


@pytest.mark.parametrize("ledger_id", [5, 8])
def test_a_trimmed_ledger(ledger_id: int) -> None:
    with pytest.raises(LedgerGoneError, match=f"ledger {ledger_id} of a/b/c has been trimmed"):
        list(FakeBroker().entries().read(ledger_id, 0, 3))


def test_a_ledger_that_is_trimmed_while_it_is_read() -> None:
    broker = FakeBroker(each=2)
    reading = broker.entries().read(LEDGER, 0, COUNT - 1)
    next(reading)
    del broker.listed[LEDGER]
    broker._left_out = set(range(6, COUNT))  # noqa: SLF001 - its own
    with pytest.raises(LedgerGoneError):
        list(reading)


@pytest.mark.parametrize("error", [UnavailableError("silent"), NotFoundError("no such topic")])
def test_errors_of_the_client_are_raised(error: PulsarLakeError) -> None:
    def read(*_: Any) -> Generator[EntryBlock]:
        raise error
        yield

    clients: Any = SimpleNamespace(
        settings=ReadConfig(), broker=lambda: nullcontext(SimpleNamespace(read=read))
    )
    with pytest.raises(type(error)):
        list(BrokerEntries(clients, PARTITION).read(LEDGER, 0, 3))


def test_what_the_broker_gives_was_not_aborted() -> None:
    """Nobody is asked for a second opinion: the broker gave the entry after the decision."""
    inside = entry(b"x", txnid_least_bits=1, txnid_most_bits=2)
    broker = FakeBroker({LEDGER: [inside, entry(b"marker"), entry(b"aborted")]}, hidden=[1, 2])
    assert list(broker.entries().aborted(LEDGER, [(2, 1)])) == []
    assert ids(broker.entries(), 0, 2) == [0]


def test_one_client_reads_split_after_split() -> None:
    """And another one where it is being used."""
    lent: list[str] = []

    @contextmanager
    def broker() -> Iterator[Any]:
        lent.append(f"client {len(lent)}")
        yield lent[-1]
        lent.append("back")

    clients: Any = SimpleNamespace(broker=broker)
    with HeldBroker(clients) as held:
        assert lent == []
        for _ in range(2):
            with held.lend() as first:
                assert str(first) == "client 0"
        with held.lend(), held.lend() as other:
            assert str(other) == "client 1"
        assert lent == ["client 0", "client 1", "back"]
        assert BrokerEntries.of_splits(clients, held.lend, [split(LEDGER)]).partition == PARTITION
    assert lent[-1] == "back"
    assert len(lent) == 4
