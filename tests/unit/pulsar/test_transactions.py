"""What is believed of a partition's transactions while its broker loads and unloads it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from reader.config import PulsarConfig
from reader.errors import UnavailableError, UnsupportedError
from reader.model import Partition, Position, Topic
from reader.pulsar.admin import AdminClient
from testbed.serving import HttpAnswer, answering

PARTITION = Partition(Topic("public", "default", "orders"), 0)
LAST = Position(4, 9)

OFF: HttpAnswer = (
    503,
    {"reason": "This Broker is not configured with transactionCoordinatorEnabled=true."},
    {},
)
NOT_LOADED: HttpAnswer = 404, {"reason": "Topic not found persistent://public/default/orders"}, {}


def buffer(
    state: str | None = "Ready",
    most: str = "4:9",
    ongoing: int = 0,
    loaded: int = 1,
    aborts: int | None = 3,
) -> HttpAnswer:
    stats = {"state": state, "maxReadPosition": most, "ongoingTxnSize": ongoing}
    if aborts is not None:
        stats["totalAbortedTransactions"] = aborts
    return 200, {**stats, "recoverStartTime": loaded}, {}


def decided(aborted: bool) -> HttpAnswer:
    return 200, {"aborted": aborted}, {}


@dataclass
class Broker:
    """What it answers to each kind of request; the last of its answers again and again."""

    buffers: list[HttpAnswer]
    outcomes: list[HttpAnswer] = field(default_factory=list)
    entry: HttpAnswer = (200, {}, {})
    version: HttpAnswer = (200, "4.2.4", {})
    asked: list[str] = field(default_factory=list)
    now: float = 100.0

    def answer(self, path: str) -> HttpAnswer:
        if "/transactionBufferStats/" in path:
            self.asked.append("buffer")
            return self.buffers.pop(0) if len(self.buffers) > 1 else self.buffers[0]
        if "/transactionInBufferStats/" in path:
            self.asked.append("outcome")
            return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if "/entry/" in path:
            assert path.endswith("/ledger/4/entry/9")
            self.asked.append("entry")
            return self.entry
        if path == "/admin/v2/brokers/version":
            self.asked.append("version")
            return self.version
        assert path.endswith("/internalStats")
        self.asked.append("load")
        return 200, {}, {}

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def waited(self) -> float:
        return self.now - 100


@contextmanager
def client(broker: Broker) -> Iterator[AdminClient]:
    with answering(lambda asked: broker.answer(asked.target)) as url:
        config = PulsarConfig(admin_url=url)
        with AdminClient(config, clock=broker.clock, sleep=broker.sleep) as admin:
            yield admin


def max_read(broker: Broker, last: Position = LAST) -> Position | None:
    with client(broker) as admin:
        return admin.max_read(PARTITION, last)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (OFF, LAST),
        ((204, None, {}), LAST),  # a topic that has no transaction buffer
        (buffer(), LAST),
        (buffer("NoSnapshot"), LAST),
        (buffer(most="4:3", ongoing=1), Position(4, 3)),
        (buffer(most="5:1", ongoing=1), LAST),
    ],
)
def test_a_ready_buffer_is_believed_at_once(answer: HttpAnswer, found: Position) -> None:
    broker = Broker([answer])
    assert max_read(broker) == found
    assert broker.asked == ["buffer"]


@pytest.mark.parametrize("answer", [(404, "<html>", {}), (405, "", {})])
@pytest.mark.parametrize("version", ["2.7.1", '"2.6.0-SNAPSHOT"\n'])
def test_a_pulsar_that_is_older_than_transactions_has_none(
    answer: HttpAnswer, version: str
) -> None:
    broker = Broker([answer], version=(200, version, {}))
    assert max_read(broker) == LAST
    assert broker.asked == ["buffer", "version"]


@pytest.mark.parametrize(
    "version",
    [
        (200, "2.8.0", {}),
        (200, '"4.2.4"', {}),
        (200, "10.0.1", {}),
        (200, "2", {}),
        (200, "<html>2.7.1", {}),  # a proxy's
        (404, "2.7.1", {}),
        (503, "<html>", {}),
    ],
)
def test_the_404_of_a_proxy_does_not_mean_that_there_are_no_transactions(
    version: HttpAnswer,
) -> None:
    """It sends one while it knows of no broker."""
    foreign: HttpAnswer = 404, "404 page not found", {}
    broker = Broker([foreign], version=version)
    assert max_read(broker) is None
    ready = buffer(most="4:3", ongoing=1)
    assert max_read(Broker([foreign, ready], version=version)) == Position(4, 3)
    with pytest.raises(UnavailableError):
        ask(Broker([foreign], version=version))


@pytest.mark.parametrize(
    "answer",
    [
        # Raw, this is the last entry, and nothing is open yet: for an empty buffer's reason.
        buffer("Initializing"),
        buffer("None"),
        buffer("FirstSnapshotting"),
        buffer("Close"),
        buffer("ClosedAndCleared"),
        buffer("Whatever comes next"),
        buffer(None),
        (200, {"state": "Ready"}, {}),
        NOT_LOADED,
        (503, {"reason": "Namespace bundle is being unloaded"}, {}),
        (503, "<html>", {}),  # a balancer's
    ],
)
def test_no_other_state_means_that_nothing_is_open(answer: HttpAnswer) -> None:
    broker = Broker([answer])
    assert max_read(broker) is None
    assert 10 <= broker.waited <= 12

    ready = buffer(most="4:3", ongoing=1)
    broker = Broker([answer, answer, answer, ready])
    assert max_read(broker) == Position(4, 3)
    assert 0 < broker.waited < 1


def test_a_topic_that_nobody_has_loaded_is_loaded() -> None:
    broker = Broker([NOT_LOADED, buffer("Initializing"), buffer()])
    assert max_read(broker) == LAST
    assert broker.asked == ["buffer", "load", "buffer", "buffer"]


def test_a_buffer_that_stays_behind_is_passed_by_the_entry_itself() -> None:
    """With no transaction open, it has heard of all entries but maybe the last one."""
    behind = buffer(most="4:3")
    broker = Broker([behind])
    assert max_read(broker) == LAST
    assert broker.waited < 1
    assert broker.asked.count("entry") == 1

    # Of a transaction that the buffer has not heard of yet: it is open, or about to be.
    of_transaction: HttpAnswer = 200, "x", {"X-Pulsar-txnid-most-bits": "1"}
    heard = buffer(most="4:8", ongoing=1)
    broker = Broker([behind] * 6 + [heard], entry=of_transaction)
    assert max_read(broker) == Position(4, 8)

    for entry in (of_transaction, NOT_LOADED):
        broker = Broker([behind], entry=entry)
        assert max_read(broker) is None

    broker = Broker([buffer(most="3:7")])
    assert max_read(broker, Position(4, -1)) == Position(4, -1)  # there is no entry to ask for
    assert "entry" not in broker.asked


def ask(broker: Broker, times: int = 1) -> list[bool]:
    with client(broker) as admin:
        found = admin.aborted_transactions(PARTITION, [(1, least) for least in range(times)])
        assert found <= {(1, least) for least in range(times)}
        return [(1, least) in found for least in range(times)]


@pytest.mark.parametrize(
    ("answers", "may"),
    [
        ([buffer()], True),
        ([buffer(aborts=0)], False),
        ([buffer(aborts=None)], True),
        ([buffer("NoSnapshot", aborts=0)], False),
        ([buffer("Initializing", aborts=0), buffer()], True),
        ([NOT_LOADED, buffer(aborts=0)], False),
        ([OFF], False),
    ],
)
def test_whether_any_was_aborted(answers: list[HttpAnswer], may: bool) -> None:
    with client(Broker(answers)) as admin:
        assert admin.may_have_aborted(PARTITION) is may


def test_whether_any_was_aborted_nobody_says() -> None:
    with client(Broker([buffer("Initializing", aborts=0)])) as admin:
        with pytest.raises(UnavailableError, match="still recovering"):
            admin.may_have_aborted(PARTITION)


def test_a_decided_transaction() -> None:
    assert ask(Broker([buffer()], [decided(True)])) == [True]
    broker = Broker([buffer()], [decided(False)])
    assert ask(broker, times=3) == [False] * 3
    assert broker.asked == ["buffer", *["outcome"] * 3, "buffer"]
    broker = Broker([buffer()], [decided(False), decided(True), decided(False)])
    assert ask(broker, times=3) == [False, True, False]
    broker = Broker([buffer()], [decided(False)])
    assert ask(broker, times=250) == [False] * 250
    assert broker.asked.count("buffer") == 6  # many are asked in parts


def test_nothing_is_asked_where_none_was_aborted() -> None:
    none = buffer(aborts=0)
    broker = Broker([none])
    assert ask(broker, times=250) == [False] * 250
    assert broker.asked == ["buffer"] * 4
    assert ask(Broker([buffer("NoSnapshot", aborts=0)])) == [False]
    # An older Pulsar does not count them.
    assert ask(Broker([buffer(aborts=None)], [decided(True)])) == [True]


@pytest.mark.parametrize("first", [buffer("Initializing", aborts=0), buffer(aborts=0, loaded=1)])
def test_a_count_of_another_load_is_none(first: HttpAnswer) -> None:
    """It is taken before the state is: of the load before, or while it was being counted."""
    later = buffer(aborts=2, loaded=2)
    broker = Broker([first, buffer(aborts=0, loaded=2), later], [decided(True)])
    assert ask(broker) == [True]


@pytest.mark.parametrize("during", [buffer("Initializing", loaded=2), NOT_LOADED, buffer(loaded=2)])
def test_not_aborted_counts_if_the_buffer_was_ready_before_and_after(during: HttpAnswer) -> None:
    # A loading buffer knows of no aborted transaction.
    broker = Broker([buffer(), during, buffer(loaded=2)], [decided(False), decided(True)])
    assert ask(broker) == [True]
    # Asked while it loaded, answered for once it was ready: still no answer.
    broker = Broker([buffer("Initializing"), buffer()], [decided(True)])
    assert ask(broker) == [True]
    assert broker.asked == ["buffer", "buffer", "outcome"]
    # Gone when it was asked.
    broker = Broker([buffer(), during, buffer(loaded=2)], [NOT_LOADED, decided(False)])
    assert ask(broker) == [False]


def test_an_outcome_that_nobody_gives_is_not_a_commit() -> None:
    broker = Broker([buffer()], [NOT_LOADED, (503, "", {}), decided(False)])
    assert ask(broker) == [False]
    assert broker.asked.count("outcome") == 3


@pytest.mark.parametrize(
    ("buffers", "error"),
    [
        ([buffer("Initializing")], UnavailableError),
        ([buffer(), NOT_LOADED], UnavailableError),
        ([OFF], UnsupportedError),
    ],
)
def test_who_cannot_tell_what_became_of_it(
    buffers: list[HttpAnswer], error: type[Exception]
) -> None:
    with pytest.raises(error):
        ask(Broker(buffers, [decided(False)]))


LISTING = {
    "lastConfirmedEntry": "4:9",
    "ledgers": [{"ledgerId": 4, "entries": 0, "size": 0}],
    "cursors": {},
}


def test_the_listing_says_that_it_does_not_know() -> None:
    class Listed(Broker):
        def answer(self, path: str) -> HttpAnswer:
            if "/transaction" in path:
                return super().answer(path)
            return 200, LISTING if "/internalStats" in path else {}, {}

    with client(Listed([buffer("Initializing")])) as admin:
        found = admin.ledgers(PARTITION)
    assert found.recovering
    assert found.max_read < Position(0, 0)
    with client(Listed([buffer("Initializing"), buffer()])) as admin:
        found = admin.ledgers(PARTITION)
    assert (found.recovering, found.max_read) == (False, LAST)

    # Who reads no further than was planned does not ask.
    broker = Listed([buffer("Initializing")])
    with client(broker) as admin:
        found = admin.ledgers(PARTITION, transactions=False)
    assert (found.last_confirmed, found.recovering, broker.waited) == (LAST, True, 0)
    assert "buffer" not in broker.asked
