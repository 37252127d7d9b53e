"""One commit carries files and watermarks; of two that race, one wins."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from offloader.commit import recorded_statistics
from offloader.commit.delta_committer import DeltaCommitter
from offloader.model import Clocks
from offloader.output import Addition
from reader.config import StorageConfig
from reader.errors import CommitConflictError, ConfigurationError, CorruptError
from reader.model import Partition, Topic
from reader.model.columns import STATISTICS
from reader.storage import Storage, open_storage
from reader.table import CLUSTER_KEY, CREATED_KEY, TopicTable
from tests.maintenance.conftest import in_each_place
from tests.support.additions import CREATED, FIELDS, addition, ledgers_in, open_table


@pytest.fixture
def topic() -> Topic:
    return Topic("public", "default", "orders")


@in_each_place
def test_the_first_commit_makes_the_table(storage: Storage, topic: Topic) -> None:
    table = DeltaCommitter(storage).commit(
        None, addition(storage, topic, [3, 5], statistics=("id", "amount"))
    )
    partition = Partition(topic, 0)
    assert table.watermark(partition) == 5
    assert table.created_at(partition) == CREATED
    assert table.configuration[CLUSTER_KEY] == "test"
    assert recorded_statistics(table) == (*STATISTICS, "id")
    assert [(one.ledger, one.rows) for one in table.ledgers()] == [(3, 10), (5, 10)]
    assert ledgers_in(storage, topic) == {(0, 3): 10, (0, 5): 10}


def test_statistics_cover_the_rows_and_have_no_float(storage: Storage, topic: Topic) -> None:
    table = DeltaCommitter(storage).commit(
        None, addition(storage, topic, [3], statistics=("id", "amount"))
    )
    [action] = pa.table(table.handle.get_add_actions(flatten=True)).to_pylist()
    assert action["min.id"] == 0
    assert action["max.id"] == 9
    assert action["null_count.__eventTime"] == 10
    assert not any("amount" in name and action[name] is not None for name in action)
    low, high = action["min.__publishTime"], action["max.__publishTime"]
    # Publish times are …000.123 ms to …009.132 ms: rounded outwards.
    assert (low.microsecond, high.microsecond) == (0, 10_000)


@in_each_place
def test_two_plans_from_one_version_never_both_commit(storage: Storage, topic: Topic) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    one, other = open_table(storage, topic), open_table(storage, topic)
    DeltaCommitter(storage).commit(one, addition(storage, topic, [2, 3], before=1))
    with pytest.raises(CommitConflictError, match="watermark"):
        DeltaCommitter(storage).commit(other, addition(storage, topic, [2, 3, 4], before=1))
    assert ledgers_in(storage, topic) == {(0, ledger): 10 for ledger in (1, 2, 3)}


def test_a_fresh_handle_does_not_help_a_stale_plan(storage: Storage, topic: Topic) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1, 2]))
    for ledgers in ([2], [1, 2], [2, 3]):
        with pytest.raises(CommitConflictError):
            DeltaCommitter(storage).commit(
                open_table(storage, topic), addition(storage, topic, ledgers)
            )
    assert ledgers_in(storage, topic) == {(0, 1): 10, (0, 2): 10}


@in_each_place
def test_many_offloaders_at_once_commit_each_ledger_once(storage: Storage, topic: Topic) -> None:
    def offload(addition: Addition) -> bool:
        try:
            DeltaCommitter(storage).commit(TopicTable.open(storage, topic), addition)
        except CommitConflictError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        for step in range(4):
            rivals = [addition(storage, topic, [step], before=step - 1) for _ in range(4)]
            assert sorted(pool.map(offload, rivals)) == [False, False, False, True]
    assert ledgers_in(storage, topic) == {(0, ledger): 10 for ledger in range(4)}


def test_partitions_advance_on_their_own(storage: Storage, topic: Topic) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [7]))
    planned = open_table(storage, topic)
    DeltaCommitter(storage).commit(
        open_table(storage, topic), addition(storage, topic, [8], before=7)
    )
    # Another partition's plan, made before that commit, is still right.
    table = DeltaCommitter(storage).commit(planned, addition(storage, topic, [2], partition=1))
    assert [table.watermark(Partition(topic, index)) for index in (0, 1, 2)] == [8, 2, -1]
    assert table.created_at(Partition(topic, 1)) == CREATED
    assert ledgers_in(storage, topic) == {(0, 7): 10, (0, 8): 10, (1, 2): 10}


@in_each_place
def test_compaction_and_new_columns_in_between_do_not_matter(
    storage: Storage, topic: Topic
) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    DeltaCommitter(storage).commit(
        open_table(storage, topic), addition(storage, topic, [2], before=1)
    )
    planned = open_table(storage, topic)
    open_table(storage, topic).handle.optimize.compact()
    wider = pa.schema([*FIELDS, ("note", pa.string())])
    DeltaCommitter(storage).commit(
        open_table(storage, topic), addition(storage, topic, [5], partition=1, fields=wider)
    )
    table = DeltaCommitter(storage).commit(planned, addition(storage, topic, [3], before=2))
    assert table.watermark(Partition(topic, 0)) == 3
    assert "note" in table.schema.names
    assert ledgers_in(storage, topic) == {(0, 1): 10, (0, 2): 10, (0, 3): 10, (1, 5): 10}


def test_ledgers_without_rows_advance_the_watermark(storage: Storage, topic: Topic) -> None:
    empty = addition(storage, topic, [4], rows=0)
    assert empty.files == ()
    table = DeltaCommitter(storage).commit(None, empty)
    assert table.watermark(Partition(topic, 0)) == 4
    table = DeltaCommitter(storage).commit(table, addition(storage, topic, [6], before=4, rows=0))
    assert table.watermark(Partition(topic, 0)) == 6
    assert [one.ledger for one in table.ledgers()] == [4, 6]
    assert ledgers_in(storage, topic) == {}


def test_new_columns_come_before_the_rows(storage: Storage, topic: Topic) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    wider = pa.schema([*FIELDS, ("count", pa.int64())])
    table = DeltaCommitter(storage).commit(
        open_table(storage, topic),
        addition(storage, topic, [2], before=1, fields=wider, statistics=("count",)),
    )
    assert table.schema.names[-1] == "count"
    assert recorded_statistics(table) == (*STATISTICS, "count")
    assert ledgers_in(storage, topic) == {(0, 1): 10, (0, 2): 10}


def test_a_file_that_does_not_fit_the_table_is_refused(storage: Storage, topic: Topic) -> None:
    first = addition(storage, topic, [1])
    DeltaCommitter(storage).commit(None, first)
    wrong = pa.schema([("amount", pa.float64()), ("id", pa.int32())])
    # The plan has the table's columns, the file has others.
    second = addition(storage, topic, [2], before=1, fields=wrong)
    with pytest.raises(CorruptError, match="column id as int32"):
        DeltaCommitter(storage).commit(
            open_table(storage, topic), replace(second, fields=first.fields)
        )
    assert ledgers_in(storage, topic) == {(0, 1): 10}


def test_another_clusters_table_is_refused(storage: Storage, topic: Topic) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    with pytest.raises(ConfigurationError, match="filled from cluster 'test'"):
        DeltaCommitter(storage).commit(
            open_table(storage, topic), addition(storage, topic, [2], before=1, cluster="other")
        )


def test_a_topic_made_again_is_recorded(storage: Storage, topic: Topic) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    again = addition(storage, topic, [20], before=1)
    [step] = again.advances
    again = replace(again, advances=(replace(step, created_at="2026-06-01"),))
    table = DeltaCommitter(storage).commit(open_table(storage, topic), again)
    assert table.configuration[CREATED_KEY + step.partition.full_name] == "2026-06-01"
    assert ledgers_in(storage, topic) == {(0, 1): 10, (0, 20): 10}


def test_a_commit_that_landed_is_known_by_its_id_when_its_files_are_compacted_away(
    storage: Storage, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    real = DeltaTable.create_write_transaction

    def commit_then_fail(self: DeltaTable, *args: Any, **kwargs: Any) -> None:
        real(self, *args, **kwargs)
        monkeypatch.undo()
        open_table(storage, topic).handle.optimize.compact()
        raise OSError("the answer was lost")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit_then_fail)
    table = DeltaCommitter(storage).commit(
        open_table(storage, topic), addition(storage, topic, [2], before=1)
    )
    assert table.watermark(Partition(topic, 0)) == 2
    assert ledgers_in(storage, topic) == {(0, 1): 10, (0, 2): 10}


def test_without_our_check_delta_rs_would_go_back(storage: Storage, topic: Topic) -> None:
    """Why ``append`` checks: a fresh handle of delta-rs takes an equal or lower version."""
    from deltalake import CommitProperties, Transaction

    DeltaCommitter(storage).commit(None, addition(storage, topic, [5]))
    handle = DeltaTable(open_table(storage, topic).uri, storage_options=storage.delta_options())
    handle.create_write_transaction(
        [],
        mode="append",
        schema=handle.schema(),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(Partition(topic, 0).full_name, 4)]
        ),
    )
    assert open_table(storage, topic).watermark(Partition(topic, 0)) == 4


def test_ledger_list_in_the_log_is_plain_json(storage: Storage, topic: Topic) -> None:
    table = DeltaCommitter(storage).commit(None, addition(storage, topic, [3]))
    newest = next(table.commits()).info
    [one] = json.loads(newest["pulsarlake.ledgers"])
    assert (one["partition"], one["ledger"], one["rows"], one["tier"]) == (0, 3, 10, "bookkeeper")
    assert newest["pulsarlake.source"] == "bookkeeper"


def test_watermarks_outlive_the_commits_that_set_them(tmp_path: Path, topic: Topic) -> None:
    """Clean-up removes old commits; a checkpoint keeps what they said."""
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    table: TopicTable | None = None
    for step in range(24):
        before = {0: -1, 1: -1}
        for done in range(step):
            before[done % 2] = done
        table = DeltaCommitter(storage).commit(
            table,
            addition(storage, topic, [step], partition=step % 2, before=before[step % 2], rows=1),
        )
    log = tmp_path / "public" / "default" / "orders" / "_delta_log"
    [checkpoint] = log.glob("*.checkpoint.parquet")
    for commit in log.glob("*.json"):
        if int(commit.stem) <= int(checkpoint.name.split(".")[0]):
            commit.unlink()
    reopened = open_table(storage, topic)
    assert [reopened.watermark(Partition(topic, index)) for index in (0, 1)] == [22, 23]
    DeltaCommitter(storage).commit(reopened, addition(storage, topic, [24], before=22, rows=1))
    assert len(ledgers_in(storage, topic)) == 25


@pytest.mark.parametrize("hours", [-24, 24])
def test_each_attempt_looks_how_old_the_files_are(
    storage: Storage, topic: Topic, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Vacuum may delete what is older; another commit in between makes a second attempt.

    By the storage's clock: this host's is a day behind it, or ahead.
    """
    DeltaCommitter(storage).commit(None, addition(storage, topic, [1]))
    planned = open_table(storage, topic)
    ours = replace(addition(storage, topic, [2], before=1), max_age_ms=1_000_000)
    DeltaCommitter(storage).commit(
        open_table(storage, topic), addition(storage, topic, [1], partition=1)
    )
    [file] = ours.files
    ages = [999_999, 1_000_001]

    def storage_ms(*of: object) -> int:
        return file.modified + ages.pop(0)

    def clock_ms() -> int:
        return file.modified + hours * 3_600_000

    monkeypatch.setattr("offloader.commit.delta_committer.storage_clock_ms", storage_ms)
    committer = DeltaCommitter(storage, clocks=Clocks(ms=clock_ms))
    with pytest.raises(CommitConflictError, match=r"written 0\.3 hours ago"):
        committer.commit(planned, ours)
    assert ages == []
    assert ledgers_in(storage, topic) == {(0, 1): 10, (1, 1): 10}
    ages = [999_999] * 2
    table = committer.commit(planned, ours)
    assert table.watermark(Partition(topic, 0)) == 2


def test_a_storage_that_does_not_say_when(storage: Storage, topic: Topic) -> None:
    one = addition(storage, topic, [1])
    [file] = one.files
    DeltaCommitter(storage).commit(None, replace(one, files=(replace(file, modified=0),)))
    assert ledgers_in(storage, topic) == {(0, 1): 10}
