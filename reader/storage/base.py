"""What every kind of storage is to the readers and the offloader: one interface, one file a kind.

Also the one place that builds the path of a topic's table.
"""

from __future__ import annotations

import difflib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from reader.config import StorageConfig
from reader.errors import ConfigurationError
from reader.model import Topic

if TYPE_CHECKING:
    from reader.storage.objects import Objects
    from reader.storage.stores import StorageClient

PATIENCE = {"connect_timeout": "5s", "timeout": "60s", "max_retries": "5", "retry_timeout": "30s"}
"""Of delta-rs, which waits for minutes on a dead endpoint by default; a user wants to be told."""

_SAFE = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Storage(ABC):
    """Where the tables are, for pyarrow, delta-rs and Spark alike. Thread-safe; never pickled.

    ``OPTIONS``: the names that ``storage.options`` may have; None where not we decide.
    ``config``: what it was made from. Making one connects to nothing.
    """

    OPTIONS: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, config: StorageConfig) -> None:
        """Raises ConfigurationError for an option that this kind does not have, or a wrong one."""
        self.check_options(config.options)
        self.config = config
        if scheme_of(config.uri) not in ("", "file"):
            _check_directory(config.uri.rstrip("/"))
        self.root = self._root(config.uri.rstrip("/"))
        self._opening = threading.Lock()
        self._opened: tuple[pafs.FileSystem, str] | None = None
        self._objects: Objects | None = None
        self._probing = threading.Lock()
        self._exclusive = False

    @classmethod
    def check_options(cls, options: Mapping[str, str]) -> None:
        """Raises ConfigurationError for an unknown one: it would reach one client, not another.

        So would an endpoint that is no URL, or that only some may use.
        """
        known = cls.OPTIONS
        for name in sorted(options.keys() - set(known)) if known is not None else ():
            near = difflib.get_close_matches(name, known or (), n=1)
            raise ConfigurationError(
                f"storage.options: unknown option {name}",
                hint=f"did you mean {near[0]}?"
                if near
                else "known options: " + ", ".join(known or ()),
            )
        if known is not None and "endpoint_url" in options:
            _check_endpoint(options["endpoint_url"], options)

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

    def require_exclusive_put(self) -> None:
        """Nothing is committed, or decided, where a put-if-absent is none: it is tried once.

        Raises ConfigurationError where it is none, UnavailableError where the storage does not
        answer: then the next call tries it again.
        """
        from reader.storage.put_probe import require_exclusive_put

        self.require_answer()
        with self._probing:
            if not self._exclusive:
                require_exclusive_put(self.objects(), self.place)
                self._exclusive = True

    def require_answer(self) -> None:  # noqa: B027 - most give up by themselves
        """Before delta-rs is asked, where it knows no end of waiting. Raises UnavailableError."""

    @property
    def place(self) -> str:
        """The root, and the endpoint that options give, for messages."""
        endpoint = self.config.options.get("endpoint_url", "")
        return f"{self.root} at {endpoint}" if endpoint else self.root

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
            hint="use a local directory, s3://, gs://, abfss:// or hdfs://",
        )

    @abstractmethod
    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        """As ``filesystem`` has it."""


class ClientStorage(Storage):
    """A kind that pyarrow and our own small objects reach through one client."""

    def __init__(self, config: StorageConfig) -> None:
        super().__init__(config)
        self._making = threading.Lock()
        self._made: StorageClient | None = None

    def _client(self) -> StorageClient:
        with self._making:
            if self._made is None:
                self._made = self._open_client()
            return self._made

    def _open_filesystem(self) -> tuple[pafs.FileSystem, str]:
        from reader.storage.stores.arrow_filesystem import arrow_filesystem

        root = self._path()
        return arrow_filesystem(self._client(), root, scheme_of(self.root)), root

    def _open_objects(self) -> Objects:
        from reader.storage.objects import Objects

        return Objects(self._client())

    @abstractmethod
    def _path(self) -> str:
        """How paths of the filesystem begin, without a slash at the end."""

    @abstractmethod
    def _open_client(self) -> StorageClient:
        """Raises ConfigurationError."""


def _check_directory(uri: str) -> None:
    """Refuse one of which the clients make different places."""
    if "%" in uri:
        raise ConfigurationError(
            "storage.uri has a %, which some of the storage's clients decode and others do not",
            hint="use a directory with another name",
        )
    if {"", ".", ".."} & set(uri.partition("://")[2].split("/")[1:]):
        raise ConfigurationError(
            "storage.uri has a part that is empty, . or .. between two slashes",
            hint="write the directory's own path",
        )


def _check_endpoint(endpoint: str, options: Mapping[str, str]) -> None:
    parsed = urlsplit(endpoint)
    if parsed.scheme not in ("http", "https") or not parsed.netloc:
        raise ConfigurationError(
            "storage.options.endpoint_url is not a URL with a host",
            hint="write http://host:port, or https://host",
        )
    if parsed.scheme == "http" and not is_true(options.get("allow_http", "")):
        raise ConfigurationError(
            "storage.options.endpoint_url is http://, without encryption",
            hint='say that you want that: storage.options.allow_http = "true"',
        )


def is_true(text: str) -> bool:
    """An option's value, as people write it."""
    return text.strip().lower() in ("true", "1", "yes")


def require_unset(variables: Iterable[str], option: str) -> None:
    """Raises ConfigurationError where the environment has one of ``variables``.

    delta-rs and obstore mix them with what they are told: a table would be written as somebody
    else, or half as one and half as another.
    """
    for name in variables:
        if os.environ.get(name):
            raise ConfigurationError(
                f"the environment has {name}, which some of the storage's clients would go by, "
                f"and others by storage.options.{option}",
                hint=f"unset {name} for this process: the option reaches all of them",
            )


def scheme_of(uri: str) -> str:
    """The URI's scheme in lower case; "" for a path, also one with a drive's letter."""
    scheme = urlsplit(uri).scheme
    return scheme if len(scheme) > 1 else ""


def component(name: str) -> str:
    """A name as a part of a path, as ``table_uri`` writes it."""
    if set(name) == {"."}:
        return "~2E" * len(name)
    return "".join(chr(b) if b in _SAFE else f"~{b:02X}" for b in name.encode())
