"""The check of Iceberg's catalog: what is made is gone again, and what is wrong is one line."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ForbiddenError

from offloader.check import Checklist
from offloader.check.iceberg_check import check_iceberg
from offloader.config import IcebergConfig, load_config
from reader.config import StorageConfig
from reader.errors import ConfigurationError, UnavailableError
from reader.storage import Storage, open_storage
from tests.support.iceberg import iceberg_config


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(StorageConfig(uri=str(tmp_path / "lake")))


def there(config: IcebergConfig) -> list[tuple[str, ...]]:
    with load_catalog(config.name, type="sql", **config.options) as catalog:
        return catalog.list_namespaces()


def files(tmp_path: Path) -> list[Path]:
    return [one for one in (tmp_path / "lake").rglob("*") if one.is_file()]


@pytest.mark.parametrize("namespace", ["{tenant}.{namespace}", "{tenant}"])
def test_all_is_well(storage: Storage, tmp_path: Path, namespace: str) -> None:
    config = iceberg_config("sql", tmp_path, namespace=namespace)
    said: list[str] = []
    found = check_iceberg(storage, config, said.append)
    assert found.state == "ok", found
    assert "made, committed to, read and dropped" in found.text
    assert said == ["the Iceberg catalog 'pulsar_lake' (sql)"]
    assert files(tmp_path) == []
    assert there(config) == []


def test_what_a_killed_check_has_left_is_dropped_after_an_hour(
    storage: Storage, tmp_path: Path
) -> None:
    config = iceberg_config("sql", tmp_path)
    now = int(time.time())
    old, young = f"pulsarlake_check_{now - 4000}_0123abcd", f"pulsarlake_check_{now - 60}_0123abcd"
    with load_catalog(config.name, type="sql", **config.options) as catalog:
        for name in (old, young, "pulsarlake_check_mine"):
            catalog.create_namespace((name,))
    assert check_iceberg(storage, config, lambda _: None).state == "ok"
    assert set(there(config)) == {(young,), ("pulsarlake_check_mine",)}


def test_a_catalog_that_is_away(storage: Storage, tmp_path: Path) -> None:
    database = IcebergConfig(catalog="sql", options={"uri": f"sqlite:///{tmp_path}/no/where.db"})
    server = IcebergConfig(catalog="rest", options={"uri": "http://127.0.0.1:1", "token": "hush"})
    for config in (database, server):
        with pytest.raises(UnavailableError, match="cannot open the Iceberg catalog") as caught:
            check_iceberg(storage, config, lambda _: None)
        assert "hush" not in str(caught.value)


def test_one_that_lets_nobody_make_namespaces(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any) -> None:
        raise ForbiddenError("not you")

    monkeypatch.setattr(SqlCatalog, "create_namespace", refused)
    found = check_iceberg(storage, iceberg_config("sql", tmp_path), lambda _: None)
    assert found.state == "warning"
    assert "give us the right to" in found.fix


def test_one_that_lets_nobody_commit_leaves_nothing(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any) -> None:
        raise ForbiddenError("not you")

    config = iceberg_config("sql", tmp_path)
    monkeypatch.setattr(SqlCatalog, "commit_table", refused)
    with pytest.raises(ConfigurationError, match=r"not you.*who are we there"):
        check_iceberg(storage, config, lambda _: None)
    monkeypatch.undo()
    assert there(config) == []


def test_only_where_there_are_such_tables(tmp_path: Path) -> None:
    def names(**settings: Any) -> list[str]:
        given = {"storage": {"uri": str(tmp_path)}, **settings}
        with Checklist(load_config(given), 3.0) as checklist:
            return [one.name for one in checklist.checks()]

    assert "iceberg" not in names()
    assert "iceberg" not in names(iceberg={"catalog": "sql"}, storage={})
    found = names(iceberg={"catalog": "sql"})
    assert found.index("iceberg") == found.index("storage") + 1
