"""Whether what Pulsar lists and what a table holds are of one history."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from offloader.commit.delta_committer import DeltaCommitter
from reader.config import ReadConfig
from reader.errors import ConfigurationError
from reader.plan.history import HistoryChecks, check_same_topic, last_closed
from reader.plan.snapshot import take_snapshot
from reader.pulsar import LedgerInfo, PartitionLedgers
from reader.storage import Storage, open_storage
from reader.table import LoggedCommit, OffloadedLedger, TopicTable
from tests.support.additions import CREATED, addition, open_table
from tests.unit.plan.test_snapshot import PART, TOPIC, FakeAdmin, FakeClients, listing, opened
from tests.unit.plan.test_snapshot import sealed as sealed_ledger


@pytest.fixture
def config(tmp_path: Path) -> ReadConfig:
    return ReadConfig.load({"storage": {"uri": str(tmp_path)}})


@pytest.fixture
def storage(config: ReadConfig) -> Storage:
    return open_storage(config.storage)


def sealed(ledger: int, entries: int = 10, **changes: Any) -> LedgerInfo:
    """Closed at a thousand times its id, if nothing else is said."""
    return sealed_ledger(ledger, entries, **{"closed_at": 1000 * ledger, **changes})


def listed(ledgers: Sequence[LedgerInfo], **changes: Any) -> PartitionLedgers:
    found = [one for one in ledgers if one.metadata and one.metadata.closed and one.entries]
    end = f"{found[-1].ledger_id}:{found[-1].entries - 1}" if found else "0:-1"
    return listing(ledgers, end, **{"created_at": CREATED, **changes})


def offload(
    storage: Storage,
    part: PartitionLedgers,
    upto: int,
    *,
    numbers: bool = True,
    losses: Sequence[OffloadedLedger] = (),
) -> TopicTable:
    """What a turn commits of the listed ledgers. ``numbers``: with what older versions left out."""
    table = TopicTable.open(storage, TOPIC)
    before = table.watermark(PART) if table else -1
    wanted = [one for one in part.ledgers if before < one.ledger_id <= upto]
    ids = [one.ledger_id for one in wanted]
    made = addition(storage, TOPIC, ids, before=before, partition=-1)
    ledgers = (
        OffloadedLedger(
            -1,
            one.ledger_id,
            entries=part.last_entry(one) + 1,
            rows=10,
            bytes=one.bytes,
            tier="bookkeeper",
            closed_at=part.closed_at(one) if numbers else None,
        )
        for one in wanted
    )
    [advance] = made.advances
    advance = replace(advance, closed=last_closed(table, part, upto) if numbers else None)
    return DeltaCommitter(storage).commit(
        table, replace(made, advances=(advance,), ledgers=(*losses, *ledgers))
    )


BEFORE = listed([sealed(5), sealed(6), sealed(7), sealed(8), opened(9)])
"""5 to 8 are offloaded. In the backup, 6 was open."""

REUSED = {
    "two given again": listed([sealed(5), sealed(6), sealed(7, 20, closed_at=9500), opened(9)]),
    "the open one is below": listed([sealed(5), sealed(6), opened(7)]),
    "recovered": listed([sealed(5), sealed(6, 4, closed_at=9200), opened(12)]),
    "empty before": listed([sealed(5), sealed(6, 0), sealed(7, closed_at=9500), opened(12)]),
    "terminated": listed([sealed(6), sealed(7, closed_at=9500), sealed(8)], terminated=True),
    "made again there": listed([sealed(7), opened(9)], created_at="2026-06-06T00:00:00Z"),
}


@pytest.mark.parametrize("after", REUSED.values(), ids=REUSED)
def test_a_restored_cluster_is_refused(
    config: ReadConfig, storage: Storage, after: PartitionLedgers
) -> None:
    table = offload(storage, BEFORE, 8)
    clients = FakeClients(config, FakeAdmin(after))
    with pytest.raises(ConfigurationError, match="before a restore"):
        take_snapshot(clients, TOPIC)
    with pytest.raises(ConfigurationError, match="before a restore"):
        HistoryChecks().check(clients.admin, table, clients.admin.listings)
    take_snapshot(clients, TOPIC, checked=False)  # to show it


def test_a_restored_cluster_is_refused_when_the_log_has_been_cleaned_up(
    config: ReadConfig, storage: Storage
) -> None:
    offload(storage, BEFORE, 8)
    table = open_table(storage, TOPIC)
    table.handle.create_checkpoint()
    for file in Path(storage.directory(TOPIC)[1], "_delta_log").glob("*.json"):
        file.unlink()
    assert not list(open_table(storage, TOPIC).commits())
    for name in ("two given again", "the open one is below", "recovered", "terminated"):
        with pytest.raises(ConfigurationError, match="before a restore"):
            take_snapshot(FakeClients(config, FakeAdmin(REUSED[name])), TOPIC)


SAME = {
    "as it was": BEFORE,
    "trimmed": listed([sealed(8), opened(9)]),
    "all trimmed": listed([opened(9)]),
    "no ledger can be made": listed([sealed(7), sealed(8)]),
    "nor the last one be read": listed([sealed(8, metadata=None, offloaded=True)]),
    "went on": listed([sealed(7), sealed(8), sealed(9), sealed(10), opened(12)]),
    "an empty one deleted": listed([sealed(5), sealed(7), sealed(8), opened(10)]),
    "moved away by Pulsar": listed(
        [sealed(7, metadata=None, offloaded=True), sealed(8), opened(9)]
    ),
    "nothing yet": listed([], created_at=""),
    "deleted and made again": listed([opened(11)], created_at="2026-06-06T00:00:00Z"),
    "made again, and filled": listed([sealed(11), opened(12)], created_at="2026-06-06T00:00:00Z"),
}


@pytest.mark.parametrize("after", SAME.values(), ids=SAME)
@pytest.mark.parametrize("numbers", [True, False])
def test_the_same_cluster_is_not(
    config: ReadConfig, storage: Storage, after: PartitionLedgers, numbers: bool
) -> None:
    table = offload(storage, BEFORE, 8, numbers=numbers)
    clients = FakeClients(config, FakeAdmin(after))
    take_snapshot(clients, TOPIC)
    HistoryChecks().check(clients.admin, table, clients.admin.listings)


def check(table: TopicTable, part: PartitionLedgers) -> None:
    HistoryChecks().check(FakeAdmin(part), table, {PART: part})


def test_clocks_of_brokers_differ(storage: Storage) -> None:
    part = listed([sealed(5, closed_at=9000), sealed(6, closed_at=100), opened(7)])
    check(offload(storage, part, 6), part)
    later = listed([*part.ledgers[:2], sealed(7, closed_at=50), opened(8)])
    check(offload(storage, later, 7), later)
    table = open_table(storage, TOPIC)
    assert (table.numbers(PART).closed_at, table.numbers(PART).closed_ledger) == (9000, 7)


def test_a_terminated_topic_is_loaded_again(storage: Storage) -> None:
    """Its last ledger gets a new time; an empty last one is deleted."""
    ends = listed([sealed(5), sealed(6), sealed(7, 0)], terminated=True)
    table = offload(storage, ends, 7)
    check(table, ends)
    check(table, listed([sealed(5), sealed(6, closed_at=99_000)], terminated=True))
    other = listed([sealed(5), sealed(6, 11, closed_at=99_000)], terminated=True)
    with pytest.raises(ConfigurationError, match="11 entries, and not the 10"):
        check(table, other)


def test_an_older_version_offloads_in_between(storage: Storage) -> None:
    """It leaves the number where it was, behind its watermark."""
    offload(storage, BEFORE, 6)
    table = offload(storage, BEFORE, 8, numbers=False)
    assert (table.watermark(PART), table.numbers(PART).closed_ledger) == (8, 6)
    check(table, BEFORE)
    again = listed([*BEFORE.ledgers[:4], sealed(9), opened(10)])
    table = offload(storage, again, 9)
    assert (table.numbers(PART).closed_at, table.numbers(PART).closed_ledger) == (9000, 9)
    check(table, again)


def test_a_list_that_is_older_than_the_table(storage: Storage) -> None:
    """The open ledger is closed and offloaded before the table is read."""
    old = listed([sealed(5), sealed(6), opened(7)])
    new = listed([sealed(5), sealed(6), sealed(7), opened(8)])
    table = offload(storage, new, 7)
    admin = FakeAdmin(new)
    HistoryChecks().check(admin, table, {PART: old})
    assert admin.order == ["ledgers"], "asked again, once"
    with pytest.raises(ConfigurationError, match="ends with ledger 7"):
        check_same_topic(FakeAdmin(old), table, {PART: old})


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (sealed(8, 11), "11 entries, and not the 10"),
        (sealed(8, 9), "9 entries, and not the 10"),
        (sealed(8, closed_at=7999), "closed at 7999"),
    ],
)
def test_the_last_ledger_is_as_it_was_recorded(
    storage: Storage, last: LedgerInfo, message: str
) -> None:
    table = offload(storage, BEFORE, 8)
    with pytest.raises(ConfigurationError, match=message):
        check(table, listed([sealed(5), last, opened(9)]))


def test_a_ledger_that_no_commit_has_added(storage: Storage) -> None:
    lost = OffloadedLedger.lost_one(-1, 6)
    part = listed([sealed(5), sealed(8), opened(9)])
    offload(storage, part, 5)
    table = offload(storage, part, 8, losses=[lost])
    with pytest.raises(ConfigurationError, match="no commit has added it"):
        check(table, listed([sealed(5), sealed(7), opened(9)]))
    with pytest.raises(ConfigurationError, match="names it as lost"):
        check(table, listed([sealed(6), opened(9)]))


def test_commits_are_read_for_new_ledgers_only(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    commits: Callable[[TopicTable], Iterator[LoggedCommit]] = TopicTable.commits

    def counted(table: TopicTable) -> Iterator[LoggedCommit]:
        for one in commits(table):
            read.append(one.version)
            yield one

    monkeypatch.setattr(TopicTable, "commits", counted)
    checks = HistoryChecks()
    whole = listed([*(sealed(ledger) for ledger in range(1, 14)), opened(14)])
    for upto in range(1, 13):
        table = offload(storage, whole, upto)
        for _ in range(3):
            checks.check(FakeAdmin(whole), table, {PART: whole})
    assert len(read) == 12
    checks.check(FakeAdmin(whole), table, {PART: listed([opened(14)])})
    assert len(read) == 12


def test_a_broker_lags_that_tells_close_times(storage: Storage) -> None:
    """It has not seen yet that 7 is closed: the commit says nothing of it, and no later list
    contradicts that."""
    lagging = listed([sealed(5), sealed(6), sealed(7), opened(8)], timed_upto=7)
    table = offload(storage, lagging, 7)
    assert (table.numbers(PART).closed_at, table.numbers(PART).closed_ledger) == (6000, 6)
    now = listed([sealed(5), sealed(6), sealed(7, closed_at=9900), opened(8)])
    check(table, now)
    again = listed([*now.ledgers[:3], sealed(8, closed_at=9950), opened(9)])
    table = offload(storage, again, 8)
    assert (table.numbers(PART).closed_at, table.numbers(PART).closed_ledger) == (9950, 8)
