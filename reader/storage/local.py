"""Local directories, and what is mounted as one: a path, or ``file://``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from reader.storage.base import Storage

if TYPE_CHECKING:
    from reader.storage.objects import Objects

__all__ = ["LocalStorage"]


class LocalStorage(Storage):
    """``root`` is the absolute path. Options say nothing here, and do no harm."""

    def _root(self, uri: str) -> str:
        if urlsplit(uri).scheme == "file":
            return urlsplit(uri).path.rstrip("/")
        return str(Path(uri).absolute())

    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        return pafs.LocalFileSystem(), self.root

    def _open_objects(self) -> Objects:
        from reader.storage.objects import Objects  # not where tables are only read
        from reader.storage.stores.obstore_client import ObstoreClient

        return Objects(ObstoreClient.of_directory(self.root))
