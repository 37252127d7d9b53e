"""The catalog that the settings name, and what a topic is called there."""

from __future__ import annotations

from pyiceberg.catalog import Catalog, load_catalog

from offloader.config import IcebergConfig
from offloader.iceberg.catalog_errors import catalog_errors
from offloader.iceberg.directory_catalog import DirectoryCatalog
from offloader.iceberg.storage_files import storage_properties
from reader.errors import UnsupportedError
from reader.model import Topic
from reader.storage import Storage, component

__all__ = ["METADATA_ROOT", "directory_of", "identifier_of", "open_catalog"]

METADATA_ROOT = "~iceberg"
"""Below the root of the storage. No topic's table is there: ``~`` is never a name's own."""

_PATIENT = {"py-catalog-impl": "offloader.iceberg.rest_catalog.PatientRestCatalog"}


def open_catalog(storage: Storage, config: IcebergConfig) -> Catalog:
    """It may connect at once. Raises ConfigurationError, UnavailableError.

    PyIceberg's own settings file and environment are read as well: what they say of a catalog of
    this name is added to ``iceberg.options``.
    """
    root = f"{METADATA_ROOT}/{component(config.name)}"
    with catalog_errors(f"cannot open the Iceberg catalog {config.name!r}", config.options):
        properties = storage_properties(storage)
        if config.catalog == "files":
            return DirectoryCatalog(config.name, storage, root, **properties)
        # A connection to a database may have died since the last time.
        defaults = {"pool_pre_ping": "true"} if config.catalog == "sql" else {}
        properties |= _PATIENT if config.catalog == "rest" else {"type": config.catalog}
        given = {**defaults, **config.options, **properties}
        try:
            return load_catalog(config.name, **given)
        except Exception:
            if config.catalog != "sql":
                raise
            # Of two that find a new database empty, one is too late to make its tables.
            return load_catalog(config.name, **given)


def identifier_of(config: IcebergConfig, topic: Topic) -> tuple[str, ...]:
    """Its namespace's levels and its name. What is no letter, digit, "_", "-" or "." is escaped as
    in the paths of tables (``reader.storage.component``), and so is a dot in a namespace: "sql"
    joins its levels with dots. Raises UnsupportedError.

    Two topics may get one name by ``iceberg.namespace`` and ``iceberg.table``, or where a catalog
    does not tell upper from lower case: the follower refuses the second.
    """
    fields = {"tenant": topic.tenant, "namespace": topic.namespace, "topic": topic.name}
    levels = [one.format(**fields) for one in config.namespace.split(".")]
    name = config.table.format(**fields)
    if not all((*levels, name)):
        raise UnsupportedError(f"{topic} has no name in the Iceberg catalog")
    return (*(component(one).replace(".", "~2E") for one in levels), component(name))


def directory_of(config: IcebergConfig, identifier: tuple[str, ...]) -> str:
    """Where a table's metadata are, below the root of the storage."""
    return "/".join((METADATA_ROOT, component(config.name), *identifier))
