"""Whether the catalog does what following takes: a scratch table is made, read and dropped.

It has a namespace of its own, ``pulsarlake_check_TIME_RANDOM``, with as many levels as those of the
tables, so that no table of a topic's is near it. What a probe left that was killed, the next one
drops after an hour.
"""

import re
import time
import uuid
from contextlib import suppress

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError

from offloader.config import IcebergConfig
from offloader.iceberg.catalogs import catalog_errors, directory_of, open_catalog
from offloader.iceberg.storage_files import location_of
from reader.errors import UnavailableError
from reader.storage import Storage

_SCRATCH = re.compile(r"pulsarlake_check_(\d+)_[0-9a-f]{8}")
_LEFT_SECONDS = 3600
_COLUMNS = pa.schema([("a", pa.int64())])
_TABLE = "probe"


def probe_catalog(storage: Storage, config: IcebergConfig) -> bool:
    """Whether namespaces may be made as well: else nothing more is tried.

    Raises ConfigurationError, UnavailableError and what else a follower may raise.
    """
    with catalog_errors(f"the Iceberg catalog {config.name!r}", config.options):
        catalog = open_catalog(storage, config)
        try:
            return _probe(storage, config, catalog)
        finally:
            catalog.close()


def _probe(storage: Storage, config: IcebergConfig, catalog: Catalog) -> bool:
    name = f"pulsarlake_check_{int(time.time())}_{uuid.uuid4().hex[:8]}"
    levels = (name, *["inner"] * config.namespace.count("."))
    table = (*levels, _TABLE)
    directory = directory_of(config, table)
    try:
        catalog.create_namespace(levels[:1])
    except ForbiddenError:
        return False
    try:
        for depth in range(2, len(table)):
            catalog.create_namespace(levels[:depth])
        catalog.create_table_transaction(
            table, _COLUMNS, location=location_of(storage, directory)
        ).commit_transaction()
        with catalog.load_table(table).transaction() as change:
            change.set_properties({"a": "1"})
        if catalog.load_table(table).properties.get("a") != "1":
            raise UnavailableError("a commit that the Iceberg catalog took is not what it shows")
    except Exception:
        with suppress(Exception):  # it says less than what went wrong first
            _drop(storage, config, catalog, levels)
        raise
    _drop(storage, config, catalog, levels)
    for one in catalog.list_namespaces():
        match = _SCRATCH.fullmatch(one[0])
        if match and time.time() - int(match[1]) > _LEFT_SECONDS:
            _drop(storage, config, catalog, (one[0], *levels[1:]))
    return True


def _drop(
    storage: Storage, config: IcebergConfig, catalog: Catalog, levels: tuple[str, ...]
) -> None:
    with suppress(NoSuchTableError, NoSuchNamespaceError):
        catalog.drop_table((*levels, _TABLE))
    for depth in range(len(levels), 0, -1):
        with suppress(NoSuchNamespaceError):
            catalog.drop_namespace(levels[:depth])
    # By the objects: pyarrow would delete directories as well, which not each S3 server takes.
    objects = storage.objects()
    objects.delete([one.path for one in objects.below(directory_of(config, levels[:1]))])
