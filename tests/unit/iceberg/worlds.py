"""A Delta table, the follower of its Iceberg table, and whether both have the same rows."""

import atexit
import shutil
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog

from offloader.commit.delta_committer import DeltaCommitter
from offloader.iceberg.catalogs import open_catalog
from offloader.iceberg.follower import IcebergFollower
from offloader.iceberg.snapshots import Shown, shown_by
from offloader.maintenance.table_maintainer import TableMaintainer
from offloader.model import IcebergResult
from reader.config import StorageConfig
from reader.model import Partition
from reader.storage import open_storage
from tests.support import iceberg
from tests.support.additions import FIELDS, addition, open_table
from tests.support.tables import TOPIC, all_rows, fill, maintainer


@cache
def _one_ledger() -> Path:
    """A lake with ledger 1 alone, with which most worlds begin: it is copied."""
    lake = Path(mkdtemp(prefix="pulsar-lake-iceberg-"))
    atexit.register(shutil.rmtree, lake)
    fill(open_storage(StorageConfig(uri=str(lake))), [1])
    return lake


class World:
    """In ``directory``, with a catalog in a database. ``settings``: of ``[iceberg]``."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.directory = directory / "lake"
        self.storage = open_storage(StorageConfig(uri=str(self.directory)))
        self.config = iceberg.iceberg_config("sql", directory, **settings)
        self.ahead_ms = 0
        self._open: list[IcebergFollower] = []
        self.follower = self.another()

    def another(self, **given: Any) -> IcebergFollower:
        """One more follower, of another process."""
        given.setdefault("clock_ms", self.clock_ms)
        self._open.append(iceberg.follower(self.storage, self.config, **given))
        return self._open[-1]

    def clock_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def close(self) -> None:
        for one in self._open:
            one.close()

    def follow(self, **given: Any) -> IcebergResult:
        return self.follower.follow(TOPIC, **given)

    def fill(self, *ledgers: int, fields: pa.Schema = FIELDS, **given: Any) -> None:
        """One commit of Delta's, a file of each ledger."""
        if ledgers == (1,) and fields is FIELDS and not given and not self.directory.exists():
            shutil.copytree(_one_ledger(), self.directory, copy_function=shutil.copy)
        else:
            fill(self.storage, ledgers, fields=fields, **given)

    def fill_empty(self, ledger: int) -> None:
        """A commit of a ledger without rows."""
        table = open_table(self.storage, TOPIC)
        before = table.watermark(Partition(TOPIC, 0))
        DeltaCommitter(self.storage).commit(
            table, addition(self.storage, TOPIC, [ledger], before=before, rows=0)
        )

    def opened(self) -> Catalog:
        """The catalog, as another writer has it."""
        return open_catalog(self.storage, self.config)

    def maintainer(self, **settings: Any) -> TableMaintainer:
        return maintainer(self.storage, ahead=self.ahead_ms / 1000, **settings)

    @property
    def delta_version(self) -> int:
        """The version of the log's newest commit."""
        log = self.directory / "public/default/orders/_delta_log"
        return max(int(one.stem) for one in log.glob("*[0-9].json"))

    def shown(self) -> Shown:
        found = shown_by(iceberg.iceberg_table(self.storage, self.config))
        assert found is not None
        return found

    def versions(self) -> list[int | None]:
        """That Iceberg's snapshots say they show, as a writer finds them."""
        with self.opened() as catalog:
            return iceberg.snapshot_versions(catalog.load_table(iceberg.IDENTIFIER))

    def check(self) -> None:
        """Both have the same rows, by the catalog and by the pointer."""
        rows = all_rows(self.storage)
        pointed = iceberg.iceberg_table(self.storage, self.config, pointed=True)
        with self.opened() as catalog:
            table = catalog.load_table(iceberg.IDENTIFIER)
        assert pointed.metadata == table.metadata  # so that it has the same rows
        assert iceberg.iceberg_rows(pointed) == rows
        snapshot = table.current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        assert int(snapshot.summary.additional_properties["total-records"]) == len(rows)
        assert iceberg.snapshot_versions(table)[-1] == self.delta_version
