"""What other engines read of the Iceberg tables: every row, as the Delta table has it."""

import re
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from offloader.config import IcebergConfig
from reader.config import StorageConfig
from reader.errors import UnsupportedError
from reader.storage import Storage, open_storage
from tests.iceberg.engines import DUCKDB, SparkEngine, rows_by
from tests.iceberg.rest_server import RestServer
from tests.iceberg.typed_rows import TYPED, fill_typed
from tests.support import iceberg
from tests.support.tables import DAY_US, TOPIC, all_rows, fill, maintainer, now_us


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


def lived_through(storage: Storage, config: IcebergConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every type, new columns, compaction, expiry of files and of parts; followed after each."""
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    now = now_us()

    def offloaded() -> None:
        fill_typed(storage, 1)

    def grown() -> None:
        fill(storage, [2, 3], fields=pa.schema([*TYPED, pa.field("id", pa.int64())]))

    def compacted() -> None:
        maintainer(storage).maintain(TOPIC)

    def old_and_new() -> None:
        fill(storage, [4, 5], published=[now - 30 * DAY_US, now])

    def expired() -> None:
        maintainer(storage, retention="7d").maintain(TOPIC)
        fill_typed(storage, 6)

    with closing(iceberg.follower(storage, config)) as following:
        for step in (offloaded, grown, compacted, old_and_new, expired):
            step()
            following.follow(TOPIC)


def test_each_type_by_pyiceberg(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = iceberg.iceberg_config("sql", tmp_path)
    lived_through(storage, config, monkeypatch)
    rows = iceberg.iceberg_rows(iceberg.iceberg_table(storage, config))
    # PyIceberg 0.12 reads a list or map of structs that is NULL as an empty one.
    empty = re.compile(r", '(people|nested)': \[\]")
    assert sorted(empty.sub("", one) for one in rows) == sorted(
        empty.sub("", one) for one in all_rows(storage)
    )


@pytest.mark.timeout(900)
def test_each_type_by_duckdb(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the pointer: its extension knows no catalog that is a database."""
    config = iceberg.iceberg_config("sql", tmp_path)
    lived_through(storage, config, monkeypatch)
    directory = iceberg.location(storage, config).removeprefix("file://")
    given = {"table": directory, "out": str(tmp_path / "rows.parquet")}
    assert rows_by(DUCKDB, "duckdb_rows", given) == all_rows(storage)


@pytest.mark.timeout(900)
def test_spark_answers_by_rows_not_by_bounds(
    storage: Storage, spark: SparkEngine, tmp_path: Path
) -> None:
    """Iceberg's runtime takes minimum and maximum from the manifests where it may."""
    fill_typed(storage, 1)
    with RestServer(tmp_path / "warehouse") as server:
        config = iceberg.iceberg_config("rest", tmp_path, options={"uri": server.url})
        with closing(iceberg.follower(storage, config)) as following:
            following.follow(TOPIC)
        given = {
            "conf": server.spark_conf,
            "query": "SELECT max(moment) AS last, max(number) AS number, count(*) AS rows "
            "FROM lake.public.`default`.orders",
        }
        [row] = spark.rows({**given, "out": str(tmp_path / "rows")})
    [moment] = re.findall(r"datetime\(([\d, ]+)", row)
    assert moment.startswith("2026, 2, 28, 23, 59, 59, 999999")
    assert f"'number': {2**63 - 1}" in row
    assert "'rows': 3" in row


@pytest.mark.timeout(900)
def test_each_type_by_spark_from_a_rest_catalog(
    storage: Storage, spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RestServer(tmp_path / "warehouse") as server:
        config = iceberg.iceberg_config("rest", tmp_path, options={"uri": server.url})
        lived_through(storage, config, monkeypatch)
        given = {"conf": server.spark_conf, "table": "lake.public.`default`.orders"}
        read = spark.rows({**given, "out": str(tmp_path / "rows")})
        assert read == all_rows(storage)


@pytest.mark.timeout(900)
def test_what_spark_deletes_is_refused_or_put_right(
    storage: Storage, spark: SparkEngine, tmp_path: Path
) -> None:
    fill(storage, [1, 2])
    with RestServer(tmp_path / "warehouse") as server:
        config = iceberg.iceberg_config("rest", tmp_path, options={"uri": server.url})
        following = iceberg.follower(storage, config)
        following.follow(TOPIC)
        table = "lake.public.`default`.orders"
        given = {"conf": server.spark_conf, "table": table}
        whole = [f"DELETE FROM {table} WHERE __ledgerId = 1"]
        left = spark.rows({**given, "sql": whole, "out": str(tmp_path / "a")})
        assert len(left) == 10
        fill(storage, [3])
        following.follow(TOPIC)
        assert iceberg.iceberg_rows(iceberg.iceberg_table(storage, config)) == all_rows(storage)

        rows = [
            f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')",
            f"DELETE FROM {table} WHERE __entryId = 4",
        ]
        left = spark.rows({**given, "sql": rows, "out": str(tmp_path / "b")})
        assert len(left) == 27
        fill(storage, [4])
        with pytest.raises(UnsupportedError, match="has deleted rows"):
            following.follow(TOPIC)
        with load_catalog("rest", uri=server.url, type="rest") as catalog:
            catalog.drop_table(iceberg.IDENTIFIER)
        following.follow(TOPIC)
        assert iceberg.iceberg_rows(iceberg.iceberg_table(storage, config)) == all_rows(storage)
        following.close()
