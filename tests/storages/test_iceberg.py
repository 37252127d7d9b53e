"""Iceberg tables follow on a server of each kind, and ``pulsar-lake check`` makes and drops one."""

from pathlib import Path

import pytest

from offloader.check.iceberg_check import check_iceberg
from offloader.check.outcome import State
from offloader.iceberg.catalogs import open_catalog
from reader.storage import Storage
from tests.support import iceberg
from tests.support.tables import TOPIC, all_rows, fill, maintainer

pytestmark = pytest.mark.long


def test_following(storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are read as the offloader reads them: engines have their own way to the storage."""
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    config = iceberg.iceberg_config("sql", tmp_path)
    assert check_iceberg(storage, config, lambda _: None).state is State.OK
    assert storage.objects().below("~iceberg") == []
    followers = [iceberg.follower(storage, config) for _ in range(3)]

    def check() -> None:
        with open_catalog(storage, config) as catalog:
            table = catalog.load_table(iceberg.IDENTIFIER)
            assert iceberg.iceberg_rows(table) == all_rows(storage)
            versions = iceberg.snapshot_versions(table)
            assert len(versions) == len(set(versions))

    fill(storage, [1, 2])
    followers[0].follow(TOPIC)
    check()
    maintainer(storage).maintain(TOPIC)
    assert followers[0].follow(TOPIC).removed == 2
    check()
    for ledger in (3, 4):
        fill(storage, [ledger])
        iceberg.follow_all(followers)
        check()
    assert followers[0].follow(TOPIC, clean=True).idle
    for one in followers:
        one.close()
