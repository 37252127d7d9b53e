"""Queries during maintenance: the same rows from compacted files, or a clear error."""

import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from offloader.config import Config
from offloader.convert import spark_jobs
from offloader.maintenance.table_files import files_of
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import Clocks
from offloader.turn.topic_offloader import TopicOffloader
from reader.clients import Clients
from reader.config import StorageConfig
from reader.errors import NotFoundError
from reader.model import Topic
from reader.plan.snapshot import take_snapshot
from reader.plan.snapshot_token import to_token
from reader.pulsar.admin import AdminClient
from reader.storage import Storage, open_storage
from reader.table import TopicTable
from spark_ext import PulsarLake
from testbed.admin import Admin, wait_until
from testbed.cluster import Cluster
from testbed.publish import publish
from tests.lake.test_moving_segments import files_read, numbered, read_again, rows_of
from tests.support import tables


@pytest.fixture
def storage(lake_config: Config) -> Storage:
    storage = lake_config.storage
    uri = f"{storage.uri}/{uuid.uuid4()}"
    return open_storage(storage.model_copy(update={"uri": uri}))


def table_of(lake: PulsarLake, storage: Storage, version: int | None = None) -> Any:
    reader = lake.spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(storage.spark_uri(storage.table_uri(tables.TOPIC)))


def places(frame: Any) -> list[tuple[int, int]]:
    return sorted((row[0], row[1]) for row in frame.select("__ledgerId", "__entryId").collect())


def test_nan_is_found_and_files_are_skipped_as_before(lake: PulsarLake, storage: Storage) -> None:
    tables.fill(storage, range(1, 25))
    rows = tables.all_rows(storage)
    found = places(table_of(lake, storage).where("amount > 1e300"))
    assert len(found) == 24 * 4, "Spark: NaN is greater than any number"
    size = sum(int(one.size) for one in _files(storage)) // 2
    assert tables.maintainer(storage, target_file_bytes=size).maintain(tables.TOPIC).into >= 1
    assert tables.all_rows(storage) == rows
    after = table_of(lake, storage)
    assert places(after.where("amount > 1e300")) == found
    assert places(after.where("amount = 4.0 OR id = 9")) == sorted(
        (ledger, entry) for ledger in range(1, 25) for entry in (4, 9)
    )
    one = after.where("__ledgerId = 3 AND __entryId >= 0")
    assert places(one) == [(3, entry) for entry in range(10)]
    assert files_read(one) == 1 < len(_files(storage)) < 24


def _files(storage: Storage) -> list[Any]:
    table = TopicTable.open(storage, tables.TOPIC)
    assert table is not None
    return files_of(table)


def test_a_dataframe_from_before_sees_the_same_rows(lake: PulsarLake, tmp_path: Path) -> None:
    """Made before compaction and expiry, used after both and after the least window's vacuum."""
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    old = tables.now_us() - 40 * tables.DAY_US
    tables.fill(storage, range(1, 9), published=[old] * 8)
    tables.fill(storage, range(9, 19), published=[tables.now_us()] * 10)
    tables.make_older(tmp_path, 60)
    version = _version(storage)
    built = table_of(lake, storage, version)
    expected = places(built)
    assert len(expected) == 180
    assert (
        tables.maintainer(storage, vacuum_after="1d").maintain(tables.TOPIC, vacuum=True).compacted
        == 18
    )
    result = tables.maintainer(storage, retention="30d", vacuum_after="1d").maintain(
        tables.TOPIC, vacuum=True
    )
    assert (result.rewritten, result.vacuumed) == (1, 0)
    assert places(built) == expected
    assert places(built.where("amount > 1e300"))
    # Delta's own scan refuses a version of that age; how long it is kept, we decide.
    too_old = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
    lake.spark.conf.set(too_old, "false")
    try:
        assert places(table_of(lake, storage, version)) == expected, "pinned anew"
    finally:
        lake.spark.conf.unset(too_old)
    assert len(places(table_of(lake, storage))) == 100
    assert len(tables.all_rows(storage)) == 100


def _version(storage: Storage) -> int:
    table = TopicTable.open(storage, tables.TOPIC)
    assert table is not None
    return table.version


@pytest.fixture
def pulsar(lake_config: Config) -> Iterator[AdminClient]:
    with AdminClient(lake_config.pulsar) as client:
        yield client


def test_a_query_whose_ledgers_moved_and_were_compacted(
    cluster: Cluster,
    admin: Admin,
    pulsar: AdminClient,
    namespace: str,
    lake: PulsarLake,
    lake_config: Config,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hot when the query was made; in compacted files, and then expired, when it is run."""
    admin.set_retention(namespace, 0, 0)
    topic = f"{namespace}/maintained"
    full, name = f"persistent://{topic}", Topic.parse(topic)
    admin.create_topic(topic)
    admin.create_subscription(topic, "pulsar-lake")
    for first in (0, 100):
        publish(cluster.service_url, full, numbered(first, first + 100), batch=10)
        admin.seal(topic)
    expected = numbered(0, 200)
    before = lake.table(topic)
    assert rows_of(before) == expected
    token = to_token(take_snapshot(Clients(lake_config, admin=pulsar), name))
    publish(cluster.service_url, full, numbered(200, 250))
    old = admin.ledgers(full)[:2]

    # A file a ledger, so that there is something to compact.
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1.2)
    offload = lake_config.offload.model_copy(update={"split_bytes": 1})
    config = lake_config.model_copy(update={"offload": offload})
    offloader = TopicOffloader(
        Clients(config, admin=pulsar), config.offload, spark_jobs(lambda: lake.spark.sparkContext)
    )
    turn = offloader.turn(name, now=True)
    assert turn.committed is not None
    assert turn.committed.files == 2
    cold = lake.table(topic)
    assert (
        TableMaintainer(open_storage(config.storage), config.offload)
        .maintain(name, vacuum=True)
        .compacted
        == 2
    )
    admin.trim(topic)
    wait_until("the old ledgers to be gone", lambda: not set(old) & set(admin.ledgers(full)))
    assert rows_of(before) == expected
    assert read_again(lake_config, topic, token) == expected
    assert rows_of(cold) == numbered(0, 250)

    retained = config.offload.model_copy(update={"retention": timedelta(days=1)})
    late = TableMaintainer(
        open_storage(config.storage),
        retained,
        clocks=Clocks(ms=lambda: tables.now_us() // 1000 + 2 * 86_400_000),
        storage_clock_ms=lambda *where: tables.storage_ms(*where) + 2 * 86_400_000,
    )
    assert late.maintain(name).expired_rows == 200
    assert rows_of(lake.table(topic)) == numbered(200, 250)
    assert rows_of(cold) == numbered(0, 250), "its version's files are there until the vacuum"
    with pytest.raises(NotFoundError, match="0 of the 100 rows"):
        read_again(lake_config, topic, token)
