"""Object stores and directories, by obstore: the Python binding of the store layer of delta-rs.

So commits, small objects and datasets reach the same places with the same options and the same
identity. ``open_store`` takes options as delta-rs has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from obstore import open_writer
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, from_url

from reader.errors import ConfigurationError, plain_text
from reader.storage.stored_object import StoredObject
from reader.storage.stores.store_client import Buffer, StorageClient

_CLIENT = ("connect_timeout", "timeout")
_PART = 8 << 20
_PARTS_AT_ONCE = 4  # 32 MiB of a file that is being written


class ObstoreClient(StorageClient):
    """Of one root."""

    def __init__(self, store: Any) -> None:
        self._store = store

    @classmethod
    def of_directory(cls, directory: str) -> ObstoreClient:
        """Of a local directory, made if it is not there; folders without objects are deleted."""
        return cls(LocalStore(directory, automatic_cleanup=True, mkdir=True))

    @classmethod
    def of_url(
        cls, url: str, options: Mapping[str, str], credential: Mapping[str, str] | None = None
    ) -> ObstoreClient:
        """Of a URL that obstore knows; ``options`` are those for delta-rs.

        ``credential``: in obstore's form for the kind; goes before ``options`` and environment.

        Raises ConfigurationError for options that the store layer does not take.
        """
        left = dict(options)
        client: dict[str, Any] = {name: left.pop(name) for name in _CLIENT if name in left}
        if (plain := left.pop("allow_http", None)) is not None:
            client["allow_http"] = plain == "true"
        retry: dict[str, Any] = {}
        if "max_retries" in left:
            retry["max_retries"] = int(left.pop("max_retries"))
        if "retry_timeout" in left:
            retry["retry_timeout"] = timedelta(seconds=int(left.pop("retry_timeout").rstrip("s")))
        given: dict[str, Any] = {"client_options": client, "retry_config": retry}
        if credential is not None:
            fixed = {**credential, "expires_at": None}
            given["credential_provider"] = lambda: fixed
        try:
            store = from_url(url, config=left, **given)  # type: ignore[call-overload]
        except (BaseError, OSError, ValueError) as error:
            raise ConfigurationError(
                f"cannot use the storage at {url}: {_plain(error)}", hint="check storage.options"
            ) from None  # the error's own cause may have what it could not read
        return cls(store)

    def info(self, path: str) -> StoredObject | None:
        with _errors():
            try:
                return _stored(self._store.head(path))
            except (FileNotFoundError, NotFoundError):
                return None

    def children(self, directory: str) -> tuple[list[StoredObject], list[str]]:
        with _errors():
            try:
                found = self._store.list_with_delimiter(directory or None)
            except (FileNotFoundError, NotFoundError):
                return [], []
        return [_stored(one) for one in found["objects"]], list(found["common_prefixes"])

    def below(self, directory: str) -> Iterator[StoredObject]:
        with _errors():
            try:
                for some in self._store.list(directory or None, chunk_size=1000):
                    yield from map(_stored, some)
            except (FileNotFoundError, NotFoundError):
                return

    def get(self, path: str) -> bytes:
        with _errors():
            return bytes(self._store.get(path).bytes())

    def stream(self, path: str) -> Iterable[Buffer]:
        with _errors():
            pieces = iter(self._store.get(path).stream(min_chunk_size=1 << 20))
        return _pieces(pieces)

    def ranges(self, path: str) -> _ObjectRanges:
        with _errors():
            return _ObjectRanges(self._store, path, self._store.head(path)["size"])

    def put(self, path: str, data: bytes) -> None:
        with _errors():
            self._store.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        with _errors():
            try:
                self._store.put(path, data, mode="create")
            except AlreadyExistsError:
                return False
        return True

    def writing(self, path: str) -> _Upload:
        with _errors():
            return _Upload(
                open_writer(self._store, path, buffer_size=_PART, max_concurrency=_PARTS_AT_ONCE)
            )

    def delete(self, paths: Sequence[str]) -> None:
        try:
            if len(paths) > 1:
                self._store.delete(list(paths))  # S3 takes many in one request
                return
        except (BaseError, OSError):
            pass  # a directory stops at what is not there, and not each S3 has this request
        for path in paths:
            with _errors():
                try:
                    self._store.delete(path)
                except (FileNotFoundError, NotFoundError):
                    continue


class _ObjectRanges:
    def __init__(self, store: Any, path: str, size: int) -> None:
        self._store = store
        self._path = path
        self.size = size

    def read(self, start: int, length: int) -> Buffer:
        with _errors():
            return memoryview(self._store.get_range(self._path, start=start, length=length))


class _Upload:
    """In one request, or in parts that are an object only once the last request is done.

    Parts of an upload that was never finished are the store's to clean up: Azure does after a week,
    of GCS and S3 a rule of the bucket's lifecycle does.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, data: Buffer) -> None:
        with _errors():
            self._writer.write(data)

    def finish(self) -> None:
        with _errors():
            self._writer.close()

    def abandon(self) -> None:
        self._writer = None


def _stored(found: Mapping[str, Any]) -> StoredObject:
    written = int(found["last_modified"].timestamp() * 1000)
    return StoredObject(found["path"], int(found["size"]), written)


def _pieces(pieces: Iterator[Any]) -> Iterator[Buffer]:
    with _errors():
        for one in pieces:
            yield memoryview(one)


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        raise FileNotFoundError(_plain(error)) from error
    except BaseError as error:
        raise OSError(_plain(error)) from error


def _plain(error: Exception) -> str:
    """Without what obstore says once more for its own debugging."""
    return plain_text(str(error).partition("\n\nDebug source:")[0])
