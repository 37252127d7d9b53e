"""Where the tables are: one ``[storage]`` section for pyarrow, delta-rs and Spark alike.

A new kind of storage is a new file here and a line in ``_KINDS``. What is in the tables is
``reader.table``'s. Imports ``reader.background``, ``reader.config``, ``reader.errors`` and
``reader.model``.

    base           the interface of every kind, and the path of a topic's table
    local          local directories
    s3             S3 and what speaks its protocol
    gcs            Google Cloud Storage
    azure          Azure Blob storage and ADLS Gen2
    hdfs           HDFS
    fsspec         any other scheme, through an fsspec package: to read only
    stores         what speaks to a storage, where pyarrow has nothing of its own that fits
    objects        small objects: put if absent, get, list, delete
    put_probe      whether a put-if-absent is one
    stored_object  an object, as a listing tells it
    hadoop_conf    a folder of Hadoop's configuration
    last_calls     calls of pyarrow's threads into Python, which the interpreter's end waits for
"""

from collections.abc import Sequence

from reader.config import StorageConfig, TieredConfig
from reader.errors import ConfigurationError
from reader.storage.azure import AzureStorage
from reader.storage.base import Storage, component, scheme_of
from reader.storage.fsspec import FsspecStorage
from reader.storage.gcs import GcsStorage
from reader.storage.hdfs import HdfsStorage
from reader.storage.last_calls import before_the_end
from reader.storage.local import LocalStorage
from reader.storage.s3 import S3Storage
from reader.storage.stored_object import StoredObject
from reader.storage.stores import is_temporary

__all__ = [
    "Storage",
    "StoredObject",
    "before_the_end",
    "check_storage_options",
    "component",
    "is_temporary",
    "open_storage",
    "scheme_of",
]

_KINDS: dict[str, type[Storage]] = {
    "": LocalStorage,
    "file": LocalStorage,
    "s3": S3Storage,
    "s3a": S3Storage,
    "gs": GcsStorage,
    "abfs": AzureStorage,
    "abfss": AzureStorage,
    "hdfs": HdfsStorage,
}


def open_storage(config: StorageConfig) -> Storage:
    """The storage that ``storage.uri`` names; it connects when it is first asked for something.

    Raises ConfigurationError where the URI is not set, or an option is unknown.
    """
    if not config.uri.rstrip("/"):
        raise ConfigurationError(
            "storage.uri is not set", hint="name a directory or s3://bucket/prefix"
        )
    return _kind(config)(config)


def check_storage_options(config: StorageConfig, tiered: Sequence[TieredConfig] = ()) -> None:
    """Raises ConfigurationError for an option that the kind of storage does not have.

    ``tiered``: the places of Pulsar's tiered storage, whose options are checked as well.
    """
    if config.uri:
        _kind(config).check_options(config.options)
    for place in tiered:
        try:
            _kind(place.storage).check_options(place.options)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"[[tiered]] {place.uri}: {error.message}", hint=error.hint
            ) from error


def _kind(config: StorageConfig) -> type[Storage]:
    return _KINDS.get(scheme_of(config.uri), FsspecStorage)
