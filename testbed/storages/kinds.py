"""The kinds of storage by name. S3 is moto unless `versity` is asked for: it starts in a second."""

from typing import Protocol, runtime_checkable

from testbed.process import Server
from testbed.s3 import S3
from testbed.storages.azurite import Azurite
from testbed.storages.gcs import Gcs
from testbed.storages.hdfs import Hdfs
from testbed.storages.versity import Versity


@runtime_checkable
class StorageServer(Protocol):
    """What tests ask of each."""

    @property
    def uri(self) -> str: ...

    @property
    def storage_options(self) -> dict[str, str]: ...

    def keys(self, prefix: str = "") -> list[str]: ...


@runtime_checkable
class HttpStorageServer(StorageServer, Protocol):
    """One that a `FaultyStore` can be put in front of."""

    @property
    def endpoint(self) -> str: ...

    def options_at(self, endpoint: str) -> dict[str, str]: ...


KINDS: dict[str, type[Server]] = {
    "moto": S3,
    "versity": Versity,
    "gcs": Gcs,
    "azure": Azurite,
    "hdfs": Hdfs,
}


def storage_server(kind: str) -> Server:
    """A server of this kind, not started. Its start raises `ToolMissingError` where it is to be
    built and this machine cannot."""
    return KINDS[kind]()
