"""Small objects of a storage, one at a time: put if absent, get, list, delete.

What decides who was first is the store itself: a conditional PUT, or a link in a directory. Through
obstore, the Python binding of the store layer that delta-rs has, so both reach the same places with
the same options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, from_url

from reader.errors import UnavailableError, plain_text
from reader.storage.stored_object import StoredObject

__all__ = ["Objects"]


class Objects:
    """Of one root. Paths are relative to it. Thread-safe; not to be used in a forked child.

    All raise UnavailableError where the store does not answer, or refuses.
    """

    def __init__(self, store: Any) -> None:
        self._store = store

    @classmethod
    def of_directory(cls, directory: str) -> Objects:
        """Of a local directory, made if it is not there; folders without objects are deleted."""
        return cls(LocalStore(directory, automatic_cleanup=True, mkdir=True))

    @classmethod
    def of_url(cls, url: str, config: Mapping[str, str], client: Mapping[str, Any]) -> Objects:
        """Of a URL that obstore knows, with its options."""
        return cls(from_url(url, config=dict(config), client_options=dict(client)))  # type: ignore[call-overload]

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Whether it was written: False where there is an object already.

        After an error that leaves this open (a PUT that was applied, and whose answer was lost) the
        caller reads what is there.
        """
        try:
            self._store.put(path, data, mode="create")
        except AlreadyExistsError:
            return False
        except (BaseError, OSError) as error:
            raise _unavailable(path, error) from error
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write it, in place of what is there."""
        try:
            self._store.put(path, data)
        except (BaseError, OSError) as error:
            raise _unavailable(path, error) from error

    def get(self, path: str) -> bytes | None:
        """The whole object; None where there is none."""
        try:
            return bytes(self._store.get(path).bytes())
        except (FileNotFoundError, NotFoundError):
            return None
        except (BaseError, OSError) as error:
            raise _unavailable(path, error) from error

    def below(self, directory: str) -> list[StoredObject]:
        """All objects below a directory, at any depth."""
        try:
            return [
                StoredObject(one["path"], one["size"], int(one["last_modified"].timestamp() * 1000))
                for some in self._store.list(directory)
                for one in some
            ]
        except (FileNotFoundError, NotFoundError):
            return []
        except (BaseError, OSError) as error:
            raise _unavailable(directory, error) from error

    def delete(self, paths: Sequence[str]) -> None:
        """Delete them, in any order; what is not there is no error."""
        try:
            if len(paths) > 1:
                self._store.delete(list(paths))  # S3 takes many in one request
                return
        except (BaseError, OSError):
            pass  # a directory stops at what is not there, and not each S3 has this request
        for path in paths:
            try:
                self._store.delete(path)
            except (FileNotFoundError, NotFoundError):
                continue
            except (BaseError, OSError) as error:
                raise _unavailable(path, error) from error


def _unavailable(path: str, error: Exception) -> UnavailableError:
    return UnavailableError(
        f"the storage does not do what is asked for {path}: {plain_text(error)}"
    )
