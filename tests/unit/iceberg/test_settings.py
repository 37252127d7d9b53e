"""What the settings say: names, catalogs, and that no secret is in an error's text."""

import sys
from pathlib import Path

import pytest

from offloader.config import IcebergConfig, load_config
from offloader.iceberg import open_follower
from offloader.iceberg.catalogs import catalog_errors, directory_of, identifier_of, open_catalog
from offloader.iceberg.storage_files import location_of, path_of
from reader.config import StorageConfig
from reader.errors import ConfigurationError, CorruptError, UnavailableError
from reader.model import Topic
from reader.storage import open_storage
from tests.support.iceberg import follower
from tests.support.tables import TOPIC


def test_it_is_off_by_default() -> None:
    assert not load_config({}).iceberg.enabled
    assert load_config({"iceberg": {"catalog": "sql"}}).iceberg.enabled


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"catalog": "polaris"}, "iceberg.catalog"),
        ({"namespace": "{tenant}..{namespace}"}, "a part of it is empty"),
        ({"table": "{ledger}"}, "its fields are"),
        ({"table": "{topic"}, "its fields are"),
        ({"keep_snapshots": "1m"}, "keep_snapshots"),
        ({"nam": "x"}, "did you mean name"),
        ({"options": {"type": "rest"}}, "leave out type: iceberg.catalog says"),
        ({"options": {"py-io-impl": "x.Y"}}, "leave out py-io-impl: files are read and written as"),
    ],
)
def test_what_cannot_be_is_one_line(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_config({"iceberg": given})


@pytest.mark.parametrize(
    ("topic", "settings", "identifier"),
    [
        (TOPIC, {}, ("public", "default", "orders")),
        (Topic("a.b", "c", "d.e"), {}, ("a~2Eb", "c", "d.e")),
        (Topic("a", "b", "Größe/1"), {}, ("a", "b", "Gr~C3~B6~C3~9Fe~2F1")),
        (TOPIC, {"namespace": "lake", "table": "{tenant}_{topic}"}, ("lake", "public_orders")),
        (TOPIC, {"namespace": "{tenant}_{namespace}"}, ("public_default", "orders")),
    ],
)
def test_names(topic: Topic, settings: dict[str, str], identifier: tuple[str, ...]) -> None:
    config = IcebergConfig.model_validate(settings)
    assert identifier_of(config, topic) == identifier
    assert directory_of(config, identifier) == "/".join(("~iceberg", "pulsar_lake", *identifier))


def test_locations_lead_out_of_no_storage(tmp_path: Path) -> None:
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    assert location_of(storage, "a/b") == f"file://{tmp_path}/a/b"
    for beginning in ("file://", "file:", ""):
        assert path_of(storage, f"{beginning}{tmp_path}/a/b") == "a/b"
    for elsewhere in (f"file://{tmp_path}x/a", "s3://b/a", f"file://{tmp_path}/../a"):
        with pytest.raises(CorruptError, match="outside of the storage"):
            path_of(storage, elsewhere)


def test_an_error_has_no_secret_in_it() -> None:
    options = {
        "uri": "postgresql://me:hunter22@db/x",
        "credential": "id:geheimnis",
        "token": "eyJhbGci",
    }
    text = "id:geheimnis eyJhbGci at postgresql://me:hunter22@db/x"
    with pytest.raises(UnavailableError) as caught, catalog_errors("it", options):
        raise OSError(text)
    for secret in ("hunter22", "geheimnis", "eyJhbGci"):
        assert secret not in str(caught.value)
    assert "@db/x" in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "uri",
    [
        "https://catalog/api?token=geheimnis&warehouse=w",
        "postgresql://me:a/b@geheimnis@db/x?connect_timeout=5",
        "postgresql://db/x?user=me&password=geheimnis",
    ],
)
def test_nor_one_of_a_uri(uri: str) -> None:
    with pytest.raises(UnavailableError) as caught, catalog_errors("it", {"uri": uri}):
        raise OSError(f"cannot parse {uri}, {uri.partition('?')[2]}")
    assert "geheimnis" not in str(caught.value)


def test_settings_do_not_show_options() -> None:
    config = load_config({"iceberg": {"catalog": "rest", "options": {"token": "eyJhbGci"}}})
    assert "eyJhbGci" not in repr(config)


@pytest.mark.parametrize(
    ("catalog", "options", "message"),
    [
        ("sql", {}, "has no address .*iceberg.options.uri"),
        ("rest", {"token": "geheimnis"}, "has no address .*iceberg.options.uri"),
        ("rest", {"uri": "catalog:8181"}, "begins with none of http://, https://"),
        ("rest", {"uri": "postgresql://me:geheimnis@db/x"}, "is iceberg.catalog the right one"),
        ("hive", {"uri": "thrift://metastore"}, "namespaces of one level"),
        ("sql", {"uri": "no address"}, "Could not parse SQLAlchemy URL"),
        ("sql", {"uri": "nosuch://me:geheimnis@db/x"}, "nosuch"),
        ("sql", {"uri": "oracle+cx_oracle://me:geheimnis@db/x"}, "cx_Oracle.*what PyIceberg needs"),
    ],
)
def test_what_no_catalog_can_be_opened_with_is_one_line_at_the_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    catalog: str,
    options: dict[str, str],
    message: str,
) -> None:
    """Before anything is asked: nobody answers at these addresses."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    config = load_config({"iceberg": {"catalog": catalog, "options": options}})
    with pytest.raises(ConfigurationError, match=message) as caught:
        open_follower(storage, config)
    assert "geheimnis" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_pyiceberg_itself_is_told_of_a_catalog_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that says which type it is."""
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    (tmp_path / ".pyiceberg.yaml").write_text(
        f"catalog:\n  pulsar_lake:\n    type: rest\n    uri: sqlite:///{tmp_path}/own.db\n"
    )
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    following = open_follower(storage, load_config({"iceberg": {"catalog": "sql"}}))
    assert following is not None
    following.follow(TOPIC)
    following.close()
    assert (tmp_path / "own.db").exists()


def test_a_database_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    config = IcebergConfig(catalog="sql", options={"uri": f"sqlite:///{tmp_path}/no/where.db"})
    with pytest.raises(UnavailableError, match="pulsar_lake"):
        open_catalog(storage, config)
    with pytest.raises(UnavailableError):
        follower(storage, config).follow(TOPIC)


def test_without_the_extra_the_user_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    monkeypatch.setitem(sys.modules, "offloader.iceberg.catalogs.sql_catalog", None)
    config = IcebergConfig(catalog="sql", options={"uri": f"sqlite:///{tmp_path}/x.db"})
    with pytest.raises(ConfigurationError, match=r"pulsar-lake\[iceberg\]"):
        open_catalog(storage, config)


def test_without_pyiceberg_the_offloader_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = open_storage(StorageConfig(uri=str(tmp_path)))
    monkeypatch.setitem(sys.modules, "offloader.iceberg.follower", None)
    config = load_config({"iceberg": {"catalog": "sql"}})
    with pytest.raises(ConfigurationError, match=r"pulsar-lake\[iceberg\]"):
        open_follower(storage, config)
    assert open_follower(storage, load_config({})) is None
