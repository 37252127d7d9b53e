"""What every kind of storage is to the readers and the offloader: one interface, one file a kind.

Also the one place that builds the path of a topic's table.
"""

from __future__ import annotations

import difflib
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from reader.config import StorageConfig
from reader.errors import ConfigurationError
from reader.model import Topic

if TYPE_CHECKING:
    from reader.storage.objects import Objects

__all__ = ["Storage", "component", "scheme_of"]

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Storage(ABC):
    """Where the tables are, for pyarrow, delta-rs and Spark alike. Thread-safe; never pickled.

    ``OPTIONS``: the names that ``storage.options`` may have; None where not we decide.
    ``config``: what it was made from. Making one connects to nothing.
    """

    OPTIONS: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, config: StorageConfig) -> None:
        """Raises ConfigurationError for an option that this kind does not have."""
        self.check_options(config.options)
        self.config = config
        self.root = self._root(config.uri.rstrip("/"))
        self._opening = threading.Lock()
        self._opened: tuple[pafs.FileSystem, str] | None = None
        self._objects: Objects | None = None

    @classmethod
    def check_options(cls, options: Mapping[str, str]) -> None:
        """Raises ConfigurationError for an unknown one: it would reach one client, not another."""
        known = cls.OPTIONS
        for name in sorted(options.keys() - set(known)) if known is not None else ():
            near = difflib.get_close_matches(name, known or (), n=1)
            raise ConfigurationError(
                f"storage.options: unknown option {name}",
                hint=f"did you mean {near[0]}?"
                if near
                else "known options: " + ", ".join(known or ()),
            )

    def table_uri(self, topic: Topic) -> str:
        """The URI of the topic's Delta table: ``<root>/<tenant>/<namespace>/<topic>``.

        Every byte outside ``[A-Za-z0-9._-]`` becomes ``~XX`` (``%`` would be decoded by some
        clients and not by others), and so do names of dots only: no name leaves the root or meets
        another's.
        """
        parts = (component(part) for part in (topic.tenant, topic.namespace, topic.name))
        return "/".join((self.root, *parts))

    def filesystem(self) -> tuple[pafs.FileSystem, str]:
        """(filesystem, root path in it) for reading and writing bytes; opened once, then kept.

        Raises ConfigurationError where this machine lacks what the scheme takes, UnavailableError
        where the filesystem cannot be made. Its own calls raise OSError.
        """
        with self._opening:
            if self._opened is None:
                self._opened = self._open_filesystem()
            return self._opened

    def directory(self, topic: Topic) -> tuple[pafs.FileSystem, str]:
        """(filesystem, path in it) of the topic's table. Raises as ``filesystem`` does."""
        filesystem, root = self.filesystem()
        return filesystem, root + self.table_uri(topic).removeprefix(self.root)

    def objects(self) -> Objects:
        """Small objects below the root; opened once, then kept. Raises ConfigurationError."""
        with self._opening:
            if self._objects is None:
                self._objects = self._open_objects()
            return self._objects

    def delta_options(self) -> dict[str, str]:
        """Storage options for delta-rs. Commits have to be conditional (put if absent)."""
        return {}

    def spark_conf(self) -> dict[str, str]:
        """Settings that give Spark's filesystem the same endpoint and identity."""
        return {}

    def spark_uri(self, uri: str) -> str:
        """The same place for Spark: Hadoop may know the scheme by another name."""
        return uri

    def _root(self, uri: str) -> str:
        """The root as tables' URIs begin, without a trailing slash."""
        return uri

    def _open_objects(self) -> Objects:
        raise ConfigurationError(
            f"{self.root}: this kind of storage cannot tell which of two writers was first",
            hint="use a local directory or s3://",
        )

    @abstractmethod
    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """As ``filesystem`` has it."""


def scheme_of(uri: str) -> str:
    """The URI's scheme; "" for a path, also one with a drive's letter."""
    scheme = urlsplit(uri).scheme
    return scheme if len(scheme) > 1 else ""


def component(name: str) -> str:
    """A name as a part of a path, as ``table_uri`` writes it."""
    if set(name) == {"."}:
        return "~2E" * len(name)
    return "".join(chr(b) if b in _SAFE else f"~{b:02X}" for b in name.encode())
