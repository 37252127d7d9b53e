"""Byte ranges of objects, through whatever filesystem a storage has. Errors are ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from reader.errors import CorruptError, NotFoundError, UnavailableError, plain_text
from reader.kernels.array_types import Bytes
from reader.storage import Storage


class ObjectReads:
    """One object, opened. ``size``: its bytes.

    Thread-safe, and reads run side by side; not to be used in a forked child.

    All raise NotFoundError where it is not there, or not any more, and UnavailableError where the
    store does not answer or refuses.
    """

    def __init__(self, storage: Storage, name: str) -> None:
        self._filesystem, root = storage.filesystem()
        self._path = f"{root.rstrip('/')}/{name}"
        self._what = f"{storage.root}/{name}"
        try:
            self._file = self._filesystem.open_input_file(self._path)
            self.size = int(self._file.size())
        except FileNotFoundError as error:
            raise self._missing() from error
        except OSError as error:
            raise self._unavailable(error) from error
        # A file of Python's has one position, which a read moves: each read takes one for itself.
        self._is_python = isinstance(self._filesystem, pafs.PyFileSystem)
        self._idle = [self._file]

    def read(self, at: int, size: int) -> Bytes:
        """Exactly these bytes, by one request. Raises CorruptError where the object ends before."""
        try:
            with self._taken() as file:
                found = file.read_at(size, at)
        except OSError as error:
            if self._is_gone():
                raise self._missing() from error
            raise self._unavailable(error) from error
        if len(found) != size:
            raise CorruptError(f"{self._what} ends at {at + len(found)}, and not at {self.size}")
        return np.frombuffer(found, np.uint8)

    def __str__(self) -> str:
        return self._what

    @contextmanager
    def _taken(self) -> Iterator[pa.NativeFile]:
        if not self._is_python:
            yield self._file
            return
        try:
            file = self._idle.pop()
        except IndexError:
            file = self._filesystem.open_input_file(self._path)
        try:
            yield file
        finally:
            self._idle.append(file)

    def _is_gone(self) -> bool:
        try:
            found = self._filesystem.get_file_info(self._path)
        except OSError:
            return False
        return bool(found.type == pafs.FileType.NotFound)

    def _missing(self) -> NotFoundError:
        return NotFoundError(f"{self._what} is not there")

    def _unavailable(self, error: OSError) -> UnavailableError:
        return UnavailableError(f"cannot read {self._what}: {plain_text(error)}")
