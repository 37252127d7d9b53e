"""A write's name, and which of its versions were decided and sent: its manifests.

``~sink/<app>/<version>.manifest`` below the storage's root. A version is decided by who puts its
manifest first, and done once that is marked as sent; the newest one tells which sequence ids come
next. Older ones, and what was staged for them, are deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from reader.clients import Clients
from reader.errors import ConfigurationError, PulsarLakeError
from reader.sink.manifest import Manifest
from reader.sink.staged_entries import StagedFile
from reader.sink.staging import staging_directory

__all__ = ["NamedWrite", "producer_name"]

_MANIFEST = re.compile(r".*/([0-9]{20})\.manifest")


def producer_name(app: str) -> str:
    """Of all producers of a write."""
    return f"pulsar-lake-{app}"


class NamedWrite:
    """The versions of one write, for its driver. ``now``: s since the epoch.

    All raise UnavailableError where the storage does not answer.
    """

    def __init__(self, clients: Clients, app: str, *, now: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self._app = app
        self._now = now
        self._directory = staging_directory(app)
        self._latest: Manifest | None = None
        self._known = False

    @property
    def directory(self) -> str:
        """Where its tasks stage, below the storage's root."""
        return self._directory

    def latest(self) -> Manifest | None:
        """The newest version that was decided."""
        if not self._known:
            self._latest = self._newest()
            self._known = True
        return self._latest

    def decide(
        self, version: int, staged: Sequence[StagedFile], *, encrypted: bool
    ) -> tuple[Manifest, bool]:
        """(what this version sends, whether that was decided just now).

        One that was decided earlier, by an attempt that failed or another driver, is what it was,
        and what was staged now is dropped. A version below the newest was sent long ago. Raises
        ConfigurationError where an earlier version was decided and never sent whole.
        """
        while True:
            latest = self._latest = self._newest()  # others may have gone on meanwhile
            self._known = True
            if latest is not None and latest.version >= version:
                self._drop(staged)
                return latest, False
            if latest is not None and not latest.sent:
                raise ConfigurationError(
                    f"version {latest.version} of the write {self._app} was begun and not finished",
                    hint="run it again first: what is left of it is sent then",
                )
            manifest = Manifest.of(
                producer_name(self._app),
                version,
                int(self._now() * 1000),
                staged,
                latest.following if latest is not None else {},
                encrypted=encrypted,
            )
            if not self._put(manifest):
                self._drop(staged)
                self._latest = self._read(version)
                return self._latest, False
            others = [one for one in self._versions() if one != version]
            if max(others, default=None) == (latest.version if latest is not None else None):
                self._latest = manifest
                return manifest, True
            # Another driver has decided meanwhile: this one would give its ids once more.
            self._clients.storage.objects().delete([self._path(version)])

    def _put(self, manifest: Manifest) -> bool:
        """Whether it is this one that decides."""
        objects, path = self._clients.storage.objects(), self._path(manifest.version)
        data = manifest.to_bytes()
        try:
            if objects.put_if_absent(path, data):
                return True
        except PulsarLakeError:
            # It may have been applied, and its answer lost.
            if objects.get(path) != data:
                raise
            return True
        return objects.get(path) == data  # a retry of the client may have met its own PUT

    def sent(self, manifest: Manifest) -> None:
        """All of it is in its topics: what was staged for it and older versions are not needed."""
        objects = self._clients.storage.objects()
        done = manifest.as_sent()
        objects.put(self._path(manifest.version), done.to_bytes())
        self._latest = done
        keep = self._path(manifest.version)
        names = objects.names(self._directory)
        objects.delete([name for name in names if name != keep and _older(name, manifest)])

    def forget(self) -> None:
        """Delete all of it: nobody will ask for this name again."""
        filesystem, root = self._clients.storage.filesystem()
        with suppress(OSError):  # maintenance deletes what is left
            filesystem.delete_dir(f"{root}/{self._directory}")

    def _drop(self, staged: Sequence[StagedFile]) -> None:
        self._clients.storage.objects().delete([one.path for one in staged if one.path])

    def _versions(self) -> list[int]:
        names = self._clients.storage.objects().names(self._directory)
        return [int(found[1]) for name in names if (found := _MANIFEST.fullmatch(name))]

    def _newest(self) -> Manifest | None:
        versions = self._versions()
        return self._read(max(versions)) if versions else None

    def _read(self, version: int) -> Manifest:
        path = self._path(version)
        data = self._clients.storage.objects().get(path)
        if data is None:
            raise PulsarLakeError(f"the manifest {path} is gone", hint="try again")
        return Manifest.from_bytes(data, path)

    def _path(self, version: int) -> str:
        return f"{self._directory}/{version:020d}.manifest"


def _older(name: str, manifest: Manifest) -> bool:
    """Of what may be deleted: this version's files, and manifests before it.

    Files of other attempts are left to maintenance: a newer version may be staged already.
    """
    found = _MANIFEST.fullmatch(name)
    if found is not None:
        return int(found[1]) < manifest.version
    return name in manifest.files
