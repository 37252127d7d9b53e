"""Iceberg tables over the files of the Delta tables: each follows its Delta table.

The Delta table is the source: an Iceberg snapshot says which Delta version it shows, and nothing
here commits anything else, or to Delta. After a failure, a kill or a delay Iceberg's readers see an
older version. The next run catches up, from any distance.

    follower            one topic's Iceberg table, brought to the newest version of its Delta table
    changes             what a snapshot lacks of the newest version, and has too many
    data_files          a file of the Delta log as Iceberg's manifests name it
    snapshots           what a snapshot says of Delta, which files it has, when it is too old
    table_columns       the Delta table's columns as Iceberg's, also where they have grown
    table_transactions  PyIceberg's transactions, without its repeated copies of all metadata
    catalogs            the catalogs in which readers find the tables, and their errors
    storage_files       how PyIceberg reads and writes files here: through ``reader.storage``
    version_hint        the pointer to the newest metadata, for readers without a catalog
    catalog_probe       whether the catalog does what following takes
    unused_metadata     Iceberg's own files that nothing refers to any more, removed

Only modules here import PyIceberg, which is an extra (``pulsar-lake[iceberg]``) and heavy. Others
call ``open_follower`` when there is something to follow, or ``probe_catalog``. Imports ``model``,
``config``, ``output``, ``commit`` and ``reader``.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from offloader.config import Config, IcebergConfig
from offloader.output import LakeFollower
from reader.errors import ConfigurationError
from reader.storage import Storage

__all__ = ["open_follower", "probe_catalog"]


def open_follower(
    storage: Storage, config: Config, *, raise_if_stopped: Callable[[], None] = lambda: None
) -> LakeFollower | None:
    """The follower of the settings, None where ``iceberg.catalog`` is "off"; it connects later.

    Raises ConfigurationError for settings that no catalog can be opened with, and where PyIceberg
    or a package that it needs is not installed.
    """
    if not config.iceberg.enabled:
        return None
    with _installed():
        from offloader.iceberg.catalogs import check_options
        from offloader.iceberg.follower import IcebergFollower
    check_options(config.iceberg)
    return IcebergFollower(
        storage, config.iceberg, config.offload, raise_if_stopped=raise_if_stopped
    )


def probe_catalog(storage: Storage, config: IcebergConfig) -> bool:
    """Make, read and drop a scratch table; whether we may make namespaces: else no table is tried.

    Raises as ``open_follower`` does, and UnavailableError where the catalog does not answer.
    """
    with _installed():
        from offloader.iceberg import catalog_probe
    return catalog_probe.probe_catalog(storage, config)


@contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigurationError(
            f"[iceberg] is on, and PyIceberg is not installed: {error}",
            hint="pip install 'pulsar-lake[iceberg]'",
        ) from error
