"""Conditions on each column, by other engines: what is skipped holds no row that fulfils them."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from offloader.config import IcebergConfig
from reader.config import StorageConfig
from reader.storage import Storage, open_storage
from tests.iceberg.engines import DUCKDB, SparkEngine, run_by
from tests.iceberg.filtered_rows import COLUMNS, conditions, fill_filtered
from tests.iceberg.rest_server import RestServer
from tests.support.additions import open_table
from tests.support.iceberg import follower, iceberg_config, location
from tests.support.tables import TOPIC, all_rows

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    found = open_storage(StorageConfig(uri=str(tmp_path / "lake")))
    fill_filtered(found, monkeypatch)
    return found


def follow(storage: Storage, config: IcebergConfig) -> None:
    with closing(follower(storage, config)) as following:
        following.follow(TOPIC)


def files(storage: Storage) -> list[str]:
    """Of the newest version, by the log alone."""
    found = pa.table(open_table(storage, TOPIC).handle.get_add_actions()).column("path")
    return [f"{storage.root}/public/default/orders/{path}" for path in found.to_pylist()]


def check(asked: Sequence[str], rows: list[dict[str, Any]], total: int) -> None:
    """Both sources found the same, and each condition tells something."""
    by: dict[str, dict[str, tuple[int, str]]] = {"iceberg": {}, "parquet": {}}
    for row in rows:
        by[row["source"]][asked[row["condition"]]] = (row["rows"], row["found"])
    assert by["iceberg"].keys() == by["parquet"].keys() == set(asked)
    wrong = {
        one: (by["iceberg"][one], by["parquet"][one])
        for one in asked
        if by["iceberg"][one] != by["parquet"][one]
    }
    assert wrong == {}
    counts = [count for count, _ in by["iceberg"].values()]
    assert sum(0 < count < total for count in counts) > 0.8 * len(counts)
    for column in COLUMNS:
        both = [by["iceberg"][f"{column} IS {word}NULL"][0] for word in ("", "NOT ")]
        assert sum(both) == total


def test_by_duckdb(storage: Storage, tmp_path: Path) -> None:
    asked = list(conditions())
    out = tmp_path / "rows.parquet"
    config = iceberg_config("sql", tmp_path)
    follow(storage, config)
    given = {
        "table": location(storage, config).removeprefix("file://"),
        "files": files(storage),
        "conditions": asked,
        "out": str(out),
    }
    run_by(DUCKDB, "duckdb_rows", given)
    check(asked, pq.read_table(out).to_pylist(), len(all_rows(storage)))


def test_by_spark(storage: Storage, spark: SparkEngine, tmp_path: Path) -> None:
    asked = list(conditions())
    out = tmp_path / "rows"
    given: dict[str, Any] = {
        "conf": {
            # Each is run once: to compile it would take longer.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        },
        "table": "lake.public.`default`.orders",
        "files": files(storage),
        "conditions": asked,
        # In any Parquet file Spark skips what has 0.0 and no -0.0: docs/limitations.md.
        "skipping": [one for one in asked if "= CAST('-0.0'" in one],
        "columns": list(COLUMNS),
        "out": str(out),
    }
    with RestServer(tmp_path / "warehouse") as server:
        follow(storage, iceberg_config("rest", tmp_path, options={"uri": server.url}))
        given["conf"] |= server.spark_conf
        spark.run(given)
    [file] = out.glob("*.parquet")
    check([*asked, *COLUMNS], pq.read_table(file).to_pylist(), len(all_rows(storage)))
