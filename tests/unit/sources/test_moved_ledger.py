"""A ledger that left BookKeeper since the snapshot is in the table wholly, or there is an error."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from offloader.commit.delta_committer import DeltaCommitter
from reader.clients import Clients
from reader.config import ReadConfig
from reader.errors import NotFoundError
from reader.model import LedgerIdentity, OffloadContext, Partition, Split, Stored, Topic
from reader.pulsar import PartitionLedgers
from reader.sources.fallback import LedgerNow, Stage
from reader.sources.moved_ledger import MovedLedger
from reader.sources.row_format import RowFormat
from reader.sources.split_reader import SplitReader, ledger_now
from reader.storage import Storage
from reader.table import OffloadedLedger, TopicTable
from tests.support.additions import addition
from tests.unit.plan.test_snapshot import PART, FakeAdmin, listing, opened, sealed
from tests.unit.sources.splits import metadata_of
from tests.unit.sources.splits import split as split_of
from tests.unit.sources.test_split_reader import Scripted

TOPIC = Topic("public", "default", "orders")
ROWS = RowFormat(pa.schema([]), (), pa.schema([("__entryId", pa.int64())]))


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    with Clients(ReadConfig.load({"storage": {"uri": str(tmp_path)}})) as made:
        yield made


def offload(
    storage: Storage,
    ledger: int,
    *,
    partition: int = 0,
    lost: int | None = None,
    closed_at: int | None = None,
) -> None:
    """Ten entries of a ledger; ``lost``: with the loss that the commit steps over."""
    table = TopicTable.open(storage, TOPIC)
    before = table.watermark(Partition(TOPIC, partition)) if table else -1
    added = addition(storage, TOPIC, [ledger], before=before, partition=partition)
    ours = (replace(one, closed_at=closed_at) for one in added.ledgers)
    losses = () if lost is None else (OffloadedLedger.lost_one(partition, lost),)
    DeltaCommitter(storage).commit(table, replace(added, ledgers=(*losses, *ours)))


def split(ledger: int, last: int = 9, partition: int = 0) -> Split:
    return replace(split_of(ledger, 0, last), partition=Partition(TOPIC, partition))


def entries(clients: Clients, one: Split, first: int = 0) -> list[int]:
    """Of a DataFrame's task: its ledger has just left BookKeeper, behind entry ``first - 1``."""
    gone = Scripted({first: NotFoundError("gone")})
    table = MovedLedger(clients, ROWS)
    found: list[int] = []
    reader = SplitReader(
        [one],
        sources={Stage.STORED: gone, Stage.TABLE: table},
        ledger_now=lambda _: (LedgerNow.GONE, None),
    )
    for batch in reader.batches():
        found += batch.column(0).to_pylist()
    return found


def test_what_was_offloaded_is_read_in_the_table(clients: Clients) -> None:
    for ledger in (10, 60, 70):
        offload(clients.storage, ledger)
    assert entries(clients, split(60)) == list(range(10))
    assert entries(clients, split(60), first=4) == list(range(10))
    assert entries(clients, split(10, last=3)) == [0, 1, 2, 3], "it was open, and shorter"


@pytest.mark.parametrize("ledger", [50, 51, 59])
def test_what_was_stepped_over_is_an_error(clients: Clients, ledger: int) -> None:
    """Pulsar deleted 50 to 59, and a commit went on at 60: they lie below the watermark."""
    offload(clients.storage, 10)
    offload(clients.storage, 60, lost=50)
    offload(clients.storage, 70)
    with pytest.raises(NotFoundError, match="the log names it as lost"):
        entries(clients, split(ledger))
    with pytest.raises(NotFoundError, match="as lost"):
        entries(clients, split(ledger), first=5)


@pytest.mark.parametrize("ledger", [5, 11, 40, 65, 71])
def test_what_no_commit_names_is_an_error(clients: Clients, ledger: int) -> None:
    """A loss that nobody noticed, or of another partition, or a ledger that is still to come."""
    offload(clients.storage, 10)
    offload(clients.storage, 40, partition=1)
    offload(clients.storage, 60, lost=50)
    offload(clients.storage, 70)
    with pytest.raises(NotFoundError, match="is not in the table"):
        entries(clients, split(ledger))


def test_fewer_entries_than_the_snapshot_saw_are_an_error(clients: Clients) -> None:
    offload(clients.storage, 10)
    with pytest.raises(NotFoundError, match="was offloaded with 10 entries"):
        entries(clients, split(10, last=10))
    with pytest.raises(NotFoundError, match="was offloaded with 10 entries"):
        entries(clients, split(10, last=10), first=5)


def test_another_ledger_of_the_same_id_is_an_error(clients: Clients) -> None:
    """The cluster was restored since the snapshot, and gave the id again."""
    seen = replace(split(10), identity=LedgerIdentity("2026", 5000, 9, 100))
    offload(clients.storage, 10, closed_at=6000)
    with pytest.raises(NotFoundError, match="saw another one, closed at 5000"):
        entries(clients, seen)
    offload(clients.storage, 11, closed_at=5000)
    assert entries(clients, replace(seen, ledger_id=11)) == list(range(10))


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (listing([sealed(1), opened(2)], "1:9"), LedgerNow.CHANGED),
        (listing([sealed(1, metadata=None), opened(2)], "1:9"), LedgerNow.BARE),
        (listing([sealed(1, closed_at=2000), opened(2)], "1:9"), LedgerNow.GONE),
        (listing([sealed(1), opened(2)], "1:9", created_at="created-2"), LedgerNow.GONE),
        (listing([sealed(1)], "1:9"), LedgerNow.CHANGED),  # nobody knows
        (listing([opened(2)], "1:9"), LedgerNow.GONE),
    ],
)
def test_another_ledger_is_not_read_on_in(part: PartitionLedgers, expected: LedgerNow) -> None:
    clients = cast(Clients, SimpleNamespace(admin=FakeAdmin(part)))
    one = replace(split_of(1), partition=PART, identity=LedgerIdentity("created-1", 1000, 9, 1000))
    assert ledger_now(clients, one)[0] is expected


FIRST, SECOND = (OffloadContext(f"4a1e9e0e-0000-0000-0000-00000000000{n}") for n in (1, 2))
BOOKIES, OTHERS = metadata_of(1, "a:1", "b:2"), metadata_of(1, "a:1", "c:3")


@pytest.mark.parametrize(
    ("planned", "listed", "expected"),
    [
        (FIRST, FIRST, LedgerNow.SAME),
        (FIRST, SECOND, LedgerNow.CHANGED),  # another attempt of the offload
        (BOOKIES, BOOKIES, LedgerNow.SAME),
        (BOOKIES, OTHERS, LedgerNow.CHANGED),
        (BOOKIES, FIRST, LedgerNow.CHANGED),
    ],
)
def test_where_a_ledger_is_stored_now(planned: Stored, listed: Stored, expected: LedgerNow) -> None:
    offload = listed if isinstance(listed, OffloadContext) else None
    now = sealed(1, metadata=None if offload else listed, offloaded=bool(offload), offload=offload)
    clients = cast(Clients, SimpleNamespace(admin=FakeAdmin(listing([now, opened(2)], "1:9"))))
    one = replace(split_of(1), partition=PART, metadata=planned)
    assert ledger_now(clients, one) == (expected, listed)


def test_transactions_that_are_being_recovered_hold_up_nobody() -> None:
    class Admin(FakeAdmin):
        def ledgers(self, partition: Partition, *, transactions: bool = True) -> PartitionLedgers:
            assert not transactions
            return super().ledgers(partition)

    clients = cast(Clients, SimpleNamespace(admin=Admin(listing([sealed(1)], "1:9"))))
    assert ledger_now(clients, replace(split_of(1), partition=PART))[0] is LedgerNow.CHANGED


def test_without_a_table_it_is_an_error(clients: Clients) -> None:
    with pytest.raises(NotFoundError, match="is not in the table"):
        entries(clients, split(10))


def test_commits_are_read_only_as_far_back_as_need_be(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    for ledger in range(10, 40):
        offload(clients.storage, ledger)
    asked: list[int] = []
    commits = TopicTable.commits

    def counted(table: TopicTable) -> Iterator[object]:
        for one in commits(table):
            asked.append(one.version)
            yield one

    monkeypatch.setattr(TopicTable, "commits", counted)
    assert entries(clients, split(38)) == list(range(10))
    assert len(asked) == 2
