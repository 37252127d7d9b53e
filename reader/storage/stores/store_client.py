"""What a client of a storage can do: the interface of all of them.

Paths are relative to the root that it was opened at; "" is the root. All calls raise OSError,
FileNotFoundError among them, and nothing else: whoever calls says what was asked for.
"""

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from reader.storage.stored_object import StoredObject

Buffer = bytes | bytearray | memoryview

_TEMPORARY = re.compile(r"\..+\.tmp\.[0-9a-f]+")


def temporary_name(name: str) -> str:
    """Under which a file is written beside its place, where a store shows unfinished files.

    The form is that of the HDFS layer of delta-rs (``.<name>.tmp.<number>``), so that one rule of
    maintenance deletes what either has left behind.
    """
    return f".{name}.tmp.{uuid.uuid4().hex}"


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that somebody was writing, and may have left."""
    return _TEMPORARY.fullmatch(name) is not None


class Writing(Protocol):
    """An object that is being written. Nothing of it is there before ``finish``."""

    def write(self, data: Buffer) -> None:
        """Append; it may be sent later."""

    def finish(self) -> None:
        """The whole object is there, in place of what was."""

    def abandon(self) -> None:
        """It will not be there. Raises nothing."""


class Ranges(Protocol):
    """An object that is read in ranges, from any thread. ``size`` in bytes."""

    @property
    def size(self) -> int: ...

    def read(self, start: int, length: int) -> Buffer:
        """Bytes ``[start, start + length)``, which lie within the object."""


class StorageClient(ABC):
    """Thread-safe; not to be used in a forked child."""

    @abstractmethod
    def info(self, path: str) -> StoredObject | None:
        """An object; None where there is none, or a directory."""

    @abstractmethod
    def children(self, directory: str) -> tuple[list[StoredObject], list[str]]:
        """What is right below a directory: objects, and paths of directories. Of none: nothing."""

    @abstractmethod
    def below(self, directory: str) -> Iterator[StoredObject]:
        """All objects below a directory, at any depth. Of none: nothing."""

    @abstractmethod
    def get(self, path: str) -> bytes:
        """The whole object."""

    @abstractmethod
    def stream(self, path: str) -> Iterable[Buffer]:
        """The whole object in pieces, as they come."""

    @abstractmethod
    def ranges(self, path: str) -> Ranges:
        """An object, to be read in ranges."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Write it whole, in place of what is there."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Whether it was written: False where there is an object already. See ``Objects``."""

    @abstractmethod
    def writing(self, path: str) -> Writing:
        """Begin an object."""

    @abstractmethod
    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects, in any order; what is not there is no error."""
