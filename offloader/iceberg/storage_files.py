"""How PyIceberg reads and writes files here: through the storage of the settings.

So Iceberg's metadata is written with the identity, the endpoint and the retries that everything
else has, on every kind of storage, and no option has to be said twice. Readers of the tables have
their own way to the same locations.

PyIceberg makes its ``FileIO`` from a class's name and properties alone, so the storage's settings
are one of them.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow.fs as pafs
from pyiceberg.io import FileIO, InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.typedef import EMPTY_DICT, Properties

from reader.config import StorageConfig
from reader.errors import CorruptError
from reader.storage import Storage, open_storage

_STORAGE = "pulsarlake.storage"
# As Java's URIs have it, and Hadoop's paths.
_LOCAL = re.compile(r"(file:/{1,3}|/)(?=[^/])")


def storage_properties(storage: Storage) -> dict[str, str]:
    """Properties of a catalog whose tables' files are in ``storage``; with its secrets."""
    return {
        "py-io-impl": f"{StorageFiles.__module__}.{StorageFiles.__name__}",
        _STORAGE: storage.config.model_dump_json(),
    }


def location_of(storage: Storage, path: str = "") -> str:
    """Where Iceberg's readers find what lies at ``path``, relative to the storage's root: a URI."""
    root = storage.root if "://" in storage.root else f"file://{storage.root}"
    return f"{root}/{path}" if path else root


def path_below(storage: Storage, location: str) -> str | None:
    """The path below the root of what Iceberg's metadata names; None for what lies elsewhere."""
    if match := _LOCAL.match(location):
        location = f"file:///{location[match.end() :]}"
    root = location_of(storage) + "/"
    if not location.startswith(root) or ".." in location.split("/"):
        return None
    return location.removeprefix(root)


def path_of(storage: Storage, location: str) -> str:
    """As ``path_below``. Raises CorruptError for what lies elsewhere."""
    path = path_below(storage, location)
    if path is None:
        raise CorruptError(
            f"Iceberg's metadata names a file outside of the storage: {location[:200]!r}",
            hint="was the storage moved? Drop the Iceberg table: it is made again",
        )
    return path


@lru_cache(maxsize=4)
def _storage(settings: str) -> Storage:
    return open_storage(StorageConfig.model_validate_json(settings))


class StorageFiles(FileIO):
    """A ``FileIO`` over ``Storage.filesystem``. It deletes nothing.

    PyIceberg deletes the manifests of a commit that it takes for refused. Whether a commit has
    landed only the catalog's newest state tells: of an answer that was lost on the way, and tried
    again by a proxy or a store, the second one is a refusal. What is left over is removed by its
    age (``unused_metadata.py``).
    """

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._storage = _storage(properties[_STORAGE])

    def new_input(self, location: str) -> InputFile:
        return self._file(location)

    def new_output(self, location: str) -> OutputFile:
        return self._file(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Nothing."""

    def _file(self, location: str) -> _StoredFile:
        filesystem, root = self._storage.filesystem()
        path = f"{root}/{path_of(self._storage, location)}"
        return _StoredFile(location, path, filesystem)


class _StoredFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        """Names are unique (they have a UUID), so nobody is asked whether there is one."""
        if isinstance(self._filesystem, pafs.LocalFileSystem):
            self._filesystem.create_dir(self._path.rpartition("/")[0], recursive=True)
        return super().create(overwrite=True)
