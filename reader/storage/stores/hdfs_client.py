"""HDFS, by hdfs-native, the client that delta-rs has for it: no JVM, no libhdfs.

HDFS shows a file from its first byte on. So each is written beside its place under a temporary
name, and renamed: the rename is atomic, and without overwriting it has one winner. What a process
leaves that dies in between, maintenance deletes. Source: Hadoop's FileContext.rename, with
Options.Rename.NONE and OVERWRITE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from posixpath import basename, dirname
from typing import TypeVar

from hdfs_native import Client, FileReader, FileStatus, WriteOptions

from reader.background import in_thread
from reader.errors import plain_text
from reader.storage.stored_object import StoredObject
from reader.storage.stores.store_client import Buffer, StorageClient, temporary_name

ANSWER_SECONDS = 60.0
"""hdfs-native itself waits for ever for a NameNode that is stopped, or behind a firewall."""
_CLEAN_UP_SECONDS = 5.0

T = TypeVar("T")


class HdfsClient(StorageClient):
    """Of one root: ``url`` names the NameNode or nameservice, ``root`` is the path in it.

    ``conf``: Hadoop's properties by name, beside those that ``HADOOP_CONF_DIR`` has.
    """

    def __init__(self, url: str, root: str, conf: Mapping[str, str]) -> None:
        with _errors():
            self._client = Client(url, dict(conf))
        self._root = root.rstrip("/")

    def info(self, path: str) -> StoredObject | None:
        at = self._at(path)
        try:
            found = _asked(lambda: self._client.get_file_info(at))
        except FileNotFoundError:
            return None
        return None if found.isdir else self._stored(found)

    def children(self, directory: str) -> tuple[list[StoredObject], list[str]]:
        objects: list[StoredObject] = []
        directories: list[str] = []
        for one in self._list(directory):
            if one.isdir:
                directories.append(self._relative(one.path))
            else:
                objects.append(self._stored(one))
        return objects, directories

    def below(self, directory: str) -> Iterator[StoredObject]:
        # Not by hdfs-native's own recursion: it ends where a directory is gone by now, without the
        # rest, and each of ``delete`` takes one away.
        left = [directory]
        while left:
            for one in self._list(left.pop()):
                if one.isdir:
                    left.append(self._relative(one.path))
                else:
                    yield self._stored(one)

    def get(self, path: str) -> bytes:
        file = self._opened(path)
        with _errors():
            return file.readall()

    def stream(self, path: str) -> Iterable[Buffer]:
        return _pieces(iter(self._opened(path)))

    def ranges(self, path: str) -> _FileRanges:
        return _FileRanges(self._opened(path))

    def _opened(self, path: str) -> FileReader:
        """Where its blocks are; DataNodes that do not answer hdfs-native itself gives up."""
        at = self._at(path)
        return _asked(lambda: self._client.read(at))

    def put(self, path: str, data: bytes) -> None:
        written = self.writing(path)
        with _abandoned(written):
            written.write(data)
            written.finish()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self.info(path) is not None:
            return False  # most losers come later, and need not write anything
        written = self.writing(path)
        with _abandoned(written):
            written.write(data)
            try:
                written.finish(overwrite=False)
            except FileExistsError:
                written.abandon()
                return False
        return True

    def writing(self, path: str) -> _TemporaryFile:
        return _TemporaryFile(self._client, self._at(path))

    def delete(self, paths: Sequence[str]) -> None:
        for path in map(self._at, paths):
            with suppress(FileNotFoundError):
                _asked(partial(self._client.delete, path))
        # As in an object store, a directory without objects is none.
        for directory in sorted({dirname(path) for path in paths} - {""}, reverse=True):
            with suppress(OSError):  # it is not empty, or somebody else's by now
                _asked(partial(self._client.delete, self._at(directory), recursive=False))

    def _list(self, directory: str) -> list[FileStatus]:
        asked = self._at(directory)
        try:
            found = _asked(lambda: list(self._client.list_status(asked)))
        except FileNotFoundError:
            return []
        return [one for one in found if one.path != asked]  # a file's listing is the file

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root or "/"

    def _relative(self, path: str) -> str:
        return path.removeprefix(self._root).lstrip("/")

    def _stored(self, found: FileStatus) -> StoredObject:
        return StoredObject(self._relative(found.path), found.length, found.modification_time)


class _TemporaryFile:
    """A file beside its place."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path
        self._temporary = f"{dirname(path)}/{temporary_name(basename(path))}"
        options = WriteOptions(create_parent=True)
        self._file = _asked(lambda: client.create(self._temporary, options))

    def write(self, data: Buffer) -> None:
        _asked(lambda: self._file.write(data))

    def finish(self, *, overwrite: bool = True) -> None:
        _asked(self._file.close)
        _asked(lambda: self._client.rename(self._temporary, self._path, overwrite))

    def abandon(self) -> None:
        with suppress(Exception):
            in_thread(self._delete).result(_CLEAN_UP_SECONDS)

    def _delete(self) -> None:
        with suppress(Exception):
            self._file.close()
        self._client.delete(self._temporary)


class _FileRanges:
    def __init__(self, file: FileReader) -> None:
        self._file = file
        self.size = len(file)

    def read(self, start: int, length: int) -> Buffer:
        with _errors():
            return self._file.read_range(start, length)


def _pieces(pieces: Iterator[bytes]) -> Iterator[Buffer]:
    with _errors():
        yield from pieces


@contextmanager
def _abandoned(written: _TemporaryFile) -> Iterator[None]:
    try:
        yield
    except BaseException:
        written.abandon()
        raise


def _asked(call: Callable[[], T]) -> T:
    """What HDFS answers. Raises TimeoutError, an OSError: it may do it later all the same."""
    with _errors():
        try:
            return in_thread(call).result(ANSWER_SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"HDFS has not answered for {ANSWER_SECONDS:.0f} s") from error


@contextmanager
def _errors() -> Iterator[None]:
    """hdfs-native raises RuntimeError for what has no class of Python's own."""
    try:
        yield
    except (RuntimeError, NotImplementedError, ValueError) as error:
        # Without the NameNode's stack, which hdfs-native gives in one line.
        raise OSError(plain_text(str(error).split(r"\n\tat ")[0])) from error
