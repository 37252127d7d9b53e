"""A read through the broker accounts for every entry, whatever its client says."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, cast

import pytest

from reader.config import PulsarConfig
from reader.errors import NotFoundError, PulsarLakeError, UnavailableError, UnsupportedError
from reader.model import Partition, Position, Topic
from reader.pulsar.admin import AdminClient
from reader.pulsar.entries import EntryInfo
from reader.sources.broker import BrokerReader
from tests.unit.sources.test_broker_messages import Message

PARTITION = Partition(Topic("t", "n", "one"), -1)
At = tuple[int, int]
Chunk = tuple[str, int, int]


class PulsarException(Exception):  # noqa: N818 - pulsar-client's name
    pass


class Timeout(PulsarException):
    pass


@dataclass(frozen=True)
class Id:
    """As pulsar-client shows it."""

    at: tuple[int, int, int]
    begin: int | None

    def ledger_id(self) -> int:
        return self.at[0]

    def entry_id(self) -> int:
        return self.at[1]

    def batch_index(self) -> int:
        return self.at[2]

    def __str__(self) -> str:
        own = f"({self.at[0]},{self.at[1]},-1,{self.at[2]})"
        return own if self.begin is None else f"(7,{self.begin},-1,-1);{own}"


@dataclass
class Placed(Message):
    at: tuple[int, int, int] = (7, 0, -1)
    begin: int | None = None

    def message_id(self) -> Id:
        return Id(self.at, self.begin)


@dataclass
class Log:
    """What the client gives, as (entry, batch index) of ledger 7, and what the broker says.

    ``denied``: so often the client says that there is nothing, although there is. ``entries``: how
    many messages an entry has, or which chunk it is; those that are not there the broker cannot
    read, and of None it says nothing. ``begins``: the first chunk of a message, by its last one's.
    ``later``: last chunks in the ledger behind, and where they begin.
    """

    given: Sequence[At]
    entries: Mapping[int, int | Chunk | None]
    denied: int = 0
    beyond: bool = False
    trimmed: bool = False
    now: float = 0.0
    asked: list[int] = field(default_factory=list)
    begins: Mapping[int, int] = field(default_factory=dict)
    later: Sequence[tuple[int, int | None]] = ()


class Admin(AdminClient):
    def __init__(self, log: Log) -> None:
        super().__init__(PulsarConfig())
        self._log = log

    def ledger_ids(self, partition: Partition) -> set[int]:
        return set() if self._log.trimmed else {7}

    def ledgers(self, partition: Partition, *, transactions: bool = True) -> Any:
        return None

    def entry_info(self, partition: Partition, ledger: int, entry: int) -> EntryInfo:
        self._log.asked.append(entry)
        if self._log.trimmed:
            raise NotFoundError("gone")
        found = self._log.entries[entry]
        if found is None:
            raise UnavailableError("silence")
        return EntryInfo(found) if isinstance(found, int) else EntryInfo(1, *found)


class Reader:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._left = [Placed(at=(7, *at), begin=log.begins.get(at[0])) for at in log.given]
        self._left += [Placed(at=(8, entry, -1), begin=begin) for entry, begin in log.later]
        if log.beyond:
            self._left.append(Placed(at=(8, 99, -1)))

    def has_message_available(self) -> bool:
        if self._log.denied:
            self._log.denied -= 1
            return False
        return bool(self._left)

    def read_next(self, timeout: int) -> Any:
        if not self._left:
            self._log.now += timeout / 1000
            raise Timeout("silence")
        return self._left.pop(0)

    def close(self) -> None:
        pass


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[At], list[int | None]]]:
    def reading(
        log: Log, last: int = 3, *, strict: bool = False
    ) -> tuple[list[At], list[int | None]]:
        pulsar = cast(Any, ModuleType("pulsar"))
        for name in ("AuthorizationError", "AuthenticationError", "TopicNotFound"):
            setattr(pulsar, name, type(name, (PulsarException,), {}))
        pulsar.PulsarException, pulsar.Timeout = PulsarException, Timeout
        client = cast(Any, ModuleType("client"))
        client.create_reader = lambda *_, **__: Reader(log)
        client.close = lambda: None
        pulsar.Client = lambda *_, **__: client
        pulsar.MessageId = lambda *at: at
        pulsar.FileLogger = lambda *_: None
        pulsar.LoggerLevel = cast(Any, ModuleType("level"))
        pulsar.LoggerLevel.Error = 0
        monkeypatch.setitem(sys.modules, "pulsar", pulsar)
        rows: list[At] = []
        ends = []
        columns = ("__entryId", "__batchIndex")

        def pause(seconds: float) -> None:
            log.now += seconds

        with (
            Admin(log) as admin,
            BrokerReader(PulsarConfig(), admin, clock=lambda: log.now, sleep=pause) as reader,
        ):
            for end, messages in reader.read(
                PARTITION, Position(7, 0), Position(7, last), columns=columns, strict=strict
            ):
                ends.append(end)
                found = (messages.columns[name].to_pylist() for name in columns)
                rows += zip(*found, strict=True)
        return rows, ends

    return reading


Read = Callable[..., tuple[list[At], list[int | None]]]
SINGLE = [(n, -1) for n in range(4)]
ONES = dict.fromkeys(range(4), 1)


@pytest.mark.parametrize("denied", range(8))
def test_a_client_that_says_too_early_that_there_is_no_more_is_not_believed(
    read: Read, denied: int
) -> None:
    assert read(Log(SINGLE, ONES, denied=denied))[0] == SINGLE
    batch = [(0, -1), (1, 0), (1, 1), (1, 2)]
    assert read(Log(batch, {0: 1, 1: 3}, denied=denied), last=1)[0] == batch


@pytest.mark.parametrize("given", [[], SINGLE[:1], SINGLE[:3]])
@pytest.mark.parametrize("denied", [0, 10_000])
def test_what_never_comes_is_an_error(read: Read, given: list[At], denied: int) -> None:
    with pytest.raises(UnavailableError):
        read(Log(given, ONES, denied=denied))


@pytest.mark.parametrize("denied", [0, 10_000])
def test_within_a_batch_at_the_end(read: Read, denied: int) -> None:
    with pytest.raises(UnavailableError):
        read(Log([(0, -1), (1, 0)], {0: 1, 1: 2}, denied=denied), last=1)


def test_entries_without_a_message_are_accounted_for_by_the_broker(read: Read) -> None:
    log = Log([(1, 0), (1, 1)], {0: 0, 1: 2, 2: 0, 3: 0})
    assert read(log)[0] == [(1, 0), (1, 1)]
    assert set(log.asked) == {0, 1, 2, 3}
    assert read(Log([], dict.fromkeys(range(4), 0)))[0] == []


@pytest.mark.parametrize("entries", [{1: 1, 3: 0}, {1: 0, 3: 5}])
@pytest.mark.parametrize("beyond", [True, False])
def test_an_entry_that_has_messages_is_never_left_out(
    read: Read, entries: dict[int, int], beyond: bool
) -> None:
    with pytest.raises(UnavailableError):
        read(Log([(0, -1), (2, -1)], entries, beyond=beyond))


def test_a_later_message_shows_that_all_before_it_came(read: Read) -> None:
    log = Log([*SINGLE[:3], (3, 0), (3, 1)], {}, beyond=True)
    assert len(read(log)[0]) == 5
    assert log.asked == []


def test_a_ledger_that_was_trimmed(read: Read) -> None:
    with pytest.raises(NotFoundError):
        read(Log(SINGLE[:2], {}, beyond=True, trimmed=True))


@pytest.mark.parametrize("beyond", [True, False])
@pytest.mark.parametrize(
    ("sent", "given", "sound"),
    [
        ("012", [2], True),
        ("01", [], True),
        ("0122", [2], True),
        ("01212", [2], True),
        ("012012", [2, 5], True),
        ("12", [1], True),  # it begins before
        ("012", [], False),
        ("0012", [], False),
        ("0112", [], False),
        ("012012", [2], False),
        ("012012", [5], False),
        ("02", [], False),
        ("021", [], False),
        ("12", [], False),
        ("2", [], False),
    ],
)
def test_chunks_without_a_message(
    read: Read, sent: str, given: list[int], sound: bool, beyond: bool
) -> None:
    chunks = {n: ("u", int(number), 3) for n, number in enumerate(sent)}
    begins = {n: sent.rindex("0", 0, n) for n in given if "0" in sent[:n]}
    log = Log([(n, -1) for n in given], chunks, beyond=beyond, begins=begins)
    if sound:
        assert [entry for entry, _ in read(log, last=len(sent) - 1)[0]] == given
    else:
        with pytest.raises(UnavailableError):
            read(log, last=len(sent) - 1)


@pytest.mark.parametrize(("messages", "between"), [(100, 1_000), (1, 10_001)])
def test_a_last_chunk_that_is_sent_again_much_later(
    read: Read, messages: int, between: int
) -> None:
    """Whatever came in between: what it is says one request."""
    uuids = [f"u{n}" for n in range(messages)]
    entries: list[int | Chunk] = [(uuid, n, 2) for uuid in uuids for n in (0, 1)]
    given = [(n, -1) for n in (*range(1, len(entries), 2), *range(len(entries), 10**6))]
    begins = {n: n - 1 for n in range(1, len(entries), 2)}
    entries += [1] * between
    given = given[: messages + between]
    entries += [(uuid, 1, 2) for uuid in uuids]
    log = Log(given, dict(enumerate(entries)), begins=begins, beyond=True)
    assert len(read(log, last=len(entries) - 1)[0]) == len(given)
    assert len(log.asked) == 2 * messages


def test_of_chunks_of_compressed_messages_the_broker_says_nothing(read: Read) -> None:
    """They are within a message that came: here or, behind the range, later."""
    silent = dict.fromkeys(range(4))
    assert read(Log([(3, -1)], silent, begins={3: 0}))[0] == [(3, -1)]
    mixed = [(1, -1), (3, -1)]
    assert read(Log(mixed, silent, begins={3: 0}))[0] == mixed
    one_behind = Log(mixed, silent, begins={3: 2}, later=[(0, None), (1, 0)])
    assert read(one_behind)[0] == mixed
    assert sorted(one_behind.asked) == [0, 2], "an answer that never comes takes seconds"
    lasts = range(2, 60, 3)
    begins = {n: n - 2 for n in lasts}
    many = Log([(n, -1) for n in lasts], dict.fromkeys(range(60)), begins=begins)
    assert len(read(many, last=59)[0]) == 20
    assert many.asked == [0], "once for a producer"
    tails = Log([(1, -1), (2, -1)], silent, begins={1: 0}, later=[(0, 3)])
    assert read(tails)[0] == tails.given
    assert tails.asked == [0]


@pytest.mark.parametrize(
    "log",
    [
        Log([(1, -1), (3, -1)], dict.fromkeys(range(4)), begins={3: 2}),
        Log([(3, -1)], {0: None, 1: ("u", 0, 3), 2: 1}, begins={3: 1}),
        Log([(3, -1)], {0: ("u", 0, 3), 1: 1, 2: ("u", 1, 3)}, begins={3: 0}),
        Log([(1, -1)], {0: None, 2: None, 3: None}, begins={1: 0}, later=[(0, None)]),
        Log([(1, -1)], {0: 0, 2: 0, 3: None}),
    ],
    ids=["before", "before chunks", "among chunks", "behind", "at the end"],
)
@pytest.mark.parametrize("beyond", [True, False])
def test_what_nobody_explains_is_an_error(read: Read, log: Log, beyond: bool) -> None:
    with pytest.raises(UnavailableError):
        read(replace(log, beyond=beyond))


@pytest.mark.parametrize(
    ("given", "entries", "error"),
    [
        (SINGLE, {}, None),
        ([*SINGLE[:3], (3, 0), (3, 1)], {3: 2}, None),
        ([*SINGLE[:3], (3, 0)], {3: 2}, UnsupportedError),
        (SINGLE[:3], {}, UnsupportedError),
        (SINGLE[:1] + SINGLE[2:], {}, UnsupportedError),
    ],
)
@pytest.mark.parametrize("denied", [0, 10_000])
def test_a_strict_read_needs_all_messages(
    read: Read,
    given: list[At],
    entries: dict[int, int],
    error: type[PulsarLakeError] | None,
    denied: int,
) -> None:
    log = Log(given, entries, denied=denied)
    if error or denied:
        with pytest.raises(UnsupportedError):
            read(log, strict=True)
    else:
        assert read(log, strict=True)[0] == given


def test_a_large_entry_is_several_batches(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its messages has the producer's name again; what is delivered is known at its end."""
    monkeypatch.setattr("reader.sources.broker.broker_reader.BATCH_BYTES", 20)
    given = [(0, n) for n in range(90)] + [(n, -1) for n in range(1, 12)]
    rows, ends = read(Log(given, {}, beyond=True), last=11)
    assert rows == given
    assert ends == [None, None, None, None, 0, 5, 10, 11]


def test_properties_count(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack: a message of no bytes may have a megabyte of them."""
    monkeypatch.setattr("reader.sources.broker.broker_reader.BATCH_BYTES", 100)
    monkeypatch.setattr(Placed, "properties", lambda _: {"name": "x" * 90})
    given = [(n, -1) for n in range(4)]
    rows, ends = read(Log(given, {}, beyond=True))
    assert rows == given
    assert ends == [0, 1, 2, 3]


def test_properties_count_as_what_they_take(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Placed, "properties", lambda _: {f"{n:x}": "" for n in range(30_000)})
    given = [(n, -1) for n in range(4)]
    _, ends = read(Log(given, {}, beyond=True))
    assert ends == [1, 3], "4.5 MB each"


def test_a_message_is_asked_once_for_each_value(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client makes each anew: some, like properties, take as long as all the rest."""
    asked: list[str] = []
    names = ("data", "partition_key", "properties", "publish_timestamp")
    for name in names:

        def ask(self: Placed, name: str = name) -> Any:
            asked.append(name)
            return getattr(Message, name)(self)

        monkeypatch.setattr(Placed, name, ask, raising=False)
    assert read(Log(SINGLE[:1], ONES), last=0)[0] == SINGLE[:1]
    assert sorted(asked) == sorted(names)
