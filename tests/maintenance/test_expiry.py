"""Old rows go out of the table, no younger one with them; and nobody gets fewer without a word."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from offloader.commit.actions import MAINTENANCE_KEY
from offloader.commit.delta_committer import DeltaCommitter
from offloader.maintenance.table_files import files_of
from offloader.output import ExpiredRows, Replacement
from reader.clients import Clients
from reader.config import StorageConfig
from reader.errors import NotFoundError
from reader.model import BEFORE_ALL, Partition, Position, Split, Tier
from reader.model.columns import METADATA
from reader.model.reasons import Reason, TierReason
from reader.plan.plan import make_plan
from reader.plan.reads import SplitsRead
from reader.plan.snapshot import Snapshot
from reader.sources.reading import read_rows
from reader.sources.row_format import RowFormat
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from tests.support.additions import FIELDS, addition, ledgers_in, open_table
from tests.support.tables import DAY_US, TOPIC, all_rows, fill, maintainer, now_us, settings

PARTITION = Partition(TOPIC, 0)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


@pytest.fixture
def aged(storage: Storage) -> Storage:
    """Ledgers 1 to 4, published 40, 31, 20 and 0 days ago; and an old one of another partition."""
    now = now_us()
    fill(storage, [1, 2, 3, 4], published=[now - days * DAY_US for days in (40, 31, 20, 0)])
    fill(storage, [1], partition=1, published=[now - 40 * DAY_US])
    return storage


def test_whole_files_go(aged: Storage) -> None:
    before = open_table(aged, TOPIC)
    result = maintainer(aged, retention="30d").maintain(TOPIC)
    assert (result.expired_files, result.expired_rows, result.rewritten) == (3, 30, 0)
    after = open_table(aged, TOPIC)
    assert ledgers_in(aged, TOPIC) == {(0, 3): 10, (0, 4): 10}
    assert after.watermark(PARTITION) == 4
    assert (
        after.numbers(PARTITION).expired_from,
        after.numbers(PARTITION).expired_upto.ledger,
    ) == (1, 2)
    assert after.numbers(Partition(TOPIC, 1)).expired_upto.ledger == 1
    assert after.topic_numbers.expired_before is not None
    assert abs(after.topic_numbers.expired_before * 1000 - (now_us() - 30 * DAY_US)) < 600_000_000
    note = json.loads(next(after.commits()).info[MAINTENANCE_KEY])
    assert (note["operation"], note["files"], note["rows"]) == ("expire", 3, 30)
    assert len(all_rows(aged, before.version)) == 50, "a query that has begun reads on"
    assert maintainer(aged, retention="30d").maintain(TOPIC).idle


def test_the_commit_changes_data(aged: Storage) -> None:
    maintainer(aged, retention="30d").maintain(TOPIC)
    table = open_table(aged, TOPIC)
    log = Path(table.uri, "_delta_log", f"{table.version:020d}.json").read_text()
    actions = [json.loads(line) for line in log.splitlines()]
    assert [one["remove"]["dataChange"] for one in actions if "remove" in one] == [True] * 3
    names = {one["txn"]["appId"] for one in actions if "txn" in one}
    assert names == {
        *(
            f"{Partition(TOPIC, index).full_name}#{name}"
            for index in (0, 1)
            for name in (
                "expired-from",
                "expired-upto-ledger",
                "expired-upto-entry",
                "expired-given-up-ledger",
                "expired-given-up-entry",
                "expired-before",
            )
        ),
        f"{TOPIC.full_name}#expired-before",
    }


def test_a_file_with_old_and_young_rows_is_rewritten(storage: Storage) -> None:
    """Each ledger has ten rows; the file has three ledgers, one of them much too old."""
    now = now_us()
    fill(storage, range(1, 9), published=[now - 40 * DAY_US] * 8)
    fill(storage, range(9, 13), published=[now - 31 * DAY_US] * 4)
    fill(storage, range(13, 17), published=[now] * 4)
    rows = all_rows(storage)
    assert maintainer(storage).maintain(TOPIC).into == 1
    # A tenth of the retention later than it might be.
    assert maintainer(storage, retention="37d").maintain(TOPIC).idle
    result = maintainer(storage, retention="30d").maintain(TOPIC)
    assert (result.expired_files, result.rewritten, result.expired_rows) == (0, 1, 120)
    assert set(all_rows(storage)) < set(rows)
    assert ledgers_in(storage, TOPIC) == {(0, ledger): 10 for ledger in range(13, 17)}
    table = open_table(storage, TOPIC)
    assert table.numbers(PARTITION).expired_upto == Position(12, 9)
    assert [one.ledgers for one in files_of(table)] == [(13, 16)]
    assert maintainer(storage, retention="30d").maintain(TOPIC).idle


def test_each_commit_of_a_run_says_that_more_has_expired(storage: Storage) -> None:
    """What a stream compares, though the last ledger of which rows expired stays the same."""
    now = now_us()
    fill(storage, range(1, 9), published=[now - 40 * DAY_US] * 8)
    fill(storage, range(9, 17), published=[now] * 8)
    assert maintainer(storage).maintain(TOPIC).into == 1
    fill(storage, [17], published=[now - 40 * DAY_US])
    before = open_table(storage, TOPIC).version
    result = maintainer(storage, retention="30d").maintain(TOPIC)
    assert (result.expired_files, result.rewritten, result.expired_rows) == (1, 1, 90)
    one, other = (TopicTable.open(storage, TOPIC, before + step) for step in (1, 2))
    assert one is not None and other is not None
    assert one.numbers(PARTITION).expired_upto.ledger == 17
    assert other.numbers(PARTITION).expired_upto.ledger == 17
    assert (one.topic_numbers.expired_before or 0) < (other.topic_numbers.expired_before or 0)


def test_a_number_that_only_grows_is_not_set_back(aged: Storage) -> None:
    """By a maintainer that has planned before another one committed."""
    planned = open_table(aged, TOPIC)
    for number, expected in ((7, 7), (5, 7), (8, 8)):
        change = Replacement({}, (), False, {"operation": "test"}, expired_before=number)
        DeltaCommitter(aged).replace(planned, change)
        assert open_table(aged, TOPIC).topic_numbers.expired_before == expected


def test_an_override_and_no_retention(aged: Storage) -> None:
    assert maintainer(aged).maintain(TOPIC).idle
    other = [{"topics": "public/default/x*", "retention": "1h"}]
    assert maintainer(aged, override=other).maintain(TOPIC).idle
    ours = [{"topics": "public/default/o*", "retention": "25d"}]
    assert maintainer(aged, retention="365d", override=ours).maintain(TOPIC).expired_rows == 30


def test_of_what_expired_since_a_snapshot_a_query_hears(aged: Storage) -> None:
    """Ledgers that left BookKeeper after the snapshot are read from the newest table."""
    config = settings(aged)
    columns = pa.schema([*FIELDS, *METADATA])
    wanted = RowFormat(FIELDS, (), columns)

    def read(ledger: int, first: int = 0, last: int = 9) -> int:
        whole = (first, last) == (0, 9)
        why = TierReason(Reason.SEALED)
        split = Split(PARTITION, ledger, first, last, Tier.PARQUET, why, "sealed", 100, None, whole)
        with Clients(config) as clients:
            return sum(one.num_rows for one in read_rows(clients, SplitsRead((split,)), wanted))

    assert [read(ledger) for ledger in (1, 2, 3, 4)] == [10] * 4
    maintainer(aged, retention="30d").maintain(TOPIC)
    assert [read(ledger) for ledger in (3, 4)] == [10, 10]
    assert read(3, 2, 5) == 4
    with pytest.raises(NotFoundError, match="0 of the 10 rows of ledger 1") as caught:
        read(1)
    assert "expired" in (caught.value.hint or "")
    with pytest.raises(NotFoundError, match=r"ledger 2 .* may have expired"):
        read(2, 2, 5)
    # The log forgets what ledgers had: nobody knows whether all of it is there.
    log = Path(open_table(aged, TOPIC).uri, "_delta_log")
    open_table(aged, TOPIC).handle.create_checkpoint()
    for old in sorted(log.glob("*.json")):
        old.unlink()
    for ledger in (2, 4):
        with pytest.raises(NotFoundError, match="is not in the table") as caught:
            read(ledger)
        assert "make the query anew" in (caught.value.hint or "")


def test_segments_say_so(aged: Storage) -> None:
    def found() -> dict[tuple[int, int], tuple[int | None, str]]:
        version = open_table(aged, TOPIC).version
        snapshot = Snapshot(TOPIC, "", version, FIELDS, METADATA, (), ())
        listed = [one.segment for one in make_plan(Clients(settings(aged)), snapshot).segments]
        return {(s.partition.index, s.ledger_id): (s.rows, str(s.reason)) for s in listed}

    assert set(found().values()) == {(10, "in the table, read from bookkeeper")}
    maintainer(aged, retention="30d").maintain(TOPIC)
    after = found()
    for key in ((0, 1), (0, 2), (1, 1)):
        rows, reason = after[key]
        assert rows is None
        assert "have expired" in reason
    assert after[0, 3] == (10, "in the table, read from bookkeeper")


def test_rows_without_a_publish_time_go_with_their_file(storage: Storage) -> None:
    """As of entries that are damaged."""
    now = now_us()
    fill(storage, [1], published=[now - 40 * DAY_US])
    one = addition(storage, TOPIC, [2], before=1)
    timeless = replace(one.files[0], statistics=_without_times(one.files[0].statistics))
    DeltaCommitter(storage).commit(open_table(storage, TOPIC), replace(one, files=(timeless,)))
    assert maintainer(storage, retention="30d").maintain(TOPIC).expired_rows == 10
    assert ledgers_in(storage, TOPIC) == {(0, 2): 10}


def _without_times(statistics: str) -> str:
    found = json.loads(statistics)
    for kind in ("minValues", "maxValues"):
        del found[kind]["__publishTime"]
    return json.dumps(found)


def _fill_with_given_up(storage: Storage, days: list[int], *, given_up: Position) -> None:
    """A file for each ledger from 1 on; ledger 1 has rows of two messages that were given up."""
    begins = {3: Position(1, 0), 5: given_up}
    for ledger, age in enumerate(days, 1):
        one = addition(
            storage,
            TOPIC,
            [ledger],
            before=ledger - 1 or -1,
            published=now_us() - age * DAY_US,
            given_up=begins if ledger == 1 else None,
        )
        [advance] = one.advances
        if ledger == 1:
            advance = replace(advance, given_up=given_up)
        DeltaCommitter(storage).commit(
            TopicTable.open(storage, TOPIC), replace(one, advances=(advance,))
        )


@pytest.mark.parametrize("compacted", [False, True])
def test_where_expired_messages_begin_that_were_given_up(storage: Storage, compacted: bool) -> None:
    """As a stream may have passed the places of their rows."""
    _fill_with_given_up(storage, [40, *[20] * 11], given_up=Position(1, 2))
    if compacted:
        assert maintainer(storage).maintain(TOPIC).into == 1
    before = open_table(storage, TOPIC)
    assert before.numbers(PARTITION).expired_given_up == BEFORE_ALL
    assert maintainer(storage, retention="30d").maintain(TOPIC).expired_rows == 10
    after = open_table(storage, TOPIC)
    assert after.numbers(PARTITION).expired_given_up == Position(1, 2)
    assert after.numbers(PARTITION).expired_upto == Position(1, 9)
    assert maintainer(storage, retention="10d").maintain(TOPIC).expired_rows == 110
    assert open_table(storage, TOPIC).numbers(PARTITION).expired_given_up == Position(1, 2)


@pytest.mark.parametrize(
    ("given_up", "known"), [(Position(1, 2), (1, 2)), (Position(9, 0), (1, 9))]
)
def test_a_file_that_cannot_be_read_may_have_had_all_that_was_given_up(
    storage: Storage, given_up: Position, known: tuple[int, int]
) -> None:
    _fill_with_given_up(storage, [40, 20], given_up=given_up)
    for file in files_of(open_table(storage, TOPIC)):
        Path(open_table(storage, TOPIC).uri, file.path).unlink()
    assert maintainer(storage, retention="30d").maintain(TOPIC).expired_files == 1
    assert open_table(storage, TOPIC).numbers(PARTITION).expired_given_up == Position(*known)


def test_ledger_0_is_a_ledger(storage: Storage) -> None:
    now = now_us()
    fill(storage, range(8), published=[now - 40 * DAY_US] + [now] * 7)
    assert maintainer(storage).maintain(TOPIC).into == 1
    assert maintainer(storage, retention="30d").maintain(TOPIC).expired_rows == 10
    table = open_table(storage, TOPIC)
    assert table.numbers(PARTITION).expired_upto.ledger == 0
    [file] = files_of(table)
    rows = ExpiredRows(5, Position(-1, -1))
    none = Replacement({file.path: file.size}, (), True, {}, expired={PARTITION: rows})
    after = DeltaCommitter(storage).replace(table, none)
    assert (
        after.numbers(PARTITION).expired_from,
        after.numbers(PARTITION).expired_upto.ledger,
    ) == (0, 0)
