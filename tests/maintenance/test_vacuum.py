"""What may be deleted, and when: never what a version in the window needs. And the log's age."""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable

from offloader.commit.storage_clock import check_clock
from offloader.commit.vacuum import unused_files
from offloader.config import load_config
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks
from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.model import Partition
from reader.storage import Storage, open_storage
from testbed.s3 import S3
from tests.support.additions import addition, ledgers_in, open_table
from tests.support.tables import (
    DAY_US,
    TOPIC,
    all_rows,
    fill,
    maintainer,
    make_older,
    now_us,
    settings,
)

PARTITION = Partition(TOPIC, 0)
DAY = 86_400.0


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


def directory(storage: Storage) -> Path:
    return Path(open_table(storage, TOPIC).uri)


def data_files(storage: Storage) -> set[str]:
    return {one.name for one in directory(storage).glob("*.parquet")}


def test_a_file_stays_for_the_window_after_it_was_superseded(storage: Storage) -> None:
    """However long ago it was written: a query may have begun a minute before the compaction."""
    fill(storage, range(1, 9))
    rows, version = all_rows(storage), open_table(storage, TOPIC).version
    make_older(directory(storage), 60)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 0
    assert all_rows(storage, version) == rows
    # Six days later by our clock, and by the storage's.
    make_older(directory(storage), 6)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 0
    make_older(directory(storage), 1.1)
    result = maintainer(storage).maintain(TOPIC, vacuum=True)
    assert result.vacuumed == 8
    assert result.vacuumed_bytes > 0
    assert len(data_files(storage)) == 1
    assert all_rows(storage) == rows
    assert open_table(storage, TOPIC).watermark(PARTITION) == 8


def test_every_version_of_the_window_stays_readable(storage: Storage) -> None:
    """Compacted twice in the window: the file in the middle lived in no version at its ends."""
    fill(storage, range(1, 9))
    make_older(directory(storage), 20)
    maintainer(storage).maintain(TOPIC)
    middle = open_table(storage, TOPIC).version
    fill(storage, range(9, 70))
    make_older(directory(storage), 5)
    maintainer(storage).maintain(TOPIC)
    assert len(open_table(storage, TOPIC).paths()) == 1
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 0
    for version in range(middle - 1, open_table(storage, TOPIC).version + 1):
        assert len(all_rows(storage, version)) >= 80
    # The first eight files were superseded five days ago.
    make_older(directory(storage), 3)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 8
    for version in range(middle, open_table(storage, TOPIC).version + 1):
        assert len(all_rows(storage, version)) >= 80


def test_files_that_nobody_committed(storage: Storage) -> None:
    """Of a task that was killed: they may still be committed, until the window is over."""
    fill(storage, [1])
    [orphan] = addition(storage, TOPIC, [2], before=1).files
    others = [
        directory(storage) / name
        for name in (
            f"backup/{orphan.path}",
            f"_stage/{orphan.path}",
            f"copy-{orphan.path}",
            f"{orphan.path}.bak",
            "part-00000-c6f7a0f2-8a4c-4a43-9c2f-8d7f9c2b1a00-c000.zstd.parquet",
            "p0-1-killed.zstd.parquet",
            "notes.txt",
        )
    ]
    for one in others:
        one.parent.mkdir(exist_ok=True)
        one.write_bytes(b"x")
    make_older(directory(storage), 6.9)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 0
    make_older(directory(storage), 0.2)
    found = unused_files(storage, TOPIC, now_us() // 1000 - 7 * 86_400_000)
    assert [one.path for one in found] == [orphan.path]
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 1
    assert all(one.exists() for one in others)
    assert ledgers_in(storage, TOPIC) == {(0, 1): 10}


def test_expired_rows_can_be_read_for_the_window_as_well(storage: Storage) -> None:
    fill(storage, [1, 2], published=[now_us() - 40 * DAY_US, now_us()])
    make_older(directory(storage), 60)
    version = open_table(storage, TOPIC).version
    result = maintainer(storage, retention="30d").maintain(TOPIC, vacuum=True)
    assert (result.expired_rows, result.vacuumed) == (10, 0)
    assert len(all_rows(storage, version)) == 20
    make_older(directory(storage), 8)
    assert maintainer(storage, retention="30d").maintain(TOPIC, vacuum=True).vacuumed == 1
    assert len(data_files(storage)) == 1


def test_once_a_day(storage: Storage) -> None:
    fill(storage, [1])
    addition(storage, TOPIC, [2], before=1)
    one = maintainer(storage)
    make_older(directory(storage), 6.9)
    assert one.maintain(TOPIC).vacuumed == 0
    make_older(directory(storage), 1)
    assert one.maintain(TOPIC).vacuumed == 0, "it has looked already"
    assert one.maintain(TOPIC, vacuum=True).vacuumed == 1


def test_on_s3(s3: S3, tmp_path: Path) -> None:
    storage = open_storage(
        StorageConfig(uri=f"{s3.uri}/{tmp_path.name}", options=s3.storage_options)
    )
    fill(storage, range(1, 9))
    rows = all_rows(storage)
    maintainer(storage).maintain(TOPIC)
    later = maintainer(storage, ahead=1.1 * DAY, vacuum_after="1d")
    assert maintainer(storage, vacuum_after="1d").maintain(TOPIC, vacuum=True).vacuumed == 0
    assert later.maintain(TOPIC, vacuum=True).vacuumed == 8
    keys = s3.keys(f"{tmp_path.name}/")
    assert len([key for key in keys if key.endswith(".parquet") and "_delta_log" not in key]) == 1
    assert all_rows(storage) == rows


@pytest.mark.parametrize("value", ["23h", "29d"])
def test_the_window_has_limits(value: str) -> None:
    with pytest.raises(ConfigurationError, match="vacuum_after"):
        load_config({"offload": {"vacuum_after": value}})


def test_the_log_keeps_watermarks_and_a_month(storage: Storage) -> None:
    """Commits of 40 days ago are cleaned up; what they said of watermarks and expiry stays."""
    fill(storage, [1, 2], published=[now_us() - 40 * DAY_US, now_us()])
    maintainer(storage, retention="30d").maintain(TOPIC)
    for ledger in range(3, 24):
        fill(storage, [ledger])
    log = directory(storage) / "_delta_log"
    assert list(log.glob("*19.checkpoint.parquet"))
    make_older(log, 40)
    for ledger in range(24, 44):
        fill(storage, [ledger])
    commits = sorted(int(one.stem) for one in log.glob("*[0-9].json"))
    assert commits[0] == 19, "nothing but what lies before the checkpoint of younger versions"
    table = open_table(storage, TOPIC)
    assert table.watermark(PARTITION) == 43
    assert table.numbers(PARTITION).expired_upto.ledger == 1
    assert table.topic_numbers.expired_before is not None
    found = DeltaTable(table.uri, version=21)
    assert found.transaction_version(PARTITION.full_name) == 21
    assert found.transaction_version(f"{PARTITION.full_name}#expired-upto-ledger") == 1


def test_commits_whose_times_do_not_grow_with_versions(storage: Storage) -> None:
    """The last of them was written by a store whose clock was behind."""
    fill(storage, range(1, 9))
    planned = open_table(storage, TOPIC).version
    maintainer(storage).maintain(TOPIC)
    fill(storage, [9])
    make_older(directory(storage), 20)
    os.utime(directory(storage) / "_delta_log" / f"{planned + 1:020d}.json")
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 0
    assert len(all_rows(storage, planned)) == 80
    make_older(directory(storage), 8)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 8


@pytest.mark.parametrize("ahead", [-360, 360])
def test_nothing_goes_where_host_and_storage_have_other_times(storage: Storage, ahead: int) -> None:
    fill(storage, [1, 2], published=[now_us() - 40 * DAY_US, now_us()])
    addition(storage, TOPIC, [3], before=2)
    make_older(directory(storage), 60)
    version, files = open_table(storage, TOPIC).version, data_files(storage)
    off = TableMaintainer(
        storage,
        settings(storage, retention="30d").offload,
        clocks=Clocks(ms=lambda: now_us() // 1000 + ahead * 1000),
    )
    for vacuum in (False, True):
        with pytest.raises(UnavailableError, match="6 minutes apart") as caught:
            off.maintain(TOPIC, vacuum=vacuum)
        assert "NTP" in (caught.value.hint or "")
    assert open_table(storage, TOPIC).version == version
    assert data_files(storage) == files
    result = maintainer(storage, retention="30d").maintain(TOPIC)
    assert (result.expired_rows, result.vacuumed) == (10, 1)


def test_compaction_needs_no_clock(storage: Storage) -> None:
    fill(storage, [1])
    now = [now_us() // 1000]
    one = TableMaintainer(storage, settings(storage).offload, clocks=Clocks(ms=lambda: now[0]))
    assert one.maintain(TOPIC).idle
    fill(storage, range(2, 10))
    now[0] += 3_600_000
    assert one.maintain(TOPIC).compacted == 9


def test_a_clock_set_back_does_not_stop_the_daily_vacuum(storage: Storage) -> None:
    fill(storage, [1])
    now, ahead = [0.0], [0]

    def clock_ms(*_: object) -> int:
        return now_us() // 1000 + ahead[0]

    one = TableMaintainer(
        storage,
        settings(storage).offload,
        clocks=Clocks(ms=clock_ms, elapsed=lambda: now[0]),
        storage_clock_ms=clock_ms,
    )
    one.maintain(TOPIC)
    left = directory(storage) / ".clock.tmp.0a1b"  # as a killed process leaves it
    left.write_bytes(b"x")
    make_older(left.parent, 30, [left.name])
    ahead[0] = -23 * 3_600_000
    now[0] += 23 * 3_600
    assert one.maintain(TOPIC).vacuumed == 0
    now[0] += 3_601
    assert one.maintain(TOPIC).vacuumed == 1


def test_clocks_of_this_host_and_of_the_storage_that_are_apart() -> None:
    check_clock(lambda: 0, lambda: 300_000)
    with pytest.raises(UnavailableError, match="5 minutes apart"):
        check_clock(lambda: 0, lambda: 300_001)


def test_what_writers_to_hdfs_have_left(storage: Storage) -> None:
    """Under the names that our client and delta-rs write to, in the table and in its log."""
    fill(storage, [1])
    names = (".p0-1-x.zstd.parquet.tmp.0a1b", "_delta_log/.00000000000000000009.json.tmp.3")
    others = (".hidden", "_delta_log/.00000000000000000001.json.crc", "_delta_log/x.tmp.3")
    for name in (*names, *others):
        (directory(storage) / name).write_bytes(b"x")
    make_older(directory(storage), 6.9)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 0
    make_older(directory(storage), 0.2)
    assert maintainer(storage).maintain(TOPIC, vacuum=True).vacuumed == 2
    assert [name for name in names if (directory(storage) / name).exists()] == []
    assert all((directory(storage) / name).exists() for name in others)
