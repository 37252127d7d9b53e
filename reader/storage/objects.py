"""Small objects of a storage, one at a time: put if absent, get, list, delete.

What decides who was first is the store itself: a conditional PUT, a link in a directory, a rename
that does not overwrite.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from reader.errors import UnavailableError, plain_text
from reader.storage.stored_object import StoredObject
from reader.storage.stores import StorageClient, temporary_name


class Objects:
    """Of one root. Paths are relative to it. Thread-safe; not to be used in a forked child.

    All raise UnavailableError where the store does not answer, or refuses.
    """

    def __init__(self, client: StorageClient) -> None:
        self._client = client

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Whether it was written: False where there is an object already.

        After an error that leaves this open (a PUT that was applied, and whose answer was lost) the
        caller reads what is there.
        """
        with _unavailable(path):
            return self._client.put_if_absent(path, data)

    def put(self, path: str, data: bytes) -> None:
        """Write it, in place of what is there."""
        with _unavailable(path):
            self._client.put(path, data)

    def get(self, path: str) -> bytes | None:
        """The whole object; None where there is none."""
        with _unavailable(path):
            try:
                return self._client.get(path)
            except FileNotFoundError:
                return None

    def info(self, path: str) -> StoredObject | None:
        """Return the object's size and time; None if there is none."""
        with _unavailable(path):
            return self._client.info(path)

    def below(self, directory: str) -> list[StoredObject]:
        """All objects below a directory, at any depth."""
        with _unavailable(directory):
            return list(self._client.below(directory))

    def delete(self, paths: Sequence[str]) -> None:
        """Delete them, in any order; what is not there is no error."""
        with _unavailable(paths[0] if paths else ""):
            self._client.delete(paths)

    def clock_ms(self, directory: str) -> int:
        """Return the storage's time in ms since the epoch: that of a small object put now.

        The object lies in ``directory`` for as long as the call takes. Its name is a temporary one,
        so maintenance deletes an object that a killed process has left there.
        """
        path = f"{directory}/{temporary_name('clock')}"
        try:
            self.put(path, b"Written to read the storage's clock: reader/storage/objects.py\n")
            info = self.info(path)
        except UnavailableError as error:
            raise _no_clock(error.message) from error
        finally:
            with suppress(UnavailableError):  # a role may put objects and not delete them
                self.delete([path])
        if info is None:
            raise _no_clock(f"{path} was put and is gone")
        return info.written


def _no_clock(why: str) -> UnavailableError:
    return UnavailableError(
        f"cannot read the storage's clock: {why}",
        hint="check storage.uri, storage.options and the permission to write",
    )


@contextmanager
def _unavailable(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"the storage does not do what is asked for {path}: {plain_text(error)}"
        ) from error
