"""Any other scheme, through the fsspec package that knows it; options are that package's own."""

from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from reader.errors import ConfigurationError
from reader.storage.base import Storage, scheme_of
from reader.storage.last_calls import Held, call


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
        return pafs.PyFileSystem(_Handler(inner)), path


class _Handler(pafs.FSSpecHandler):  # type: ignore[misc]
    """pyarrow's own; what a dataset opens, the end of the interpreter waits for."""

    def open_input_file(self, path: str) -> pa.NativeFile:
        with call():  # a dataset opens its files in threads of pyarrow's
            if not self.fs.isfile(path):
                raise FileNotFoundError(path)
            return pa.PythonFile(_Reading(self.fs.open(path, mode="rb")), mode="r")


class _Reading(Held):
    """A file of fsspec's."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("read_buffer", "readinto"):
            raise AttributeError(name)  # what is read comes through ``read``
        return getattr(self._file, name)

    def read(self, length: int = -1) -> bytes:
        with call():
            return bytes(self._file.read(length))
