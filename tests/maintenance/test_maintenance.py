"""Small files become large ones, and nothing else changes: rows, statistics, watermarks."""

import json
import math
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from offloader.commit.actions import MAINTENANCE_KEY
from offloader.commit.delta_committer import DeltaCommitter
from offloader.maintenance.rewrite import rewrite
from offloader.maintenance.selection import compactions
from offloader.maintenance.table_files import files_of
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks
from offloader.output import Replacement
from reader.config import StorageConfig
from reader.errors import CommitConflictError, CorruptError, UnavailableError
from reader.model import Partition
from reader.storage import Storage, open_storage
from reader.table.log import COMMIT_KEY
from testbed.faults import FaultyStore
from testbed.s3 import S3
from tests.maintenance.conftest import in_each_place
from tests.support import tables
from tests.support.additions import FIELDS, addition, ledgers_in, open_table

PARTITION = Partition(tables.TOPIC, 0)


@pytest.fixture
def disk(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


@in_each_place
def test_small_files_become_one(storage: Storage) -> None:
    tables.fill(storage, range(1, 11))
    tables.fill(storage, [3, 5], partition=1)
    before, rows = open_table(storage, tables.TOPIC), tables.all_rows(storage)
    result = tables.maintainer(storage).maintain(tables.TOPIC)
    assert (result.compacted, result.into, result.more) == (10, 1, False)
    after = open_table(storage, tables.TOPIC)
    assert tables.all_rows(storage) == rows
    assert after.version == before.version + 1
    assert len(after.paths()) == 3
    assert after.watermark(PARTITION) == 10
    assert after.watermark(Partition(tables.TOPIC, 1)) == 5
    assert after.configuration == before.configuration
    assert after.ledgers() == before.ledgers()
    assert tables.all_rows(storage, before.version) == rows, "the version before is still there"
    assert tables.maintainer(storage).maintain(tables.TOPIC).idle, "once is enough"


def test_the_commit_says_what_it_is(disk: Storage) -> None:
    tables.fill(disk, range(1, 9))
    tables.maintainer(disk).maintain(tables.TOPIC)
    table = open_table(disk, tables.TOPIC)
    log = Path(table.uri, "_delta_log", f"{table.version:020d}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    [info] = [one["commitInfo"] for one in actions if "commitInfo" in one]
    assert info[COMMIT_KEY]
    assert json.loads(info[MAINTENANCE_KEY]) == {"operation": "compact", "files": 8, "rows": 80}
    files = [one.get("add") or one.get("remove") for one in actions]
    assert [one["dataChange"] for one in files if one] == [False] * 9
    assert not any("txn" in one or "metaData" in one for one in actions)


def test_rows_are_in_order_and_statistics_are_as_safe_as_before(disk: Storage) -> None:
    tables.fill(disk, range(1, 9))
    one = files_of(open_table(disk, tables.TOPIC))[0]
    tables.maintainer(disk).maintain(tables.TOPIC)
    table = open_table(disk, tables.TOPIC)
    [file] = files_of(table)
    assert (file.rows, file.ledgers, file.entries) == (80, (1, 8), (0, 9))
    assert file.published == one.published, "all ledgers have the same times"
    [action] = pa.table(table.handle.get_add_actions(flatten=True)).to_pylist()
    assert (action["min.id"], action["max.id"], action["null_count.__eventTime"]) == (0, 9, 80)
    assert not any("amount" in name for name in action)
    parquet = pq.ParquetFile(Path(table.uri, file.path))
    found = parquet.read()
    assert in_order(found)
    assert sum(math.isnan(x) for x in found.column("amount").to_pylist()) == 8 * 4
    group = parquet.metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    footer = {one.path_in_schema: one.statistics for one in columns}
    assert footer["amount"] is None
    assert (footer["__ledgerId"].min, footer["__ledgerId"].max) == (1, 8)


def in_order(rows: pa.Table) -> bool:
    columns = (rows.column(name).to_pylist() for name in ("__ledgerId", "__entryId"))
    places = list(zip(*columns, strict=True))
    return places == sorted(places)


def test_columns_that_came_later(disk: Storage) -> None:
    point = pa.struct([("x", pa.int64())])
    grown = pa.struct([("x", pa.int64()), ("y", pa.float64())])
    tables.fill(disk, range(1, 4))
    tables.fill(disk, range(4, 7), fields=pa.schema([*FIELDS, ("at", point)]))
    tables.fill(
        disk, range(7, 15), fields=pa.schema([*FIELDS, ("at", grown), ("note", pa.string())])
    )
    rows = tables.all_rows(disk)
    assert tables.maintainer(disk).maintain(tables.TOPIC).compacted == 14
    assert tables.all_rows(disk) == rows
    table = open_table(disk, tables.TOPIC)
    at = table.dataset().to_table(columns=["at"]).column("at").to_pylist()
    assert at[:30] == [None] * 30
    assert at[30:32] == [{"x": 0, "y": None}, {"x": 1, "y": None}]
    assert at[61] == {"x": 1, "y": 1.0}
    [file] = files_of(table)
    assert "note" in pq.read_schema(Path(table.uri, file.path)).names


def test_files_that_overlap_are_merged(disk: Storage) -> None:
    """As of messages that were given up: rows between those of another file."""
    tables.fill(disk, [1, 2])
    table = open_table(disk, tables.TOPIC)
    late = addition(disk, tables.TOPIC, [2], rows=1, first=4, statistics=("id",)).files
    for ledger in range(3, 10):
        found = addition(disk, tables.TOPIC, [ledger], before=ledger - 1, statistics=("id",))
        more = late if ledger == 3 else ()
        table = DeltaCommitter(disk).commit(table, replace(found, files=(*found.files, *more)))
    rows = tables.all_rows(disk)
    assert tables.maintainer(disk).maintain(tables.TOPIC).compacted == 10
    assert tables.all_rows(disk) == rows
    [file] = files_of(open_table(disk, tables.TOPIC))
    merged = pq.read_table(Path(table.uri, file.path))
    assert in_order(merged)
    assert merged.num_rows == 91


@in_each_place
def test_an_append_at_the_same_time(storage: Storage) -> None:
    tables.fill(storage, range(1, 9))
    planned = open_table(storage, tables.TOPIC)
    added: list[int] = []

    def append_once() -> None:
        if not added:
            added.append(9)
            DeltaCommitter(storage).commit(
                open_table(storage, tables.TOPIC), addition(storage, tables.TOPIC, [9], before=8)
            )

    config = tables.settings(storage)
    assert (
        TableMaintainer(open_storage(config.storage), config.offload, raise_if_stopped=append_once)
        .maintain(tables.TOPIC)
        .compacted
        == 8
    )
    assert added
    assert len(open_table(storage, tables.TOPIC).paths()) == 2
    # And an append that was planned before both goes on through a newer handle, or is refused.
    assert ledgers_in(storage, tables.TOPIC) == {(0, n): 10 for n in range(1, 10)}
    fresh = open_table(storage, tables.TOPIC)
    tables.fill(storage, [10])
    tables.maintainer(storage).maintain(tables.TOPIC)
    assert fresh.watermark(PARTITION) == 9
    assert planned.watermark(PARTITION) == 8
    assert ledgers_in(storage, tables.TOPIC) == {(0, n): 10 for n in range(1, 11)}


def test_an_append_that_was_planned_before_the_compaction(storage: Storage) -> None:
    tables.fill(storage, range(1, 9))
    planned = open_table(storage, tables.TOPIC)
    pending = addition(storage, tables.TOPIC, [9], before=8)
    tables.maintainer(storage).maintain(tables.TOPIC)
    DeltaCommitter(storage).commit(planned, pending)
    assert len(open_table(storage, tables.TOPIC).paths()) == 2
    assert ledgers_in(storage, tables.TOPIC) == {(0, n): 10 for n in range(1, 10)}


def test_a_file_that_was_written_too_long_ago_is_not_committed(
    disk: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt looks: vacuum may have deleted it."""
    tables.fill(disk, [1, 2])
    planned = open_table(disk, tables.TOPIC)
    [new] = addition(disk, tables.TOPIC, [1]).files
    ours = Replacement({min(planned.paths()): 1}, (new,), False, {}, max_age_ms=1_000_000)
    tables.fill(disk, [3])
    ages = [999_999, 1_000_001]

    def storage_ms(*of: object) -> int:
        return new.modified + ages.pop(0)

    monkeypatch.setattr("offloader.commit.delta_committer.storage_clock_ms", storage_ms)
    with pytest.raises(CommitConflictError, match=r"written 0\.3 hours ago"):
        late = Clocks(ms=lambda: new.modified + 24 * 3_600_000)
        DeltaCommitter(disk, clocks=late).replace(planned, ours)
    assert ages == []
    assert len(open_table(disk, tables.TOPIC).paths()) == 3


def test_maintenance_begins_anew_where_writing_took_too_long(
    disk: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables.fill(disk, range(1, 9))
    said: list[str] = []
    ahead = 0

    def writes_for_a_day() -> None:
        nonlocal ahead
        ahead = 90_000_000

    def storage_ms(*of: object) -> int:
        return time.time_ns() // 1_000_000 + ahead

    monkeypatch.setattr("offloader.commit.delta_committer.storage_clock_ms", storage_ms)
    result = TableMaintainer(
        disk,
        tables.settings(disk, vacuum_after="2d").offload,
        clocks=Clocks(ms=storage_ms),
        raise_if_stopped=writes_for_a_day,
        say=said.append,
    ).maintain(tables.TOPIC)
    assert (result.compacted, result.more) == (0, True)
    assert "half of offload.vacuum_after" in said[0]
    assert len(open_table(disk, tables.TOPIC).paths()) == 8


@in_each_place
def test_of_two_maintainers_one_wins(storage: Storage) -> None:
    tables.fill(storage, range(1, 9))
    said: list[str] = []
    others: list[int] = []

    def other_first() -> None:
        if not others:
            others.append(tables.maintainer(storage).maintain(tables.TOPIC).compacted)

    result = TableMaintainer(
        storage, tables.settings(storage).offload, raise_if_stopped=other_first, say=said.append
    ).maintain(tables.TOPIC)
    assert others == [8]
    assert result.more
    assert result.compacted == 0
    assert "replaced meanwhile" in said[0]
    assert ledgers_in(storage, tables.TOPIC) == {(0, n): 10 for n in range(1, 9)}


@pytest.mark.proxied
@pytest.mark.parametrize("kind", ["apply_then_500", "apply_then_drop", "refuse"])
def test_a_put_that_seems_to_fail(s3: S3, kind: str) -> None:
    good = open_storage(StorageConfig(uri=f"{s3.uri}/{uuid.uuid4()}", options=s3.storage_options))
    tables.fill(good, range(1, 9))
    rows, version = tables.all_rows(good), open_table(good, tables.TOPIC).version
    with FaultyStore(s3.endpoint) as store:
        faulty = open_storage(StorageConfig(uri=good.root, options=s3.options_at(store.endpoint)))
        rule = getattr(store, kind)(
            lambda method, path: method == "PUT" and path.split("?")[0].endswith(".json"), 2
        )
        assert tables.maintainer(faulty).maintain(tables.TOPIC).compacted == 8
    assert rule.hits >= 1
    assert tables.all_rows(good) == rows
    assert open_table(good, tables.TOPIC).version == version + 1
    assert len(open_table(good, tables.TOPIC).paths()) == 1


@pytest.mark.proxied
def test_a_store_that_takes_no_commit(s3: S3) -> None:
    good = open_storage(StorageConfig(uri=f"{s3.uri}/{uuid.uuid4()}", options=s3.storage_options))
    tables.fill(good, range(1, 9))
    version = open_table(good, tables.TOPIC).version
    with FaultyStore(s3.endpoint) as store:
        faulty = open_storage(StorageConfig(uri=good.root, options=s3.options_at(store.endpoint)))
        store.refuse(lambda method, path: method == "PUT", 10_000)
        with pytest.raises(UnavailableError) as caught:
            tables.maintainer(faulty).maintain(tables.TOPIC)
    assert caught.value.hint
    assert open_table(good, tables.TOPIC).version == version
    assert tables.maintainer(good).maintain(tables.TOPIC).compacted == 8


def test_a_dry_run_does_nothing(disk: Storage) -> None:
    tables.fill(disk, range(1, 9))
    there = sorted(Path(disk.root).rglob("*"))
    result = tables.maintainer(disk, retention="1h").maintain(tables.TOPIC, dry_run=True)
    assert (result.compacted, result.into, result.expired_rows) == (8, 1, 80)
    assert sorted(Path(disk.root).rglob("*")) == there
    assert "would be" in str(result)


def test_a_file_with_other_rows_than_the_log_says_is_left_alone(disk: Storage) -> None:
    tables.fill(disk, range(1, 9))
    table = open_table(disk, tables.TOPIC)
    [first, second, *_] = (Path(table.uri, one.path) for one in files_of(table))
    first.write_bytes(second.read_bytes()[:-1] + b"x")
    with pytest.raises((CorruptError, UnavailableError)):
        tables.maintainer(disk).maintain(tables.TOPIC)
    filesystem, directory = disk.directory(tables.TOPIC)
    with filesystem.open_output_stream(f"{directory}/{first.name}") as sink:
        pq.write_table(pq.read_table(second).slice(0, 3), sink)
    with pytest.raises(CorruptError, match="73 rows, not the 80"):
        tables.maintainer(disk).maintain(tables.TOPIC)
    assert open_table(disk, tables.TOPIC).version == table.version


def test_one_bad_file_does_not_keep_the_others(disk: Storage) -> None:
    now = tables.now_us()
    for partition in range(4):  # of the last two, each becomes a file with young and old rows
        times = [now - 40 * tables.DAY_US if partition > 1 else now] + [now] * 7
        tables.fill(disk, range(1, 9), partition=partition, published=times)
    groups = compactions(files_of(open_table(disk, tables.TOPIC)), 1 << 28)
    assert len(groups) == 4
    directory = Path(open_table(disk, tables.TOPIC).uri)
    for group in groups[2:]:
        [written] = [rewrite(disk, open_table(disk, tables.TOPIC), group).file]
        assert written is not None
        removes = {one.path: one.size for one in group}
        table = open_table(disk, tables.TOPIC)
        DeltaCommitter(disk).replace(table, Replacement(removes, (written,), False, {}))
    files = files_of(open_table(disk, tables.TOPIC))
    (directory / files[0].path).write_bytes(b"not Parquet")
    [broken] = [one.path for one in files if one.partition == 2]
    (directory / broken).write_bytes(b"not Parquet either")
    [orphan] = addition(disk, tables.TOPIC, [9], before=8).files
    tables.make_older(directory, 60, [orphan.path])
    said: list[str] = []
    one = TableMaintainer(disk, tables.settings(disk, retention="30d").offload, say=said.append)
    with pytest.raises(UnavailableError, match=broken):
        one.maintain(tables.TOPIC)
    after = files_of(open_table(disk, tables.TOPIC))
    assert [len([1 for one in after if one.partition == n]) for n in range(4)] == [8, 1, 1, 1]
    assert [one.ledgers for one in after if one.partition == 3] == [(2, 8)]
    assert not (directory / orphan.path).exists()
    assert "8 files" in said[0]
    assert "1 unused files" in said[0]


def test_without_a_table(disk: Storage) -> None:
    result = tables.maintainer(disk).maintain(tables.TOPIC)
    assert result.version is None
    assert str(result).endswith("no table yet")
