"""Local directories, and what is mounted as one: a path, or ``file://``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from reader.errors import ConfigurationError
from reader.storage.base import Storage

if TYPE_CHECKING:
    from reader.storage.objects import Objects

_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")


class LocalStorage(Storage):
    """``root`` is the absolute path. Options say nothing here, and do no harm."""

    def _root(self, uri: str) -> str:
        if urlsplit(uri).scheme == "file":
            return urlsplit(uri).path.rstrip("/")
        return str(Path(uri).absolute())

    def delta_options(self) -> dict[str, str]:
        """None. Raises ConfigurationError for a place that delta-rs takes for another."""
        if _ESCAPE.search(self.root):
            raise ConfigurationError(
                f"{self.root} has a % and two hexadecimal digits, which delta-rs decodes",
                hint="use a directory with another name as storage.uri",
            )
        return {}

    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        return pafs.LocalFileSystem(), self.root

    def _open_objects(self) -> Objects:
        from reader.storage.objects import Objects  # not where tables are only read
        from reader.storage.stores.obstore_client import ObstoreClient

        return Objects(ObstoreClient.of_directory(self.root))
