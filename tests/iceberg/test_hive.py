"""A Hive metastore: as Iceberg's catalog, and to find the Delta tables by name."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from offloader.check.iceberg_check import check_iceberg
from reader.config import StorageConfig
from reader.storage import Storage, open_storage
from spark_ext.session.jars import session_jars
from tests.iceberg.hive_metastore import HiveMetastore
from tests.support.iceberg import follower, iceberg_config, iceberg_rows, snapshot_versions
from tests.support.tables import TOPIC, all_rows, fill, maintainer

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    with HiveMetastore(tmp_path_factory.mktemp("hive") / "metastore") as found:
        assert isinstance(found, HiveMetastore)
        yield found


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


# Of thrift's client, in PyIceberg.
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
def test_iceberg_by_hive(
    metastore: HiveMetastore, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("offloader.maintenance.selection.GROWTH", 1)
    options = {"uri": metastore.uri, "hive.hive2-compatible": "true"}
    config = iceberg_config(
        "hive", tmp_path, namespace="iceberg_{tenant}_{namespace}", options=options
    )
    assert check_iceberg(storage, config, lambda _: None).state == "ok"
    one, two = follower(storage, config), follower(storage, config)
    fill(storage, [1])
    one.follow(TOPIC)
    with load_catalog("hive", type="hive", **options) as catalog:
        table = catalog.load_table(("iceberg_public_default", "orders"))
        assert len(table.metadata.metadata_log) == 0, "the table came with its rows"
        with table.update_schema() as change:
            change.rename_column("amount", "price")
    fill(storage, [2, 3])
    assert two.follow(TOPIC).added == 2
    maintainer(storage).maintain(TOPIC)
    assert one.follow(TOPIC).removed == 3
    assert two.follow(TOPIC).idle
    with load_catalog("hive", type="hive", **options) as catalog:
        table = catalog.load_table(("iceberg_public_default", "orders"))
        assert iceberg_rows(table) == all_rows(storage)
        assert snapshot_versions(table) == [1, 2, 3]
    one.close()
    two.close()


_SPARK = """
import sys
from pyspark.sql import SparkSession
jars, uri = sys.argv[1:]
spark = (
    SparkSession.Builder().master("local[1]").enableHiveSupport()
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.hadoop.hive.metastore.uris", uri)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
for line in sys.stdin:
    session = spark.newSession()
    for text in line.split(";"):
        print("rows", [tuple(one) for one in session.sql(text).collect()])
    print("answered", flush=True)
"""


def test_a_delta_table_by_its_name_in_hive(
    metastore: HiveMetastore, storage: Storage, tmp_path: Path
) -> None:
    """The recipe of docs/usage.md: registered once, and what is offloaded later is there."""
    jars = ",".join(str(one) for one in session_jars(("delta",)))

    program = [sys.executable, "-c", _SPARK, jars, metastore.uri]
    with (
        (tmp_path / "log").open("w+") as log,
        subprocess.Popen(
            program,
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as spark,
    ):

        def rows(sql: str) -> list[str]:
            """What a new session gives."""
            assert spark.stdin is not None
            assert spark.stdout is not None
            spark.stdin.write(f"{sql}\n")
            spark.stdin.flush()
            found = list(iter(spark.stdout.readline, "answered\n"))
            assert spark.poll() is None, (tmp_path / "log").read_text()[-4000:]
            return found

        fill(storage, [1, 2])
        place = f"file://{storage.table_uri(TOPIC)}"
        table = f"CREATE TABLE public_default.orders USING delta LOCATION '{place}'"
        rows(f"CREATE DATABASE public_default;{table}")
        fill(storage, [3])
        said = rows("SELECT count(*), max(__ledgerId) FROM public_default.orders")
        assert said == ["rows [(30, 3)]\n"]
