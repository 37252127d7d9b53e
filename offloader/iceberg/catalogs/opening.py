"""The catalog that the settings name."""

from contextlib import suppress
from importlib import import_module
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.utils.config import Config as PyIcebergConfig

from offloader.config import IcebergConfig
from offloader.iceberg.catalogs.catalog_errors import catalog_errors
from offloader.iceberg.storage_files import storage_properties
from reader.errors import ConfigurationError
from reader.storage import Storage

_HERE = "offloader.iceberg.catalogs"
_CLASSES = {
    "sql": (f"{_HERE}.sql_catalog", "DatabaseCatalog"),
    "rest": (f"{_HERE}.rest_catalog", "PatientRestCatalog"),
    "hive": ("pyiceberg.catalog.hive", "HiveCatalog"),
    "glue": ("pyiceberg.catalog.glue", "GlueCatalog"),
}
_SCHEMES = {"rest": ("http", "https"), "hive": ("thrift",)}
_ONE_LEVEL = {"hive", "glue"}
_URI = "uri"


def check_options(config: IcebergConfig) -> None:
    """What can be said of the settings without asking anybody.

    Raises ConfigurationError for what no catalog can be opened with: a package or an address that
    is missing, one of another kind, a database's that SQLAlchemy does not understand, a namespace
    that cannot be there.
    """
    given = _options(config)
    with catalog_errors(f"[iceberg] with the catalog {config.catalog!r}", given):
        _class(config)
        uri = str(given.get(_URI) or "")
        if not uri and config.catalog != "glue":
            raise ConfigurationError(
                f"[iceberg] with the catalog {config.catalog!r} has no address",
                hint="set iceberg.options.uri",
            )
        if config.catalog in _ONE_LEVEL and "." in config.namespace:
            raise ConfigurationError(
                f"a catalog {config.catalog!r} has namespaces of one level, and "
                f"iceberg.namespace is {config.namespace!r}",
                hint='for example "{tenant}_{namespace}"',
            )
        allowed = _SCHEMES.get(config.catalog)
        if allowed and uri.partition("://")[0] not in allowed:
            raise ConfigurationError(
                f"iceberg.options.uri of the catalog {config.catalog!r} begins with none of "
                + ", ".join(f"{one}://" for one in allowed),
                hint="is iceberg.catalog the right one?",
            )
        if config.catalog == "sql":
            from sqlalchemy import create_engine  # of the extra, and only of this catalog

            create_engine(uri).dispose()  # finds the driver, and connects to nothing


def open_catalog(storage: Storage, config: IcebergConfig) -> Catalog:
    """It may connect at once. Raises ConfigurationError, UnavailableError.

    PyIceberg's own settings file and environment are read as well: what they say of a catalog of
    this name is added to ``iceberg.options``.
    """
    properties = storage_properties(storage)
    check_options(config)
    given = _options(config)
    with catalog_errors(f"cannot open the Iceberg catalog {config.name!r}", given):
        made = _class(config)
        # Of some that find a new database empty, all but one are too late to make its two tables.
        for _ in range(2 if config.catalog == "sql" else 0):
            with suppress(Exception):
                return made(config.name, **given, **properties)
        return made(config.name, **given, **properties)


def _class(config: IcebergConfig) -> type[Catalog]:
    module, name = _CLASSES[config.catalog]
    found: type[Catalog] = getattr(import_module(module), name)
    return found


def _options(config: IcebergConfig) -> dict[str, Any]:
    # A connection to a database may have died since the last time.
    defaults = {"pool_pre_ping": "true"} if config.catalog == "sql" else {}
    own = PyIcebergConfig().get_catalog_config(config.name) or {}
    ours = {"type", "py-catalog-impl", "py-io-impl"}
    return {**defaults, **{k: v for k, v in own.items() if k not in ours}, **config.options}
