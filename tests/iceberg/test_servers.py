"""Following on the S3 server of the tests, and through a REST catalog: two followers, faults."""

import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from offloader.check.iceberg_check import check_iceberg
from offloader.config import IcebergConfig
from reader.config import StorageConfig
from reader.errors import PulsarLakeError
from reader.storage import Storage, open_storage
from testbed.faults import FaultyStore
from testbed.s3 import S3
from tests.iceberg.rest_server import RestServer
from tests.support import iceberg
from tests.support.tables import TOPIC, all_rows, fill, maintainer


def on_s3(s3: S3) -> Storage:
    return open_storage(StorageConfig(uri=f"{s3.uri}/{uuid.uuid4()}", options=s3.storage_options))


def check(storage: Storage, config: IcebergConfig) -> None:
    table = iceberg.iceberg_table(storage, config)
    assert iceberg.iceberg_rows(table) == all_rows(storage)
    files = Counter(one.file.file_path for one in table.scan().plan_files())
    assert set(files.values()) <= {1}


@pytest.mark.journey
def test_on_s3(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    storage, config = on_s3(s3), iceberg.iceberg_config("sql", tmp_path)
    following = iceberg.follower(storage, config)
    fill(storage, [1, 2])
    following.follow(TOPIC)
    fill(storage, [3])
    assert following.follow(TOPIC).added == 1
    check(storage, config)
    maintainer(storage).maintain(TOPIC)
    assert following.follow(TOPIC).removed == 3
    check(storage, config)
    table = iceberg.iceberg_table(storage, config, pointed=True)
    assert table.metadata_location.startswith(f"{storage.root}/~iceberg/")
    assert iceberg.iceberg_rows(table) == all_rows(storage)
    following.close()


def test_many_at_once_on_s3(s3: S3, tmp_path: Path) -> None:
    storage, config = on_s3(s3), iceberg.iceberg_config("sql", tmp_path)
    fill(storage, [1])
    followers = [iceberg.follower(storage, config) for _ in range(3)]
    iceberg.follow_all(followers)
    for ledger in (2, 3):
        fill(storage, [ledger])
        iceberg.follow_all(followers)
        check(storage, config)
    assert iceberg.snapshot_versions(iceberg.iceberg_table(storage, config)) == [1, 2, 3]


@pytest.mark.parametrize("kind", ["apply_then_500", "apply_then_drop", "refuse"])
@pytest.mark.parametrize("end", [".metadata.json", ".avro", "version-hint.text"])
def test_a_put_that_seems_to_fail(s3: S3, tmp_path: Path, kind: str, end: str) -> None:
    """However often each client tries: a version is one snapshot, and has its files once."""
    good, config = on_s3(s3), iceberg.iceberg_config("sql", tmp_path)
    fill(good, [1])
    with FaultyStore(s3.endpoint) as store:
        faulty = open_storage(StorageConfig(uri=good.root, options=s3.options_at(store.endpoint)))
        following = iceberg.follower(faulty, config)
        for ledger, times in ((2, 1), (3, 2), (4, 4)):
            rule = getattr(store, kind)(
                lambda method, path: method == "PUT" and path.split("?")[0].endswith(end), times
            )
            with suppress(PulsarLakeError):
                following.follow(TOPIC)
            assert rule.hits >= 1
            rule.left = 0
            fill(good, [ledger])
    iceberg.follower(good, config).follow(TOPIC)
    check(good, config)
    versions = iceberg.snapshot_versions(iceberg.iceberg_table(good, config))
    assert versions[-1] == 4
    assert len(versions) == len(set(versions))


@pytest.mark.timeout(600)
def test_through_a_rest_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    storage = open_storage(StorageConfig(uri=str(tmp_path / "lake")))
    with RestServer(tmp_path / "warehouse") as server:
        config = iceberg.iceberg_config("rest", tmp_path, options={"uri": server.url})
        assert check_iceberg(storage, config, lambda _: None).state == "ok"
        fill(storage, [1])
        followers = [iceberg.follower(storage, config) for _ in range(4)]
        iceberg.follow_all(followers)
        check(storage, config)
        made = iceberg.iceberg_table(storage, config)
        assert len(made.metadata.metadata_log) == 0, "the table came with its rows"
        with made.update_schema() as change:
            change.rename_column("amount", "price")
        for ledger in (2, 3, 4):
            fill(storage, [ledger])
            iceberg.follow_all(followers)
            check(storage, config)
        assert iceberg.snapshot_versions(iceberg.iceberg_table(storage, config)) == [1, 2, 3, 4]
        maintainer(storage).maintain(TOPIC)
        iceberg.follow_all(followers)
        check(storage, config)
        ahead = iceberg.follower(storage, config, clock_ms=lambda: 10**13)
        assert ahead.follow(TOPIC).expired == 4
        check(storage, config)
        for one in (*followers, ahead):
            one.close()
