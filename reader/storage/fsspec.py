"""Any other scheme, through the fsspec package that knows it; options are that package's own."""

from __future__ import annotations

import pyarrow.fs as pafs

from reader.errors import ConfigurationError
from reader.storage.base import Storage, scheme_of

__all__ = ["FsspecStorage"]


class FsspecStorage(Storage):
    """delta-rs and Spark find their own way to the URI, by the machine's environment.

    To read only: nothing shows who of two writers was first.
    """

    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        try:
            import fsspec  # only where a scheme needs it

            inner, path = fsspec.core.url_to_fs(self.root, **self.config.options)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(
                f"storage.uri: {scheme_of(self.root)}:// is not supported here",
                hint=f"install the fsspec package for it: {error}",
            ) from error
        return pafs.PyFileSystem(pafs.FSSpecHandler(inner)), path
