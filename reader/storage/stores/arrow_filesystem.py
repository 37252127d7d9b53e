"""A storage's client as a filesystem of pyarrow's, for datasets and Parquet files.

pyarrow's own filesystems of GCS and Azure take other credentials than delta-rs does (no
service-account key for one), and fsspec's give no modification times, by which maintenance decides
what is old. So these come through the client that the rest goes through.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from posixpath import dirname
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from reader.storage.last_calls import Held, call
from reader.storage.stored_object import StoredObject
from reader.storage.stores.store_client import Buffer, Ranges, StorageClient, Writing

_HELD = 1 << 20
"""Bytes that are collected before the client gets them: a Parquet file comes in many small ones."""


def arrow_filesystem(client: StorageClient, root: str, kind: str) -> pafs.FileSystem:
    """``root``: how paths begin that lie at the client's root. ``kind``: a name for errors."""
    return pafs.PyFileSystem(_Handler(client, root, kind))


class _Handler(pafs.FileSystemHandler):  # type: ignore[misc]
    """Directories are what paths have in common: none is made, and one without files is none."""

    def __init__(self, client: StorageClient, root: str, kind: str) -> None:
        self._client = client
        self._root = root.rstrip("/")
        self._kind = kind

    def get_type_name(self) -> str:
        return self._kind

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._client is self._client

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: Sequence[str]) -> list[pafs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        directory = self._relative(selector.base_dir)
        if selector.recursive:
            objects = list(self._client.below(directory))
            directories = _between(directory, (one.path for one in objects))
        else:
            objects, directories = self._client.children(directory)
        if directory and not (objects or directories or selector.allow_not_found):
            raise FileNotFoundError(f"there is no directory {selector.base_dir}")
        return [
            *(pafs.FileInfo(self._absolute(one), pafs.FileType.Directory) for one in directories),
            *(self._file(one) for one in objects),
        ]

    def create_dir(self, path: str, recursive: bool) -> None:
        """Nothing: a directory is there once a file is."""

    def delete_dir(self, path: str) -> None:
        self.delete_dir_contents(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = True) -> None:
        found = [one.path for one in self._client.below(self._relative(path))]
        if not found and not missing_dir_ok:
            raise FileNotFoundError(f"there is no directory {path}")
        self._client.delete(found)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("all of a storage is not deleted at once")

    def delete_file(self, path: str) -> None:
        relative = self._relative(path)
        if self._client.info(relative) is None:
            raise FileNotFoundError(f"there is no file {path}")
        self._client.delete([relative])

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("files keep their names")

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError("files are not copied")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Pieces(iter(self._client.stream(self._relative(path)))), mode="r")

    def open_input_file(self, path: str) -> pa.NativeFile:
        with call():  # a dataset opens its files in threads of pyarrow's
            ranges = self._client.ranges(self._relative(path))
        return pa.PythonFile(_Reading(ranges), mode="r")

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_Output(self._client.writing(self._relative(path))), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        raise NotImplementedError("files are written once")

    def _info(self, path: str) -> pafs.FileInfo:
        relative = self._relative(path)
        found = self._client.info(relative) if relative else None
        if found is not None:
            return self._file(found)
        objects, directories = self._client.children(relative)
        there = bool(objects or directories)
        return pafs.FileInfo(path, pafs.FileType.Directory if there else pafs.FileType.NotFound)

    def _file(self, found: StoredObject) -> pafs.FileInfo:
        return pafs.FileInfo(
            self._absolute(found.path),
            pafs.FileType.File,
            size=found.size,
            mtime=datetime.fromtimestamp(found.written / 1000, UTC),
        )

    def _relative(self, path: str) -> str:
        if path.rstrip("/") == self._root:
            return ""
        if not path.startswith(f"{self._root}/"):
            raise FileNotFoundError(f"{path} does not lie below {self._root}")
        return path[len(self._root) + 1 :].strip("/")

    def _absolute(self, path: str) -> str:
        return f"{self._root}/{path}"


def _between(directory: str, paths: Iterable[str]) -> list[str]:
    """The directories that lie between one and the objects below it."""
    found: set[str] = set()
    for path in paths:
        above = dirname(path)
        while len(above) > len(directory) and above not in found:
            found.add(above)
            above = dirname(above)
    return sorted(found)


class _Opened:
    """What pyarrow asks of any Python file."""

    closed = False

    def close(self) -> None:
        self.closed = True

    def flush(self) -> None:
        pass

    def readable(self) -> bool:
        return isinstance(self, _Reading | _Pieces)

    def writable(self) -> bool:
        return isinstance(self, _Output)

    def seekable(self) -> bool:
        return isinstance(self, _Reading)


class _Reading(_Opened, Held):
    """pyarrow keeps others away between its seek and its read."""

    def __init__(self, ranges: Ranges) -> None:
        super().__init__()
        self._ranges = ranges
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        begin = (0, self._at, self._ranges.size)[whence]
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, length: int = -1) -> Buffer:
        left = max(0, self._ranges.size - self._at)
        length = left if length < 0 else min(length, left)
        if not length:
            return b""
        with call():
            found = self._ranges.read(self._at, length)
        self._at += len(found)
        return found


class _Pieces(_Opened):
    def __init__(self, pieces: Iterator[Buffer]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")
        self._at = 0

    def tell(self) -> int:
        return self._at

    def read(self, length: int = -1) -> Buffer:
        found = bytearray()
        while length < 0 or len(found) < length:
            if not self._left:
                self._left = memoryview(next(self._pieces, b""))
                if not self._left:
                    break
            some = self._left if length < 0 else self._left[: length - len(found)]
            self._left = self._left[len(some) :]
            found += some
        self._at += len(found)
        return bytes(found)


class _Output(_Opened):
    """It is there once it is closed, but for a close that an error calls for.

    pyarrow closes a file however its ``with`` block ends, and does not say how. An exception that
    is on its way now, if there is one, and was not when the file was opened says it.
    """

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._held = bytearray()
        self._at = 0
        self._handled = sys.exception()

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._held += view
        self._at += len(view)
        if len(self._held) >= _HELD:
            self._send()
        return len(view)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if sys.exception() not in (None, self._handled):
            self._writing.abandon()
            return
        try:
            self._send()
            self._writing.finish()
        except BaseException:
            self._writing.abandon()
            raise

    def _send(self) -> None:
        held, self._held = self._held, bytearray()
        if held:
            self._writing.write(held)
