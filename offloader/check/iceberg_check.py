"""Iceberg's catalog: a scratch table is made, committed to, read and dropped."""

from offloader.check.outcome import Finding, Waiting
from offloader.config import IcebergConfig
from offloader.iceberg import probe_catalog
from reader.storage import Storage


def check_iceberg(storage: Storage, config: IcebergConfig, waiting: Waiting) -> Finding:
    """Raises what says why not: ConfigurationError, UnavailableError."""
    what = f"the Iceberg catalog {config.name!r} ({config.catalog})"
    waiting(what)
    if not probe_catalog(storage, config):
        return Finding.warning(
            f"{what} answers, and does not let us make namespaces: no table was tried",
            "make the namespaces of iceberg.namespace there, or give us the right to",
        )
    return Finding.ok(f"{what}: a namespace and a table made, committed to, read and dropped")
